"""Rounds: which samples are dealt to whom, and what is left after a round.

Note [Shares]: the samples of all epochs stand in one order, a permutation after the other. A round
deals as many of them as all workers take in its steps, also to workers that are not there. At its
end all that are there say what was done; what was not, comes first in the next round. When rounds
end is known beforehand, so that a worker that comes back meets the others there: every so many
steps, and at the step where nothing would be left if nobody was ever lost. Then short rounds follow
until nothing is left. A worker that comes back in the round of the state that it was given takes
its own share from there on. In a later one it does not know the shares. So until the end of that
round it trains on samples that others train on as well.

What a lost worker has done counts as far as its neighbours have its parameters, and they know when
they last had them. Where a neighbour may have been lost as well, or has come back too lately to
have edges, nobody may know: then all that the worker was dealt in this round is dealt again.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gossamer import _core

_SHORT_ROUND = 8  # steps, after the planned end


@dataclass(frozen=True)
class Work:
    """What there is to deal: samples in all epochs, to so many workers, so many in a step."""

    total: int
    workers: int
    per_step: int


@dataclass(frozen=True)
class Timeline:
    """The steps with which rounds end: ``every`` so many from ``origin``, and ``planned_end``."""

    origin: int
    every: int
    planned_end: int

    def next_end(self, step: int) -> int:
        """The first after so many steps."""
        if step < self.planned_end:
            rounds = (step - self.origin) // self.every + 1
            return min(self.origin + rounds * self.every, self.planned_end)
        return step + _SHORT_ROUND - (step - self.planned_end) % _SHORT_ROUND


@dataclass(frozen=True)
class Round:
    """From one step to another. ``left`` are places in the order that earlier rounds have not done,
    ``cursor`` is the first that nobody was dealt. ``absent`` are ranks that were not there at its
    beginning."""

    begin: int
    end: int
    cursor: int = 0
    left: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()


class Said(NamedTuple):
    """What a worker says at the end of a round: since which step it has done its own share, None
    where it does not know it; who was lost in the round, by rank with the step; and after which
    step it had come back itself, None where it was there from the start."""

    since: int | None
    lost: Mapping[int, int] = {}
    came: int | None = None


def begin(work: Work, step: int, every: int, rest: Round | None = None) -> tuple[Timeline, Round]:
    """A timeline from this step on, and its first round. ``rest``: what is left to do."""
    cursor, left = (rest.cursor, rest.left) if rest is not None else (0, ())
    count = len(left) + work.total - cursor
    steps = math.ceil(count / (work.workers * work.per_step))
    timeline = Timeline(step, every, step + steps)
    return timeline, Round(step, timeline.next_end(step), cursor, left)


def dealt(work: Work, of: Round) -> Sequence[int]:
    """The places that a round deals, in order."""
    room = (of.end - of.begin) * work.workers * work.per_step
    old = of.left[:room]
    new = range(of.cursor, min(work.total, of.cursor + room - len(old)))
    return [*old, *new] if old else new


def share(work: Work, of: Round, places: Sequence[int], rank: int, step: int) -> Sequence[int]:
    """Of the dealt places: what a worker trains on in the step after so many. Where they do not
    fill the round, every step has a little less, perhaps nothing."""
    slots = (of.end - of.begin) * work.workers
    slot = (step - of.begin) * work.workers + rank
    count = min(len(places), slots * work.per_step)
    return places[slot * count // slots : (slot + 1) * count // slots]


def following(work: Work, timeline: Timeline, of: Round, said: Mapping[int, Said]) -> Round:
    """The next round, from what all that are there have said at the end of this one."""
    is_known = _is_known(work, of, said)
    rest = _without(work, of, [_done_by(of, rank, said, is_known) for rank in range(work.workers)])
    absent = tuple(rank for rank in range(work.workers) if rank not in said)
    return replace(rest, begin=of.end, end=timeline.next_end(of.end), absent=absent)


def _is_known(work: Work, of: Round, said: Mapping[int, Said]) -> bool:
    """Whether all neighbours of who was lost in this round were there all the time, with edges."""
    away = {
        rank for rank in range(work.workers) if rank not in said or said[rank].since != of.begin
    }
    lost = away.union(of.absent, *(each.lost for each in said.values()))
    others = [each.came for rank, each in said.items() if rank not in lost]
    came = [step for step in others if step is not None]
    return len(lost) <= 1 and all(of.begin - step >= _core.STEPS_UNTIL_EDGES for step in came)


def _done_by(of: Round, rank: int, said: Mapping[int, Said], is_known: bool) -> range | set[int]:
    """The steps of its share that are in the parameters of those that are there."""
    since = said[rank].since if rank in said else None
    own = range(of.end if since is None else since, of.end)
    if rank in of.absent:  # of a life between, nobody knows when it began
        return own
    # The others have the parameters that it sent last, and with them its step before that. Some may
    # notice late: those that it is no neighbour of.
    noticed = [each.lost[rank] - 2 for each in said.values() if rank in each.lost]
    if (rank in said and not noticed) or not is_known:
        return own
    return {*range(of.begin, min(noticed, default=of.end - 1)), *own}


def rest_of(work: Work, of: Round, step: int) -> Round:
    """What is left after so many steps of a round, where nobody was lost."""
    return _without(work, of, [range(of.begin, step)] * work.workers)


def _without(work: Work, of: Round, done: Sequence[Container[int]]) -> Round:
    """What is left where each rank has done these steps of its share."""
    places = dealt(work, of)
    undone = [
        place
        for step in range(of.begin, of.end)
        for rank in range(work.workers)
        if step not in done[rank]
        for place in share(work, of, places, rank, step)
    ]
    old = min(len(places), len(of.left))
    return replace(of, cursor=of.cursor + len(places) - old, left=(*undone, *of.left[old:]))
