"""Losses over time: when a curve reaches a loss, and where it is at a number of steps."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """A validation: mean steps of a worker, seconds of training, loss."""

    steps: float
    seconds: float
    loss: float


def time_to(curve: Sequence[Point], loss: float) -> float | None:
    """Seconds until the curve is at `loss` for the first time, straight between its points; None:
    it never is."""
    before: Point | None = None
    for point in curve:
        if point.loss <= loss:
            if before is None:
                return point.seconds
            share = (before.loss - loss) / (before.loss - point.loss)
            return before.seconds + share * (point.seconds - before.seconds)
        before = point
    return None


def loss_at(curve: Sequence[Point], steps: float) -> float:
    """The loss at this number of steps, straight between points. Raises ValueError outside."""
    for before, point in itertools.pairwise(curve):
        if before.steps <= steps <= point.steps:
            share = (steps - before.steps) / (point.steps - before.steps)
            return before.loss + share * (point.loss - before.loss)
    ends = f"{curve[0].steps:g} to {curve[-1].steps:g}" if curve else "nothing"
    raise ValueError(f"[curves] no loss at {steps:g} steps: the curve has {ends}; train longer")


def rate_factor(step: int, warm_up: int) -> float:
    """Of the learning rate in the step after `step` of them: up to 1, then an inverse square root,
    which knows no end: those who go on longer have the rates of those who do not."""
    done = step + 1
    return min(done / warm_up, (warm_up / done) ** 0.5) if warm_up else 1.0
