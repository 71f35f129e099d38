"""How a collective method begins: all workers come to it, and find out whether they agree.

Over the workers' own transport, so that a worker that is lost, or waits somewhere else, is noticed
at once. See Note [Roll call] in gossamer/engine/roll_call.h for those that wait in a step.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from gossamer import _core
from gossamer.cards import Card, checked, told
from gossamer.world import explain

if TYPE_CHECKING:
    from gossamer.member import Member


_PATIENCE_S = 10.0


def begin(transport: _core.Transport, peers: list[int], rank: int, *, compares_steps: bool) -> None:
    """From now on the peers hear what this worker has come to."""

    def report(missing: list[int], where: str) -> None:
        say_waiting(rank, missing, where)

    transport.begin_roll_call(
        peers, compares_steps=compares_steps, report=report, patience_s=_PATIENCE_S
    )


def say_waiting(rank: int, missing: list[int], where: str) -> None:
    """A line for whoever looks why nothing happens."""
    whom = f"rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
    print(f"[Gossip] rank {rank}: waiting for {whom} in {where}", file=sys.stderr, flush=True)


@contextmanager
def within(member: Member, where: str) -> Iterator[None]:
    """Errors say that it was there."""
    try:
        yield
    except Exception as error:
        explain(error, member._world, where, member._settings.timeout_s)
        raise


def exchange(
    member: Member, operation: str, card: Card, problem: Exception | None = None
) -> list[Card]:
    """As ``cards.exchange``, among the workers of a Gossip that has begun. Collective."""
    own = json.dumps(told(operation, card, problem))
    with within(member, operation):
        said = member._engine.call(operation, own.encode())
    if problem is not None:
        raise problem
    return checked(member._world.rank, operation, [json.loads(each) for each in said])


def agree(
    member: Member,
    operation: str,
    describe: Callable[[], Sequence[str]] = tuple,
    *,
    compares_steps: bool | None = None,
) -> None:
    """Raises ValueError on every worker unless all have come to the same method, have done equally
    many steps and have the same lines in ``describe()``; where that raises, its error on this
    worker and one that tells of it on the others. Collective."""
    problem, lines = None, []
    try:
        lines = list(describe())
    except Exception as error:
        problem = error
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    steps = member._engine.steps_done
    cards = exchange(member, operation, {"steps": steps, "lines": digest}, problem)
    if compares_steps is None:
        compares_steps = member._settings.late == "wait"
    if compares_steps:
        _check_steps(operation, [card["steps"] for card in cards])
    if any(card["lines"] != cards[0]["lines"] for card in cards):
        _refuse(operation, exchange(member, operation, {"lines": lines}))


def _check_steps(operation: str, steps: list[int]) -> None:
    other = next((rank for rank, count in enumerate(steps) if count != steps[0]), None)
    if other is not None:
        raise ValueError(
            f"[Gossip] all ranks must come to {operation} after equally many steps, got "
            f"{steps[0]} on rank 0 and {steps[other]} on rank {other}; where they have unequal "
            "numbers of batches, train inside of gossip.uneven()"
        )


def _refuse(operation: str, cards: list[dict[str, Any]]) -> None:
    expected = cards[0]["lines"]
    rank, found = next((r, c["lines"]) for r, c in enumerate(cards) if c["lines"] != expected)
    pairs = zip_longest(expected, found, fillvalue="nothing")
    wanted, got = next(pair for pair in pairs if pair[0] != pair[1])
    raise ValueError(
        f"[Gossip] all ranks must have the same in {operation}: rank 0 has {wanted}, got {got} on "
        f"rank {rank}; make it the same on every rank, or leave it out of the model"
    )
