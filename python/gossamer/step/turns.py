"""Which optimizers of a run have stepped, and when they mix.

Note [One mix for all]: several optimizers over one model make one step of the run together. It ends
with a mix, in the call of ``step()`` by which each of them has stepped since the last mix, however
often: in the schedule D, D, G that is G's. Ranks run one program, so they mix in the same call. A
step that a GradScaler skips counts, because scalers of other ranks may not skip it. A checkpoint
has no parameters as they were sent, only as they are, so save() mixes before: what goes on from
there begins a new step.
"""

from __future__ import annotations


class Turns:
    """The optimizers, by number, that have stepped since the last mix while others have not."""

    def __init__(self, count: int) -> None:
        self._all = frozenset(range(count))
        self._stepped: frozenset[int] = frozenset()

    def would_end(self, which: int) -> bool:
        """Whether all have stepped once this one has."""
        return self._stepped | {which} == self._all

    def note(self, which: int) -> bool:
        """It has stepped. Whether all have, and it is time to mix."""
        self._stepped |= {which}
        return self._stepped == self._all

    @property
    def is_under_way(self) -> bool:
        """Whether some have, but not all."""
        return bool(self._stepped)

    def begin(self) -> None:
        """Nobody has."""
        self._stepped = frozenset()
