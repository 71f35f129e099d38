"""An epoch in which workers have unequal numbers of batches.

Note [Leaving early]: a worker that has no batch left goes on mixing without stepping, so that its
neighbours are never left waiting, until all have left and have done equally many steps. How many
that are stands in the group's store, which only those that have left ask: a step may be begun by
them when the target is that far, and only they raise it, until the last one to leave closes it.
Nobody begins a step beyond a closed target and everybody does all steps up to it, so nobody waits
for ever. How far a worker gets ahead of those that still train is bounded by mixing: each step
waits for the neighbours' last one.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch

from gossamer.session.team import UNEVEN
from gossamer.step.carried import masters_of
from gossamer.step.run import Run
from gossamer.step.runs import run_of
from gossamer.tensors.trained import Trained
from gossamer.workers.board import Board, next_number
from gossamer.workers.world import board_of

_NAP_S = 0.005


class Tally(NamedTuple):
    """What those that have left agree on."""

    target: int  # steps that all will have done, at least
    fewest: int  # that a worker had done when it left
    most: int
    closed_by: int | None = None  # the last one to leave; from then on nothing changes


class Agreement:
    """The tally of one epoch, in a store; changed by compare-and-set only."""

    def __init__(self, board: Board, place: str, rank: int, size: int) -> None:
        self._board = board
        self._place = place
        self._rank = rank
        self._size = size
        self._seen = ""  # as it stood in the store last

    def leave(self, steps: int) -> None:
        """Says that this worker has no batch left after ``steps`` steps. Once."""
        self._change(
            lambda tally: (
                Tally(max(tally.target, steps), min(tally.fewest, steps), max(tally.most, steps))
                if tally
                else Tally(steps, steps, steps)
            )
        )
        if self._board.add(f"{self._place}/left", 1) == self._size:
            self._change(lambda tally: tally._replace(closed_by=self._rank) if tally else None)

    def may_begin(self, step: int) -> bool:
        """Whether to do step number ``step``; asks for it while that can be. False: all is done."""
        if self.tally.target < step:
            self._change(
                lambda tally: (
                    tally._replace(target=max(tally.target, step))
                    if tally and tally.closed_by is None
                    else tally
                )
            )
        return step <= self.tally.target

    @property
    def tally(self) -> Tally:
        """As it was seen last; after ``leave``."""
        return Tally(*json.loads(self._seen))

    def _change(self, update: Callable[[Tally | None], Tally | None]) -> None:
        while True:
            after = json.dumps(update(self.tally if self._seen else None))
            key = f"{self._place}/tally"
            self._seen, before = (
                self._board.compare_set(key, self._seen, after).decode(),
                self._seen,
            )
            if self._seen in (after, before):
                return


class Counts:
    """Steps and gradient averages of a worker since it began an epoch."""

    def __init__(self, run: Run) -> None:
        self._run = run
        engine = run.team.engine
        self._before = (engine.steps_done, engine.gradient_passes - run.passes_since_mix)

    def passes_left(self) -> int:
        """Of the step that this worker is in, which it may have begun with a batch."""
        since = self._run.passes_since_mix
        return max(0, self._per_step(since) - since)

    def _per_step(self, since: int) -> int:
        """Gradient averages per step in this epoch; without a step of its own in all its steps."""
        engine = self._run.team.engine
        steps, passes = engine.steps_done, engine.gradient_passes - since
        if steps > self._before[0]:
            steps, passes = steps - self._before[0], passes - self._before[1]
        return max(1, passes // max(1, steps))


class Leaver:
    """What one Gossip does in an epoch."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._counts = Counts(run)
        world = run.session.world
        board = board_of(world, run.session.settings.timeout_s)
        place = f"gossamer/uneven/{next_number(board, world.rank, world.size)}"
        self._agreement = Agreement(board, place, world.rank, world.size)

    def leave(self, is_over: Callable[[], bool]) -> None:
        """Mixes without stepping until all have left, or it ``is_over``."""
        team = self._run.team
        self._agreement.leave(team.engine.steps_done)
        while not is_over() and self._agreement.may_begin(team.engine.steps_done + 1):
            _step_without_batch(self._run, self._counts)

    def meet(self) -> None:
        """All have left: nobody asks the store any more, and under "allreduce" all have one model
        again. Collective."""
        with self._run.team.within(UNEVEN):
            self._run.team.engine.barrier()  # whose process holds the store may end now
        tally = self._agreement.tally
        if _has_one_model(self._run) and tally.fewest < tally.most:
            _follow(self._run, tally)


_open: ContextVar[bool] = ContextVar("inside of uneven()", default=False)


