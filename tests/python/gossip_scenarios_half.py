"""What the workers of the tests of half precision do; half_precision.py runs the first at length."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gossip_scenarios_basic import gossiping, numbers
from gossip_support import loss_of, mlp, train
from torch import nn
from torch.optim import SGD, AdamW, RMSprop

from gossamer import Gossip

NOISE = 0.3
ROWS = 32


class OwnAdamW(AdamW):
    """Steps by itself, because subclasses do."""


class OwnSGD(SGD):
    """Likewise."""


MAKE: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "adamw": lambda m: AdamW(m.parameters(), lr=2e-4),
    "own adamw": lambda m: OwnAdamW(m.parameters(), lr=2e-4),
    "momentum": lambda m: SGD(m.parameters(), lr=2e-3, momentum=0.9),
    "own momentum": lambda m: OwnSGD(m.parameters(), lr=2e-3, momentum=0.9),
}


def teacher() -> nn.Module:
    return mlp(seed=99, inputs=8, hidden=16, outputs=1)


def examples(of: nn.Module, seed: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and what the teacher says of them with noise."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 8, generator=generator)
    with torch.no_grad():
        return x, of(x) + NOISE * torch.randn(rows, 1, generator=generator)


def learned(rank: int, name: str, steps: int) -> dict[str, Any]:
    """Of an optimizer and a dtype: the disagreement at the end, and the loss of the mean in float32 on data of its own."""
    kind, _, precision = name.rpartition(" ")
    dtype = getattr(torch, precision)
    model = mlp(seed=1, inputs=8, hidden=32, outputs=1).to(torch.bfloat16).to(dtype)
    optimizer, of = MAKE[kind](model), teacher()
    held_x, held_y = examples(of, 123, 4096)
    with gossiping(model, optimizer, topology="ring") as gossip:
        for step in range(steps):
            x, y = examples(of, 1000 + 4 * step + rank, ROWS)
            optimizer.zero_grad()
            (model(x.to(dtype)).float() - y).square().mean().backward()
            optimizer.step()
        apart = gossip.disagreement()
        with torch.no_grad(), gossip.averaged():
            loss = float((copy.deepcopy(model).float()(held_x) - held_y).square().mean())
        return {"loss": loss, "apart": apart, "is_fused": gossip.is_fused}


def half_training(rank: int, size: int) -> Any:
    """By optimizer and dtype."""
    names = ("adamw float32", "adamw bfloat16", "adamw float16", "momentum bfloat16")
    return {name: learned(rank, name, 300) for name in names}


def half_training_long(rank: int, size: int) -> Any:
    """The same, with own steps."""
    names = ("adamw float32", "adamw bfloat16", "own adamw bfloat16")
    names += ("momentum float32", "momentum bfloat16", "own momentum bfloat16")
    return {name: learned(rank, name, 2000) for name in names}


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    "half_training": half_training,
    "half_training_long": half_training_long,
}
