"""What a worker that comes back goes on from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gossamer import _core
from gossamer.step.carried import Carried
from gossamer.tensors.fused import FusedState
from gossamer.tensors.trained import Trained


class Back(NamedTuple):
    """``beside``: see HandedOver. ``arrival`` has yet to agree with the others on the step to begin
    with."""

    trained: Trained
    carried: Carried
    beside: Sequence[Any]
    arrival: _core.Arrival

    def start(self, engine: _core.Engine, state: FusedState | None) -> None:
        """Agrees with them. Raises TransportError; there may be another try with another engine."""
        try:
            engine.start_back(self.arrival)
        except _core.TransportError:
            if state is not None:
                state.release()
            engine.close()
            raise
