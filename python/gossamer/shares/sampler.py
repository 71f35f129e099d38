"""Who trains on which samples, where workers may be lost and come back; see Note [Shares]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch.utils.data import Sampler

from gossamer.shares.rounds import (
    Round,
    Said,
    Timeline,
    Work,
    begin,
    dealt,
    following,
    rest_of,
    share,
)
from gossamer.step.run import Run
from gossamer.step.runs import run_of

_DEAL = "Shares.deal()"


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
    worker that comes back may train on others' samples until the round ends. Do not give the loader
    to ``accelerator.prepare``, which would split it once more.

    Memory: 8 bytes per sample. Raises ValueError for sizes below 1, and RuntimeError where a worker
    comes back to others that have none yet.

    Example::

        shares = gossamer.Shares(gossip, len(data), batch_size=32, epochs=3)
        loader = torch.utils.data.DataLoader(data, batch_sampler=shares)
        while shares.deal():
            for x, y in loader:
                optimizer.zero_grad()
                loss_of(model, x, y).backward()
                optimizer.step()
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
        self._every = every
        self._timeline: Timeline | None = None  # until the first deal
        self._round: Round | None = None  # also where this worker does not know it
        self._since: int | None = None
        self._came: int | None = None  # after which step it has come back
        self._end: int | None = None  # of the round that was dealt
        self._lost: dict[int, int] = {}
        self._orders: dict[int, torch.Tensor] = {}
        run.after_step(self._note)
        handed = run.handed_over.add(lambda: self._state() if self._timeline else None)
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
        timeline = self._begun()
        if self._end is not None:
            self._agree(timeline, self._end)
        if self._round is not None and not dealt(self._work, self._round):
            return False
        self._end = timeline.next_end(self._run.team.engine.steps_done)
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
        work, of = self._work, self._round
        parts = work.per_step // self._batch_size
        places = dealt(work, of) if of is not None else ()
        for step in range(self._run.team.engine.steps_done, self._end):
            own = share(work, of, places, self._rank, step) if of is not None else ()
            least = work.per_step if of is None else parts
            if len(own) < least:
                own = [*own, *self._again(step, least - len(own))]
            self._run.metrics.deal(step + 1, len(own))
            for k in range(parts):
                chosen = own[k * len(own) // parts : (k + 1) * len(own) // parts]
                yield [self._sample(place) for place in chosen]

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint, with that of the Gossip; the same on all ranks. Where workers are lost,
        save between two rounds: then it knows what they have not done."""
        return {
            **self._state(),
            "steps": self._run.team.engine.steps_done,
            "work": asdict(self._work),
        }

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
        self._timeline, self._round, self._since, self._end = timeline, of, of.begin, None

    def _begun(self) -> Timeline:
        if self._timeline is None:
            step = self._run.team.engine.steps_done
            self._timeline, self._round = begin(self._work, step, self._every)
            self._since = step
        return self._timeline

    def _state(self) -> dict[str, Any]:
        timeline = self._begun()
        of = None if self._round is None else asdict(self._round)
        return {"timeline": asdict(timeline), "round": of}

    def _come_back(self, handed: Any) -> None:
        if handed is None:
            raise RuntimeError(
                f"[Gossip] rank {self._rank} comes back, but the others have not dealt Shares yet; "
                "make it right after the Gossip, and deal before the first step"
            )
        step = self._run.team.engine.steps_done
        self._timeline, of = _read(handed)
        knows = of is not None and of.begin <= step < of.end
        self._came = step
        self._round, self._since = (of, step) if knows else (None, None)

    def _note(self, run: Run) -> None:
        if run.last_step is not None:
            for each in run.last_step.lost:
                self._lost.setdefault(each.rank, run.last_step.step)

    def _agree(self, timeline: Timeline, end: int) -> None:
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
            self._round = following(self._work, timeline, self._round, everybody)
            return
        own = {"since": self._since, "lost": list(self._lost.items()), "came": self._came}
        cards = team.by_rank(team.exchange(_DEAL, {**own, "knows": self._round is not None}))
        said = {
            r: Said(card["since"], dict(card["lost"]), card["came"]) for r, card in cards.items()
        }
        of = self._round
        if of is not None:
            of = following(self._work, timeline, of, said)
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
        tells = self._rank == knows[0]
        team = self._run.team
        card = {"round": asdict(of)} if of is not None and tells else {}
        told = team.by_rank(team.exchange(_DEAL, card))
        if knows[0] not in told:
            return self._told(of, [rank for rank in knows[1:] if rank in told])
        return of if of is not None else _round(told[knows[0]]["round"])

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
