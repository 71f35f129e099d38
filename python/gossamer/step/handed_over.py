"""What a worker that comes back is given beside the model and the optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class HandedOver:
    """Of one run; ``received``: by the other worker, None where it was there from the start."""

    def __init__(self, received: Sequence[Any] | None) -> None:
        self.came_back = received is not None
        self._received = list(received or [])
        self._states: list[Callable[[], Any]] = []

    def add(self, state: Callable[[], Any]) -> Any:
        """From now on whoever comes back is given this as well, as JSON. Returns what this worker
        was given, where the other one had added as many before; or None."""
        place = len(self._states)
        self._states.append(state)
        return self._received[place] if place < len(self._received) else None

    def states(self) -> list[Any]:
        """As they are now."""
        return [state() for state in self._states]
