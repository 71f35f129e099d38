"""How a collective method begins: all workers come to it, and find out whether they agree.

Over the workers' own transport, so that a worker that is lost, or waits somewhere else, is noticed
at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import TypeVar

from gossamer import _core
from gossamer.base import closing
from gossamer.session.session import Session
from gossamer.workers.cards import Card, checked, told
from gossamer.workers.world import explain

T = TypeVar("T")

AVERAGED, UNEVEN = "averaged()", "uneven()"
"""The methods that go around a block."""


class Team:
    """The workers of one Gossip or Mixer, as each of them reaches the others.

    ``engine`` is the one that they mix with now; ``block`` the method in whose block this worker
    is, empty outside of all. ``has_failed``: something collective has. ``present`` are the ranks
    that took part in the last exchange: with lost="go_on" those that are left.
    """

    def __init__(self, session: Session, engine: _core.Engine) -> None:
        self.session = session
        self.engine = engine
        self.block = ""
        self.has_failed = False
        self.present = list(range(session.world.size))

    def follow(self, engine: _core.Engine) -> None:
        """Goes on with another engine over the same transport."""
        self.engine = engine

    def leave_group(self) -> None:
        """Keeps no process group any more: its threads may abort at the process's end."""
        self.session = self.session.without_group()

    @contextmanager
    def inside(self, block: str) -> Iterator[None]:
        """Inside of the block of a method."""
        self.block = block
        try:
            yield
        finally:
            self.block = ""

    def refuse_inside(self, what: str) -> None:
        """Raises RuntimeError for what cannot be called inside of a block."""
        if self.block == AVERAGED:
            raise RuntimeError(
                f"[Gossip] {what} inside averaged(), where all workers have the same; leave it "
                "first"
            )
        if self.block:
            raise RuntimeError(
                f"[Gossip] {what} inside {self.block}, which others may have left, so that they "
                "would not take part; call it after the block"
            )

    def close(self) -> None:
        """Once the others have what this worker has sent. Where it leaves because of an error they
        are to hear of that at once."""
        waits = closing.is_in_order() and not self.has_failed
        self.engine.close(gives_for_s=self.session.settings.timeout_s if waits else 0)

    @contextmanager
    def within(self, where: str) -> Iterator[None]:
        """Errors say that it was there."""
        try:
            yield
        except Exception as error:
            self.has_failed = self.has_failed or isinstance(error, _core.TransportError)
            explain(error, self.session.world, where, self.session.settings.timeout_s)
            raise

    def exchange(self, operation: str, card: Card, problem: Exception | None = None) -> list[Card]:
        """As ``cards.exchange``, among workers that have begun, in the order of those that are
        ``present``. Collective."""
        own = json.dumps(told(operation, card, problem))
        said = self.say(operation, own.encode())
        if problem is not None:
            raise problem
        told_by = {rank: json.loads(each) for rank, each in enumerate(said) if each}
        self.present = list(told_by)
        return checked(self.session.world.rank, operation, told_by)

    def say(self, operation: str, data: bytes) -> Sequence[bytes]:
        """What each rank says, of those that are lost nothing. Collective."""
        with self.within(operation):
            return self.engine.call(operation, data)

    def agree(
        self,
        operation: str,
        describe: Callable[[], Sequence[str]] = tuple,
        *,
        compares_steps: bool | None = None,
    ) -> None:
        """Raises ValueError on every worker unless all have come to the same method, have done
        equally many steps and have the same lines in ``describe()``; where that raises, its error
        on this worker and one that tells of it on the others. Collective."""
        problem, lines = None, []
        try:
            lines = list(describe())
        except Exception as error:
            problem = error
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        card = {"steps": self.engine.steps_done, "lines": digest}
        cards = self.exchange(operation, card, problem)
        if compares_steps is None:
            compares_steps = self.session.settings.late == "wait"
        if compares_steps:
            _check_steps(operation, self.by_rank([card["steps"] for card in cards]))
        if any(card["lines"] != cards[0]["lines"] for card in cards):
            told_lines = [each["lines"] for each in self.exchange(operation, {"lines": lines})]
            _refuse(operation, self.by_rank(told_lines))

    def by_rank(self, values: Sequence[T]) -> dict[int, T]:
        """What those that are present have said in the last exchange."""
        return dict(zip(self.present, values, strict=True))


def _check_steps(operation: str, steps: Mapping[int, int]) -> None:
    first = min(steps)
    other = next((rank for rank, count in steps.items() if count != steps[first]), None)
    if other is not None:
        raise ValueError(
            f"[Gossip] all ranks must come to {operation} after equally many steps, got "
            f"{steps[first]} on rank {first} and {steps[other]} on rank {other}; where they have "
            "unequal numbers of batches, train inside of gossip.uneven()"
        )


def _refuse(operation: str, lines: Mapping[int, list[str]]) -> None:
    first = min(lines)
    expected = lines[first]
    rank, found = next((r, said) for r, said in lines.items() if said != expected)
    pairs = zip_longest(expected, found, fillvalue="nothing")
    wanted, got = next(pair for pair in pairs if pair[0] != pair[1])
    raise ValueError(
        f"[Gossip] all ranks must have the same in {operation}: rank {first} has {wanted}, "
        f"got {got} on "
        f"rank {rank}; make it the same on every rank, or leave it out of the model"
    )
