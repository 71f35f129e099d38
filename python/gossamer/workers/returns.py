"""When those that have come back have done their first step.

Note [First steps]: the others count on a worker that has come back from the end of its first step
on: it takes part in what they call together. What they call then, and whether, is up to what their
loops know, such as the best loss so far. So the doors of other trainers have all tell it at the end
of that step, before anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gossamer import _core


class Returns:
    """``own``: after so many steps this worker has come back itself; None: it has not."""

    def __init__(self, own: int | None = None) -> None:
        self._own = own
        self._before = set() if own is None else {own}

    def told(self, gossip: Any, known: Callable[[], Any]) -> Any:
        """After each step of this Gossip. Where somebody has done its first one, all say what they
        know, as JSON; what the others know where it was this worker's, else None."""
        step = gossip.last_step
        if step is None or not self._look(gossip.steps_done, step.back):
            return None
        is_new = self.is_own(gossip.steps_done)
        said = gossip.gather(None if is_new else known())
        told = [each for each in said.values() if each is not None]
        return told[0] if is_new and told else None

    def _look(self, done: int, back: Iterable[_core.PeerBack]) -> bool:
        """Whether somebody has done its first step now; ``back``: who has said in it when it comes
        back. All workers get the same."""
        self._before.update(each.steps for each in back)
        is_first = done - 1 in self._before
        self._before.discard(done - 1)
        return is_first

    def is_own(self, done: int) -> bool:
        """Whether the last of so many steps is this worker's first."""
        return self._own == done - 1
