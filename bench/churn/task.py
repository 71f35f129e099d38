"""What every contender trains, and for how long a step computes."""

import time

import torch
from torch import nn

PAUSE_S = 0.05
WIDTH, CLASSES, BATCH = 64, 8, 16


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(WIDTH, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, CLASSES)
    )


def optimizer(of: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(of.parameters(), lr=1e-3)


def compute(network: nn.Module, seed: int) -> None:
    """A gradient, and the time that a larger model would take on a device of its own."""
    dice = torch.Generator().manual_seed(seed)
    batch = torch.randn(BATCH, WIDTH, generator=dice)
    classes = torch.randint(CLASSES, (BATCH,), generator=dice)
    time.sleep(PAUSE_S)
    nn.functional.cross_entropy(network(batch), classes).backward()
