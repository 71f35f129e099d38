"""The store of a process group, with calls that come back."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

import torch.distributed as dist

from gossamer import _core
from gossamer._core import TransportError
from gossamer.workers.wording import first_line

T = TypeVar("T")

# Whoever waits longer for another rank says so.
_PATIENCE_S = 10.0

# A wait for the store is rounded to milliseconds.
_ROUNDING_S = 0.1
# Stands for "no limit": what torch and the system count in fits.
_LONGEST_S = 50 * 365 * 86400.0
# A store that has not answered for so long is lost, however long a peer may take.
_LONGEST_ANSWER_S = 300.0
# For the way to the store and back, on top of what the store itself is told to wait.
_GRACE_S = 1.0


def wait_s(seconds: float) -> float:
    """What a wait of so many seconds is told; infinity and what no clock holds is no limit.

    Raises ValueError for NaN.
    """
    if math.isnan(seconds):
        raise ValueError("[Gossip] timeout_s must be a number of seconds, got nan")
    return min(max(seconds, 1e-3), _LONGEST_S)


@dataclass(frozen=True)
class Waiting:
    """Who waits for whom, in which operation, and until when (``seconds_awake``)."""

    rank: int
    peer: int
    operation: str
    deadline: float
    timeout_s: float


class Board:
    """What ranks of a group tell each other through its store.

    Torch's client of the store waits without bound for a server that does not answer: one that
    stands still, or whose host cannot be reached. Here each call has a thread, which is left behind
    then, and TransportError is raised, as it is for whatever else is wrong with the store.
    """

    def __init__(self, store: dist.Store, rank: int, timeout_s: float) -> None:
        self._store = store
        self._rank = rank
        self._timeout_s = timeout_s

    def set(self, key: str, value: str) -> None:
        self._ask(lambda: self._store.set(key, value))

    def forget(self, key: str) -> None:
        """Nobody who comes later finds it; stores that delete nothing keep an empty word."""
        self._ask(lambda: self._store.set(key, ""))
        with contextlib.suppress(RuntimeError, NotImplementedError):
            self._ask(lambda: self._store.delete_key(key))

    def add(self, key: str, number: int) -> int:
        """The sum of all that has been added so far."""
        return self._ask(lambda: int(self._store.add(key, number)))

    def get(self, key: str) -> bytes:
        """What is there already."""
        return self._ask(lambda: bytes(self._store.get(key)))

    def look(self, key: str) -> bytes | None:
        """What is there, if anything is."""
        return self._ask(lambda: bytes(self._store.get(key)) if self._store.check([key]) else None)

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """What is there afterwards."""
        return self._ask(lambda: bytes(self._store.compare_set(key, expected, desired)))

    def ask(self, call: Callable[[dist.Store], T]) -> T:
        """What several calls of the store come to."""
        return self._ask(lambda: call(self._store))

    def read(self, key: str, who: Waiting, late: str) -> bytes:
        """What a peer has put there or puts there in time; raises TransportError, which says
        ``late`` of it, when it does not. After a while a line on stderr says who is waited for."""
        has_said = False
        while True:
            left_s = wait_s(who.deadline - _core.seconds_awake())
            found = self._read_soon(key, who, late, min(left_s, _PATIENCE_S))
            if found is not None:
                return found
            if not has_said:
                print(
                    f"[Gossip] rank {who.rank}: waiting for rank {who.peer} in {who.operation}",
                    file=sys.stderr,
                    flush=True,
                )
            has_said = True

    def _read_soon(self, key: str, who: Waiting, late: str, soon_s: float) -> bytes | None:
        """Nothing where it is not there yet and there is time."""

        def fetch() -> bytes | None:
            end = time.monotonic() + soon_s
            try:
                self._store.wait([key], timedelta(seconds=soon_s))
            except RuntimeError as cause:
                if time.monotonic() < end - _ROUNDING_S:
                    raise  # it is the store that fails
                if _core.seconds_awake() < who.deadline - _ROUNDING_S:
                    return None
                reason = first_line(cause)
                raise _failure(who, f"rank {who.peer} {late} ({reason})", reason) from cause
            return bytes(self._store.get(key))

        return self._ask(fetch, soon_s + _GRACE_S, who)

    def _ask(
        self, call: Callable[[], T], limit_s: float | None = None, who: Waiting | None = None
    ) -> T:
        limit_s = wait_s(min(self._timeout_s, _LONGEST_ANSWER_S) if limit_s is None else limit_s)
        answer = _Answer(call)
        thread = threading.Thread(target=answer.run, name="gossamer-store", daemon=True)
        thread.start()
        problem = ""
        if not _comes(answer.is_there, limit_s):
            problem = f"has not answered for {limit_s:.3g} s"
        else:
            thread.join()  # one that still ends while the interpreter does would abort it
        if isinstance(answer.error, RuntimeError) and not isinstance(answer.error, TransportError):
            problem = f"cannot be asked any more ({first_line(answer.error)})"
        elif answer.error is not None:
            raise answer.error
        if not problem:
            return answer.value[0]
        peer = who.peer if who and who.peer != self._rank else 0
        what = (
            f"{f'waiting for rank {peer} to {who.operation}: ' if who else ''}the launcher's "
            f"store, on rank 0's host, {problem}; see whether that host, the launcher there and "
            "the link to it are up"
        )
        operation = who.operation if who else "meet"
        waiting = Waiting(self._rank, peer, operation, 0.0, limit_s)
        raise _failure(waiting, what, problem) from answer.error


def _comes(event: threading.Event, limit_s: float) -> bool:
    """Whether it happens while this process is awake for so long."""
    end = _core.seconds_awake() + limit_s
    while not event.is_set() and (left_s := end - _core.seconds_awake()) > 0:
        event.wait(min(left_s, 1.0))
    return event.is_set()


class _Answer(Generic[T]):
    """What a call has come to in another thread."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self.is_there = threading.Event()
        self.value: list[T] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.value = [self._call()]
        except Exception as error:
            self.error = error
        self.is_there.set()


def _failure(who: Waiting, what: str, reason: str) -> TransportError:
    error = TransportError(f"[Gossip] rank {who.rank}: {what}")
    error.rank, error.peer, error.operation = who.rank, who.peer, who.operation
    error.elapsed_s, error.reason = who.timeout_s, reason
    return error


def next_number(board: Board, rank: int, size: int) -> int:
    """How often all ranks of a store have come by here: a fresh name for what they do next."""
    return (board.add("gossamer/visits/" + str(rank), 1) - 1) if size > 1 else 0
