"""Who trains on which samples, where workers may be lost and come back.

Note [Shares]: the samples of all epochs stand in one order, a permutation after the other. A round
deals as many of them as all workers take in its steps, also to workers that are not there. At its
end all that are there say what was done; what was not, comes first in the next round. When rounds
end is known beforehand, so that a worker that comes back meets the others there: every so many
steps, and at the step where nothing would be left if nobody was ever lost. Then short rounds follow
until nothing is left. A worker that comes back in the round of the state that it was given takes
its own share from there on. In a later one it does not know the shares. So until the end of that
round it trains on samples that others train on as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import torch
from torch.utils.data import Sampler

from gossamer.step.run import Run
from gossamer.step.runs import run_of

_DEAL = "Shares.deal()"
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
    where it does not know it; and who was lost in the round, by rank with the step."""

    since: int | None
    lost: Mapping[int, int] = {}


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
    places = dealt(work, of)
    done = [_done_by(of, rank, said) for rank in range(work.workers)]
    undone = [
        place
        for step in range(of.begin, of.end)
        for rank in range(work.workers)
        if step not in done[rank]
        for place in share(work, of, places, rank, step)
    ]
    old = min(len(places), len(of.left))
    return Round(
        begin=of.end,
        end=timeline.next_end(of.end),
        cursor=of.cursor + len(places) - old,
        left=(*undone, *of.left[old:]),
        absent=tuple(rank for rank in range(work.workers) if rank not in said),
    )


def _done_by(of: Round, rank: int, said: Mapping[int, Said]) -> range | set[int]:
    """The steps of its share that are in the parameters of those that are there."""
    since = said[rank].since if rank in said else None
    own = range(of.end if since is None else since, of.end)
    if rank in of.absent:  # of a life between, nobody knows when it began
        return own
    # The others have the parameters that it sent last, and with them its step before that.
    noticed = [each.lost[rank] - 2 for each in said.values() if rank in each.lost]
    if rank in said and not noticed:
        return own
    return {*range(of.begin, max(noticed, default=of.end - 1)), *own}


def rest_of(work: Work, of: Round, step: int) -> Round:
    """What is left after so many steps of a round, where nobody was lost."""
    places = dealt(work, of)
    undone = [
        place
        for later in range(step, of.end)
        for rank in range(work.workers)
        for place in share(work, of, places, rank, later)
    ]
    old = min(len(places), len(of.left))
    return replace(
        of, begin=step, cursor=of.cursor + len(places) - old, left=(*undone, *of.left[old:])
    )