@contextmanager
def uneven(*gossips: object) -> Iterator[None]:
    """An epoch in which workers have unequal numbers of batches for the models of several Gossips:
    ``with gossamer.uneven(a, b):`` around it, as ``with a.uneven():`` for one.

    A worker that leaves goes on mixing all of them until all workers have left. Collective.

    Example::

        with gossamer.uneven(gossip):
            for x, y in loader:
                loss_of(model, x, y).backward()
                optimizer.step()
    """
    runs = [run_of(gossip, UNEVEN) for gossip in gossips]
    for run in runs:
        run.team.refuse_inside(UNEVEN)
        if run.session.settings.lost == "go_on":
            raise RuntimeError(
                "[Gossip] uneven() waits for all workers, got lost='go_on', with which some may "
                "never leave; deal the data with gossamer.Shares, or use lost='error'"
            )
    if _open.get():
        raise RuntimeError(
            "[Gossip] uneven() inside uneven() of another Gossip, which would wait for each other "
            "at their ends; use one block for both: with gossamer.uneven(a, b)"
        )
    several = [run for run in runs if run.session.world.size > 1]
    for run in several:
        run.team.agree(UNEVEN)
    leavers = [Leaver(run) for run in several]
    token = _open.set(True)
    try:
        with ExitStack() as stack:
            for run in several:
                stack.enter_context(run.team.inside(UNEVEN))
            yield
            _leave_all(leavers)
    finally:
        _open.reset(token)
    for leaver in leavers:
        leaver.meet()


def _leave_all(leavers: list[Leaver]) -> None:
    """Each in a thread, where there are several: others may step them in any order, so that one
    must not wait for the other."""
    if len(leavers) == 1:
        leavers[0].leave(lambda: False)
        return
    over = threading.Event()
    errors: list[BaseException] = []

    def leave(leaver: Leaver) -> None:
        try:
            leaver.leave(over.is_set)
        except BaseException as error:
            errors.append(error)
            over.set()

    threads = [threading.Thread(target=leave, args=(each,), daemon=True) for each in leavers]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and not errors:
            time.sleep(_NAP_S)
    finally:
        over.set()
    if errors:
        raise errors[0]


def _step_without_batch(run: Run, counts: Counts) -> None:
    if run.session.averages_gradients(run.trained.rule):
        with run.team.within(UNEVEN):
            is_finite = _has_others_gradients(run, counts.passes_left())
        if is_finite and _has_one_model(run):
            run.step_all()
            return
    run.rest()


# pattern="allreduce", where all workers have one model.


def _has_one_model(run: Run) -> bool:
    return run.session.settings.pattern == "allreduce"


def _has_others_gradients(run: Run, passes: int) -> bool:
    """Takes part in the backward passes of a step with no gradient of its own.

    Returns whether the mean gradient is finite; a GradScaler skips the others' step where not.
    """
    run.trained.optimizers.forget_gradients()
    for _ in range(passes):
        run.team.engine.pass_without_backward()
    grads = (p.grad for p in run.trained.tensors if p.grad is not None)
    return all(bool(torch.isfinite(grad).all()) for grad in grads)


def _follow(run: Run, tally: Tally) -> None:
    """Gives everybody the parameters and optimizer state of the last to leave. Collective.

    Those that left before do not know what clipping, scaling and schedules did to its steps.
    """
    world, engine = run.session.world, run.team.engine
    masters = masters_of(engine, run.trained)
    places = [(i, id(p)) for i, p in enumerate(run.trained.tensors) if id(p) in masters]
    tensors = _floats_of(run.trained) | {f"{i}/master": masters[of] for i, of in places}
    cards = run.team.exchange(UNEVEN, {"keys": list(tensors)})
    common = [key for key in tensors if all(key in card["keys"] for card in cards)]
    is_last = world.rank == tally.closed_by
    with torch.no_grad():
        for key in common:  # the mean of n times its values and of zeros
            values = tensors[key].double()
            wide = values * world.size if is_last else torch.zeros_like(values)
            engine.average([wide])
            tensors[key].copy_(wide)
        for i, of in places:
            engine.set_home(i, masters[of])


def _floats_of(trained: Trained) -> dict[str, torch.Tensor]:
    """Parameters and their floating-point state, by index and name; complex ones as real views."""
    found: dict[str, torch.Tensor] = {}
    for i, parameter in enumerate(trained.tensors):
        found[str(i)] = parameter.detach()
        for name, value in trained.optimizers.state_of(parameter).items():
            if isinstance(value, torch.Tensor) and name != "step":
                found[f"{i}/{name}"] = value
    real = {key: torch.view_as_real(v) if v.is_complex() else v for key, v in found.items()}
    return {key: value for key, value in real.items() if value.is_floating_point()}
