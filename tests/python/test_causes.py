"""Whom a worker's error names, where several wait for one another."""

import threading
import time

import conftest  # noqa: F401  the package's place, before the package
import pytest
from torch.distributed import HashStore

from gossamer import TransportError
from gossamer.workers.board import Board
from gossamer.workers.causes import first_to_end

LATE = "deadline passed; worker 1 posted no send"
SILENT = "deadline passed; worker 1 posted no send, and nothing has been heard of worker 3 for 6 s"
GONE = "the peer has ended"


def failure(peer: int, reason: str) -> TransportError:
    error = TransportError(reason)
    error.peer, error.reason = peer, reason
    return error


def found_by(waits: dict[int, tuple[int, str]], apart_s: float = 0.0) -> dict[int, int]:
    """By rank, whom it names. `waits`: of each rank, the peer and the reason of its error, to which
    each comes so much later than the one before."""
    store = HashStore()
    found = {}

    def end(rank: int, after_s: float) -> None:
        time.sleep(after_s)
        found[rank] = first_to_end(rank, failure(*waits[rank]), lambda _: Board(store, rank, 5))

    threads = [
        threading.Thread(target=end, args=(rank, k * apart_s)) for k, rank in enumerate(waits)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("apart_s", [0.0, 0.05])
def test_each_names_the_one_at_the_end_of_the_chain(apart_s: float) -> None:
    waits = {0: (1, LATE), 1: (2, LATE), 4: (0, LATE), 2: (3, SILENT)}
    assert found_by(waits, apart_s) == {0: 3, 1: 3, 4: 3, 2: 3}
    assert found_by({2: (3, GONE), 1: (2, GONE), 0: (1, GONE)}, 0.1) == {2: 3, 1: 3, 0: 3}


class Looks(Board):
    """A board on which nothing is, and how often somebody has looked."""

    def __init__(self) -> None:
        super().__init__(HashStore(), 2, 5)
        self.count = 0

    def look(self, key: str) -> bytes | None:
        self.count += 1
        return super().look(key)


@pytest.mark.parametrize(("reason", "waits"), [(LATE, True), (SILENT, False), (GONE, False)])
def test_only_one_that_is_heard_and_late_is_waited_for(reason: str, waits: bool) -> None:
    looks = Looks()
    assert first_to_end(2, failure(3, reason), lambda _: looks) == 3
    assert (looks.count > 1) == waits


def test_those_who_wait_for_each_other_name_each_other() -> None:
    assert found_by({0: (1, LATE), 1: (0, LATE)}) == {0: 1, 1: 0}


def test_a_store_that_fails_leaves_the_error_as_it_is() -> None:
    def no_board(_: float) -> Board:
        raise RuntimeError("no store")

    assert first_to_end(0, failure(1, LATE), no_board) == 1