class Shares(Sampler[list[int]]):
    """Deals the samples of a map-style dataset to the workers of a Gossip, in batches.

    Every sample is trained on once in each epoch, also where workers are lost or come back: what a
    lost worker has not done is dealt again. Without losses it deals as DistributedSampler does.

    Args:
        gossip: whose workers train. Make it first.
        size: samples of the dataset, ``len(dataset)``.
        batch_size: samples of a batch. The last batches of all may have fewer.
        epochs: so often is every sample trained on.
        batches_per_step: of gradients that are summed before ``optimizer.step()``.
        every: so many steps are a round, at whose end all workers agree on what is left.
        shuffle: another order in each epoch, in place of the dataset's.
        seed: of these orders.

    A batch sampler for a DataLoader. The loop has one more line: ``deal()`` is True while something
    is left, and the loader then has the batches of one round. Every worker steps once for each
    ``batches_per_step`` of them. A loss costs about two batches that are trained on once more. A
    worker that comes back may train on others' samples until the round ends.

    Memory: 8 bytes per sample. Raises ValueError for sizes below 1, and RuntimeError where a worker
    comes back to others that have none yet.

    Example::

        shares = gossamer.Shares(gossip, len(data), batch_size=32, epochs=3)
        loader = DataLoader(data, batch_sampler=shares)
        while shares.deal():
            for x, y in loader:
                loss_of(model, x, y).backward()
                optimizer.step()
                optimizer.zero_grad()
    """

    def __init__(
        self,
        gossip: object,
        size: int,
        batch_size: int,
        *,
        epochs: int = 1,
        batches_per_step: int = 1,
        every: int = 50,
        shuffle: bool = True,
        seed: int = 0,
    ) -> None:
        run = run_of(gossip, "Shares")
        asked = {"size": size, "batch_size": batch_size, "epochs": epochs, "every": every}
        for name, value in {**asked, "batches_per_step": batches_per_step}.items():
            if value < 1:
                raise ValueError(f"[Gossip] {name} of Shares is 1 or more, got {value}")
        self._run, self._size, self._batch_size = run, size, batch_size
        self._seed = seed if shuffle else None
        self._rank = run.session.world.rank
        self._work = Work(size * epochs, run.session.world.size, batch_size * batches_per_step)
        self._timeline, first = begin(self._work, run.team.engine.steps_done, every)
        self._round: Round | None = first
        self._since: int | None = first.begin
        self._end: int | None = None  # of the round that was dealt
        self._lost: dict[int, int] = {}
        self._orders: dict[int, torch.Tensor] = {}
        run.after_step(self._note)
        handed = run.handed_over.add(self._state)
        if run.handed_over.came_back:
            self._come_back(handed)

    @property
    def epoch(self) -> int:
        """Of the first samples of this round that were never dealt before, from 0."""
        done = self._round.cursor if self._round is not None else 0
        return min(done, self._work.total - 1) // self._size

    def deal(self) -> bool:
        """Whether a round is left; its batches are then those of the loader. Collective, after
        equally many steps. Raises RuntimeError before the last step of a round."""
        if self._end is not None:
            self._agree(self._end)
        if self._round is not None and not dealt(self._work, self._round):
            return False
        self._end = self._timeline.next_end(self._run.team.engine.steps_done)
        return True

    def __len__(self) -> int:
        """Batches of this round that are left."""
        steps = (self._end or 0) - self._run.team.engine.steps_done
        return max(0, steps) * self._work.per_step // self._batch_size

    def __iter__(self) -> Iterator[list[int]]:
        if self._end is None:
            raise RuntimeError(
                "[Gossip] nothing has been dealt; go over the loader inside of "
                "`while shares.deal():`"
            )
        work, of, batch = self._work, self._round, self._batch_size
        places = dealt(work, of) if of is not None else ()
        for step in range(self._run.team.engine.steps_done, self._end):
            own = share(work, of, places, self._rank, step) if of is not None else ()
            count = work.per_step if of is None else work.per_step // batch
            own = own if len(own) >= work.per_step // batch else self._again(step, count)
            parts = work.per_step // batch
            for k in range(parts):
                chosen = own[k * len(own) // parts : (k + 1) * len(own) // parts]
                yield [self._sample(place) for place in chosen]

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint, with that of the Gossip; the same on all ranks."""
        state = self._state()
        return {**state, "steps": self._run.team.engine.steps_done, "work": asdict(self._work)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from there, after ``gossip.load``. With another number of workers or samples in
        a step, what was left is dealt anew. ValueError for another dataset, or other steps."""
        steps, work = self._run.team.engine.steps_done, Work(**state["work"])
        if work.total != self._work.total or state["steps"] != steps:
            raise ValueError(
                f"[Gossip] the state of Shares is of {work.total} samples after {state['steps']} "
                f"steps, got {self._work.total} after {steps}; load the Gossip of the same "
                "checkpoint before, and give the same size and epochs"
            )
        timeline, of = _read(state)
        if of is None:
            raise ValueError("[Gossip] the state of Shares was saved by a worker that had none")
        if work != self._work:
            timeline, of = begin(self._work, steps, timeline.every, rest_of(work, of, steps))
        self._timeline, self._round, self._since, self._end = timeline, of, steps, None

    def _state(self) -> dict[str, Any]:
        of = None if self._round is None else asdict(self._round)
        return {"timeline": asdict(self._timeline), "round": of}

    def _come_back(self, handed: Any) -> None:
        if handed is None:
            raise RuntimeError(
                f"[Gossip] rank {self._rank} comes back, but the others have no Shares yet; make "
                "it right after the Gossip"
            )
        step = self._run.team.engine.steps_done
        self._timeline, of = _read(handed)
        knows = of is not None and of.begin <= step < of.end
        self._round, self._since = (of, step) if knows else (None, None)

    def _note(self, run: Run) -> None:
        if run.last_step is not None:
            for each in run.last_step.lost:
                self._lost.setdefault(each.rank, run.last_step.step)

    def _agree(self, end: int) -> None:
        team = self._run.team
        steps = team.engine.steps_done
        if steps != end:
            raise RuntimeError(
                f"[Gossip] {_DEAL} comes after the last step of a round, got {steps} steps in "
                f"place of {end}; go over the whole loader, with one optimizer.step() for "
                "each batches_per_step of its batches"
            )
        if self._run.session.settings.lost == "error":
            assert self._round is not None
            everybody = {rank: Said(self._round.begin) for rank in range(self._work.workers)}
            self._round = following(self._work, self._timeline, self._round, everybody)
            return
        own = {"since": self._since, "lost": list(self._lost.items())}
        cards = team.by_rank(team.exchange(_DEAL, {**own, "knows": self._round is not None}))
        said = {r: Said(card["since"], dict(card["lost"])) for r, card in cards.items()}
        of = self._round
        if of is not None:
            of = following(self._work, self._timeline, of, said)
        knows = [rank for rank, card in cards.items() if card["knows"]]
        if len(knows) < len(cards):
            of = self._told(of, knows)
        self._round, self._since = of, end
        self._lost.clear()

    def _told(self, of: Round | None, knows: Sequence[int]) -> Round:
        """The round, by the lowest rank that knows it."""
        if not knows:
            raise RuntimeError(
                "[Gossip] all workers that are left have come back since the last round, so nobody "
                "knows what is left to train on; start from the last checkpoint"
            )
        tells = of is not None and self._rank == knows[0]
        team = self._run.team
        told = team.by_rank(team.exchange(_DEAL, self._packed(of) if tells else {}))
        if knows[0] not in told:
            return self._told(of, [rank for rank in knows[1:] if rank in told])
        return of if of is not None else _round(told[knows[0]]["round"])

    def _packed(self, of: Round | None) -> dict[str, Any]:
        return {"round": None if of is None else asdict(of)}

    def _again(self, step: int, count: int) -> list[int]:
        """Places for a step that has no share."""
        dice = torch.Generator().manual_seed(step * self._work.workers + self._rank)
        return torch.randint(self._work.total, (count,), generator=dice).tolist()

    def _sample(self, place: int) -> int:
        epoch, index = divmod(place, self._size)
        if self._seed is None:
            return index
        if epoch not in self._orders:
            dice = torch.Generator().manual_seed(self._seed + epoch)  # as DistributedSampler
            if len(self._orders) > 1:  # what is left of the epoch before
                del self._orders[min(self._orders)]
            self._orders[epoch] = torch.randperm(self._size, generator=dice)
        return int(self._orders[epoch][index])


def _round(state: Mapping[str, Any]) -> Round:
    lists = {name: tuple(state[name]) for name in ("left", "absent")}
    return Round(**{**state, **lists})


def _read(state: Mapping[str, Any]) -> tuple[Timeline, Round | None]:
    of = state["round"]
    return Timeline(**state["timeline"]), None if of is None else _round(of)
