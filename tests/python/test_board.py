"""What ranks tell each other through a store that stands still, ends, or knows nothing."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta

import conftest  # noqa: F401  the package's place, before the package
import pytest
from torch.distributed import HashStore, TCPStore

import gossamer.workers.board
from gossamer import TransportError, _core
from gossamer.workers.board import Board, Waiting, next_number

SERVER = """
import socket, time
from torch.distributed import TCPStore
door = socket.create_server(("127.0.0.1", 0))
port = door.getsockname()[1]
store = TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False,
                 master_listen_fd=door.detach())
print(port, flush=True)
time.sleep(60)
"""
SHORT_S = 0.3
LATE = "has not come"


@pytest.fixture
def server() -> Iterator[subprocess.Popen]:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def store_of(server: subprocess.Popen) -> TCPStore:
    assert server.stdout is not None
    port = int(server.stdout.readline())
    return TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=30))


def waiting(timeout_s: float) -> Waiting:
    return Waiting(2, 1, "save", _core.seconds_awake() + timeout_s, timeout_s)


def test_a_store_that_stands_still_is_given_up_in_time(server: subprocess.Popen) -> None:
    board = Board(store_of(server), 2, SHORT_S)
    board.set("there", "value")
    os.kill(server.pid, signal.SIGSTOP)
    os.waitpid(server.pid, os.WUNTRACED)  # until it stands still
    for call in (lambda: board.add("visits", 1), lambda: board.get("there")):
        start = time.monotonic()
        with pytest.raises(TransportError, match="rank 2: the launcher's store, on rank 0's host"):
            call()
        assert time.monotonic() - start < 20
    with pytest.raises(TransportError, match="waiting for rank 1 to save") as caught:
        board.read("absent", waiting(SHORT_S), LATE)
    assert (caught.value.rank, caught.value.peer) == (2, 1)


def test_a_store_that_has_ended_is_named(server: subprocess.Popen) -> None:
    board = Board(store_of(server), 2, 20.0)
    server.kill()
    server.wait()
    with pytest.raises(TransportError, match=r"rank 2: .*rank 0's host, cannot be asked any more"):
        board.get("there")


def test_a_rank_that_is_late_is_named() -> None:
    board = Board(HashStore(), 2, 20.0)
    with pytest.raises(TransportError, match=f"rank 2: rank 1 {LATE}") as caught:
        board.read("absent", waiting(SHORT_S), LATE)
    assert (caught.value.rank, caught.value.peer, caught.value.operation) == (2, 1, "save")


def test_who_waits_says_for_whom_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gossamer.workers.board, "_PATIENCE_S", 0.01)
    board = Board(HashStore(), 2, 20.0)
    with pytest.raises(TransportError):
        board.read("absent", waiting(SHORT_S), LATE)
    assert capfd.readouterr().err == "[Gossip] rank 2: waiting for rank 1 in save\n"


@pytest.mark.parametrize("seconds", [math.inf, 1e10])
def test_a_wait_may_be_without_limit(seconds: float) -> None:
    store = HashStore()
    board = Board(store, 2, seconds)
    board.set("key", "value")
    assert board.read("key", waiting(seconds), LATE) == b"value"


def test_no_number_of_seconds_is_refused() -> None:
    with pytest.raises(ValueError, match="must be a number of seconds, got nan"):
        Board(HashStore(), 2, math.nan).set("key", "value")


def test_a_board_is_a_store() -> None:
    board = Board(HashStore(), 0, 20.0)
    board.set("key", "value")
    assert board.get("key") == b"value"
    assert board.read("key", waiting(1.0), LATE) == b"value"
    assert board.compare_set("key", "value", "next") == b"next"
    assert [next_number(board, 0, 2) for _ in range(3)] == [0, 1, 2]
