"""What a worker has waited and sent so far, and whom it has lost and met again."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from gossamer import _core

_MOST_EVENTS = 10_000


class Event(NamedTuple):
    """See Gossip.events."""

    kind: str
    rank: int
    step: int
    why: str


class Totals:
    """Seconds over all steps, also those of engines that are no more."""

    def __init__(self) -> None:
        self._exposed_s = self._hidden_s = 0.0
        self._skipped = 0
        self._lost: dict[int, str] = {}
        self._events: deque[Event] = deque(maxlen=_MOST_EVENTS)

    def add(self, step: _core.StepReport) -> None:
        self._exposed_s += step.exposed_s
        self._hidden_s += step.hidden_s
        self._skipped += step.skipped
        self._lost |= {each.rank: each.why for each in step.lost}
        self._events += [Event("lost", each.rank, step.step, each.why) for each in step.lost]
        for each in step.back:
            self._lost.pop(each.rank, None)
            self._events.append(Event("back", each.rank, each.steps + 1, ""))

    def take_events(self) -> list[Event]:
        events = list(self._events)
        self._events.clear()
        return events

    def waited(self, engine: _core.Engine) -> tuple[float, float]:
        """Seconds exposed and hidden so far."""
        return (
            self._exposed_s + engine.backward_exposed_s,
            self._hidden_s + engine.backward_hidden_s,
        )

    def keep(self, engine: _core.Engine) -> None:
        """Takes over what the engine has counted in backward passes; it is about to close."""
        self._exposed_s += engine.backward_exposed_s
        self._hidden_s += engine.backward_hidden_s

    def stats(self, engine: _core.Engine) -> dict[str, Any]:
        """See Gossip.stats."""
        exposed_s, hidden_s = self.waited(engine)
        return {
            "steps": engine.steps_done,
            "exposed_s": exposed_s,
            "hidden_s": hidden_s,
            "skipped": self._skipped,
            "lost": dict(self._lost),
            "edges": {peer: {"sent": s, "received": r} for peer, s, r in engine.edges()},
        }
