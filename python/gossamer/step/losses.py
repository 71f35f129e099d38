"""The loss of this worker's step, for schedules that follow the mean of it over all workers."""

from __future__ import annotations

import math
from typing import Any

from gossamer import _core


class StepLoss:
    """What a step's loss was said to be; nothing is kept where the schedule does not follow it."""

    def __init__(self, schedule: _core.Schedule) -> None:
        self._follower = schedule.name if schedule.loss_driven else ""
        self._said: float | None = None
        self._last = math.nan

    def say(self, loss: Any) -> None:
        """Of the coming step. Raises TypeError for what is no number."""
        if self._follower:
            self._said = _number(loss)

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raises ValueError where a step with these arguments would know no loss."""
        closure = args[0] if args else kwargs.get("closure")
        if not self._follower or self._said is not None or callable(closure):
            return
        raise ValueError(
            f"[Gossip] the topology {self._follower!r} follows the loss, got none for this step; "
            "call gossip.observe(loss) before optimizer.step(), or give step() a closure that "
            "returns it"
        )

    def returned(self, loss: Any) -> None:
        """By the closure: counts unless a loss was said."""
        if self._said is None:
            self.say(loss)

    def take(self) -> float:
        """For the step; the last one again where none was said since, as where no batch is left."""
        if self._said is not None:
            self._last, self._said = self._said, None
        return self._last


def _number(loss: Any) -> float:
    try:
        return float(loss)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            "[Gossip] the loss must be a number or a tensor of one element, got "
            f"{type(loss).__name__}; give its mean: gossip.observe(losses.mean())"
        ) from None
