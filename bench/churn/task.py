"""What is trained, and for how long a step computes."""

import importlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # seconds that the first optimizer of a process would take
from torch import nn

PAUSE_S = 0.05
WIDTH, CLASSES, BATCH = 64, 8, 16
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def optimizer(of: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(of.parameters(), lr=1e-3)


class Pause:
    """A small network, and a pause as long as a larger one takes on a device of its own."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.model: nn.Module = nn.Sequential(
            *(nn.Linear(WIDTH, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh()),
            nn.Linear(256, CLASSES),
        )

    def compute(self, network: nn.Module, seed: int) -> float:
        """A gradient; the loss. `network`: the model, or what wraps it."""
        dice = torch.Generator().manual_seed(seed)
        batch = torch.randn(BATCH, WIDTH, generator=dice)
        classes = batch[:, :CLASSES].argmax(1)
        time.sleep(PAUSE_S)
        loss = nn.functional.cross_entropy(network(batch), classes)
        loss.backward()
        return loss.item()


class Text:
    """The example's model of bytes, on the sources of Python's standard library or the files of
    GOSSAMER_CHURN_TEXT."""

    LENGTH, VALIDATION_BATCHES = 64, 40

    def __init__(self, seed: int, rank: int) -> None:
        sys.path.insert(0, str(EXAMPLES))
        example: Any = importlib.import_module("text_gossip")
        data: Any = importlib.import_module("text_data")
        self._windows, self._loss_of = data.windows, example.loss_of
        self._text, self._held_back = data.load(os.environ.get("GOSSAMER_CHURN_TEXT"))
        self._seed = seed
        torch.manual_seed(seed)
        self.model: nn.Module = example.Model(self.LENGTH)

    def compute(self, network: nn.Module, seed: int) -> float:
        """A gradient of windows that nobody else draws; the loss."""
        dice = torch.Generator().manual_seed(seed + 10**7 * self._seed)  # 32 bits count
        loss = self._loss(network, self._text, dice)
        loss.backward()
        return loss.item()

    def validate(self) -> float:
        """Mean loss over the same windows of what was held back, for all."""
        dice = torch.Generator().manual_seed(0)
        with torch.no_grad():
            every = [
                self._loss(self.model, self._held_back, dice).item()
                for _ in range(self.VALIDATION_BATCHES)
            ]
        return sum(every) / len(every)

    def _loss(self, network: nn.Module, text: torch.Tensor, dice: torch.Generator) -> torch.Tensor:
        windows = self._windows(text, BATCH, self.LENGTH, dice, torch.device("cpu"))
        loss: torch.Tensor = self._loss_of(network, *windows)
        return loss
