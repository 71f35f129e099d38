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
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

import torch

from gossamer import _core, patterns
from gossamer.board import Board, next_number
from gossamer.consensus import refuse_inside
from gossamer.roll_call import agree, exchange, within
from gossamer.world import board_of

if TYPE_CHECKING:
    from gossamer.gossip import Gossip


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

    def __init__(self, engine: _core.Engine) -> None:
        self._engine = engine
        self._before = (engine.steps_done, engine.gradient_passes)

    def passes_per_step(self) -> int:
        """Gradient averages per step in this epoch; without a step of its own in all its steps."""
        steps, passes = self._engine.steps_done, self._engine.gradient_passes
        if steps > self._before[0]:
            steps, passes = steps - self._before[0], passes - self._before[1]
        return max(1, passes // max(1, steps))


class Leaver:
    """What one Gossip does in an epoch."""

    def __init__(self, gossip: Gossip) -> None:
        self._gossip = gossip
        self._counts = Counts(gossip._engine)
        world = gossip._world
        board = board_of(world, gossip._settings.timeout_s)
        place = f"gossamer/uneven/{next_number(board, world.rank, world.size)}"
        self._agreement = Agreement(board, place, world.rank, world.size)

    def leave(self, is_over: Callable[[], bool]) -> None:
        """Mixes without stepping until all have left, or it ``is_over``."""
        engine = self._gossip._engine
        self._agreement.leave(engine.steps_done)
        while not is_over() and self._agreement.may_begin(engine.steps_done + 1):
            _step_without_batch(self._gossip, self._counts)

    def meet(self) -> None:
        """All have left: nobody asks the store any more, and under "allreduce" all have one model
        again. Collective."""
        with within(self._gossip, "uneven()"):
            self._gossip._engine.barrier()  # whose process holds the store may end now
        tally = self._agreement.tally
        if self._gossip._settings.pattern == "allreduce" and tally.fewest < tally.most:
            _follow(self._gossip, tally)


_open: ContextVar[bool] = ContextVar("inside of uneven()", default=False)


@contextmanager
def uneven(*gossips: Gossip) -> Iterator[None]:
    """An epoch in which workers have unequal numbers of batches for the models of several Gossips:
    ``with gossamer.uneven(a, b):`` around it, as ``with a.uneven():`` for one.

    A worker that leaves goes on mixing all of them until all workers have left. Collective.

    Example::

        with gossamer.uneven(gossip):
            for x, y in loader:
                loss_of(model, x, y).backward()
                optimizer.step()
    """
    for gossip in gossips:
        refuse_inside(gossip._block, "uneven()")
    if _open.get():
        raise RuntimeError(
            "[Gossip] uneven() inside uneven() of another Gossip, which would wait for each other "
            "at their ends; use one block for both: with gossamer.uneven(a, b)"
        )
    several = [gossip for gossip in gossips if gossip._world.size > 1]
    for gossip in several:
        agree(gossip, "uneven()")
    leavers = [Leaver(gossip) for gossip in several]
    token = _open.set(True)
    for gossip in several:
        gossip._block = "uneven()"
    try:
        yield
        _leave_all(leavers)
    finally:
        _open.reset(token)
        for gossip in several:
            gossip._block = ""
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


def _step_without_batch(gossip: Gossip, counts: Counts) -> None:
    if gossip._settings.pattern == "allreduce":
        with within(gossip, "uneven()"):
            is_finite = _has_others_gradients(gossip, counts.passes_per_step())
        if is_finite:
            gossip._optimizer.step()
            return
    with within(gossip, "uneven()"):
        groups, loss = patterns.resting_groups(gossip), gossip._loss.take()
        gossip.last_step = gossip._engine.step(groups, skip=True, loss=loss)
    gossip._totals.add(gossip.last_step)
    if gossip._state is not None:
        gossip._state.after_step()
    gossip._metrics.step(gossip)


# pattern="allreduce", where all workers have one model.


def _has_others_gradients(gossip: Gossip, passes: int) -> bool:
    """Takes part in the backward passes of a step with no gradient of its own.

    Returns whether the mean gradient is finite; a GradScaler skips the others' step where not.
    """
    gossip._optimizer.zero_grad(set_to_none=True)
    for _ in range(passes):
        gossip._engine.pass_without_backward()
    grads = (p.grad for p in gossip._parameters if p.grad is not None)
    return all(bool(torch.isfinite(grad).all()) for grad in grads)


def _follow(gossip: Gossip, tally: Tally) -> None:
    """Gives everybody the parameters and optimizer state of the last to leave. Collective.

    Those that left before do not know what clipping, scaling and schedules did to its steps.
    """
    world = gossip._world
    tensors = _floats_of(gossip)
    cards = exchange(gossip, "uneven()", {"keys": list(tensors)})
    common = [key for key in tensors if all(key in card["keys"] for card in cards)]
    is_last = world.rank == tally.closed_by
    with torch.no_grad():
        for key in common:  # the mean of n times its values and of zeros
            values = tensors[key].double()
            wide = values * world.size if is_last else torch.zeros_like(values)
            gossip._engine.average([wide])
            tensors[key].copy_(wide)


def _floats_of(gossip: Gossip) -> dict[str, torch.Tensor]:
    """Parameters and their floating-point state, by index and name; complex ones as real views."""
    found: dict[str, torch.Tensor] = {}
    for i, parameter in enumerate(gossip._parameters):
        found[str(i)] = parameter.detach()
        for name, value in gossip._optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor) and name != "step":
                found[f"{i}/{name}"] = value
    real = {key: torch.view_as_real(v) if v.is_complex() else v for key, v in found.items()}
    return {key: value for key, value in real.items() if value.is_floating_point()}
