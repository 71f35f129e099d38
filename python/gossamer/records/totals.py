"""What a worker has waited and sent so far."""

from __future__ import annotations

from typing import Any

from gossamer import _core


class Totals:
    """Seconds over all steps, also those of engines that are no more."""

    def __init__(self) -> None:
        self._exposed_s = self._hidden_s = 0.0
        self._skipped = 0
        self._lost: dict[int, str] = {}

    def add(self, step: _core.StepReport) -> None:
        self._exposed_s += step.exposed_s
        self._hidden_s += step.hidden_s
        self._skipped += step.skipped
        self._lost |= {each.rank: each.why for each in step.lost}
        for each in step.back:
            self._lost.pop(each.rank, None)

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
