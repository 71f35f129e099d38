"""A model whose computing is sleeping: parameters and their exchange are real, the rest is time."""

import math
import random
import time
from dataclasses import dataclass

import torch
from torch import nn

LAYERS = 16
COLUMNS = 128
FORWARD_SHARE = 1 / 3


@dataclass
class Pace:
    """How long a worker computes: mean · factor · (1 + jitter · N(0, 1)) seconds per step."""

    mean_s: float
    jitter: float = 0.0
    factor: float = 1.0
    seed: int = 0
    total_s: float = 0.0  # of the steps so far

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def next_s(self) -> float:
        """Of one more step, at least a twentieth of the mean."""
        noise = self._random.gauss(0, 1)  # drawn in any case, so that jitter changes nothing else
        seconds = self.mean_s * max(0.05, self.factor * (1 + self.jitter * noise))
        self.total_s += seconds
        return seconds


class Clockwork:
    """Sleeps until points of a step that is `seconds` long; being late is made up for."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._begin = 0.0
        self._seconds = 0.0
        self._slept = 0.0

    def begin(self) -> None:
        """A step begins now."""
        self._begin = time.perf_counter()
        self._seconds = self._pace.next_s()
        self._slept = 0.0

    def advance(self, share: float) -> None:
        """Computes for this share of the step, but not before what was computed so far is over."""
        self._slept += share * self._seconds
        left = self._begin + self._slept - time.perf_counter()
        if left > 0:
            time.sleep(left)


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, parameter, gradient, clockwork):
        ctx.gradient, ctx.clockwork = gradient, clockwork
        clockwork.advance(FORWARD_SHARE / LAYERS)
        return x.clone()

    @staticmethod
    def backward(ctx, grad_x):
        ctx.clockwork.advance((1 - FORWARD_SHARE) / LAYERS)
        return grad_x, ctx.gradient.clone(), None, None


def rows_for(size: int) -> int:
    """Of each layer of a model of at least `size` bytes."""
    return math.ceil(size / 4 / LAYERS / COLUMNS)


def payload_bytes(size: int) -> int:
    """Of all parameters of such a model."""
    return 4 * LAYERS * COLUMNS * rows_for(size)


class SleepingLayer(nn.Module):
    """A parameter that is used once in a step."""

    def __init__(self, gradient: torch.Tensor, clockwork: Clockwork) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros_like(gradient))
        self.gradient, self.clockwork = gradient, clockwork

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Layer.apply(x, self.weight, self.gradient, self.clockwork)


class SleepingModel(nn.Module):
    """Parameters of `payload_bytes(size)`, whose gradients on a worker are `rank_gradient`."""

    def __init__(self, size: int, pace: Pace, rank_gradient: float) -> None:
        super().__init__()
        shape = (rows_for(size), COLUMNS)
        self.clockwork = Clockwork(pace)
        gradient = torch.full(shape, rank_gradient)
        self.layers = nn.ModuleList(SleepingLayer(gradient, self.clockwork) for _ in range(LAYERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.clockwork.begin()
        for layer in self.layers:
            x = layer(x)
        return x
