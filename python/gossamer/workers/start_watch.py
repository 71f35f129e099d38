"""While the process group begins: who has not come, and an end where another rank has failed.

Note [Failed starts]: the start needs all ranks. Torch waits for them inside C++, half an hour long,
and nothing interrupts it there. So each rank has a thread that looks at the launcher's store, by a
connection of its own. It puts a card there and a number that grows. Rank 0 looks who is missing and
who has gone silent. Whoever fails says why under one key: the first that does is the cause, and the
others end by it. They end too where the store is gone, which is in rank 0's process.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from gossamer import _core
from gossamer.workers import machine, members
from gossamer.workers.board import Board
from gossamer.workers.wording import MOST_LISTED, first_line, listed

_PERIOD_S = 1.0
_PATIENCE_S = 10.0
_LONGEST_PAUSE_S = 120.0
_ANSWER_S = 5.0
_CONNECT_S = 3.0
_GONE_S = 5.0  # a store that cannot be asked for so long is gone
_SILENT_S = 30.0  # a rank whose number does not grow for so long
_LINGER_S = 5.0  # rank 0 stays for those who have to hear why it ends
_DONE = "done"
_OTHER_WAYS = {"store", "rank", "world_size"}

_starts = itertools.count()


@dataclass(frozen=True)
class Card:
    """Where a rank is, and what Gloo listens on there."""

    host: str
    machine: str
    address: str


@dataclass(frozen=True)
class Start:
    """A rank's part in one start: the launcher's store, and a place there of this start alone."""

    rank: int
    size: int
    store: tuple[str, int]
    place: str
    card: Card

    @property
    def begins(self) -> int:
        """How many of them, from rank 0 on; the others join later."""
        return members.how_many_begin(self.size)

    @property
    def store_name(self) -> str:
        return f"{self.store[0]}:{self.store[1]}"


def start_of(arguments: Mapping[str, Any], address: str) -> Start | None:
    """As the launcher's variables say it; None where they say of no others, or the ``arguments`` of
    ``init_process_group`` say something else. ``address`` is Gloo's."""
    if arguments.keys() & _OTHER_WAYS or arguments.get("init_method", "env://") != "env://":
        return None
    names = ("RANK", "WORLD_SIZE", "MASTER_PORT")
    said = [os.environ.get(name, "") for name in names]
    host = os.environ.get("MASTER_ADDR", "")
    if not host or not all(text.isdecimal() for text in said):
        return None
    rank, size, port = map(int, said)
    if not 0 <= rank < size or size == 1:
        return None
    again = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    name = machine.host_name()
    card = Card(name, _core.machine_of_this_process(), address)
    place = f"gossamer/start/{again}/{next(_starts)}"
    return Start(rank, size, (host, port), place, card)


@contextlib.contextmanager
def watched(start: Start | None) -> Iterator[None]:
    """See Note [Failed starts]; the block begins the process group."""
    if start is None:
        yield
        return
    watch = _Watch(start)
    try:
        yield
    except Exception as error:
        watch.fail(error)
        raise
    watch.finish()


class _Watch:
    """The thread of one rank. ``_lock`` guards who is first: the end of the start, or of this
    process."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._link = _Link(start)
        self._reports = _Reports(start)
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="gossamer-start", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """All have met."""
        with self._lock:
            self._over.set()
        self._thread.join(_ANSWER_S)

    def fail(self, error: Exception) -> None:
        """This rank ends by the error: the others hear of it."""
        self.finish()
        if self._start.rank == 0 and isinstance(error, dist.DistNetworkError):
            return  # what answers at the store's port is another job's
        try:
            first = self._link.tell_failure(error)
        except (_core.TransportError, OSError, RuntimeError) as lost:
            first = self._gone(lost) if self._link.has_met else self._unreachable(lost)
        if first is not None:
            print(f"[init] rank {self._start.rank}: {first}", file=sys.stderr, flush=True)

    def _run(self) -> None:
        gone_since = None
        pause_s = 0.0  # the others see this rank's card at once
        while not self._over.wait(pause_s):
            pause_s = _PERIOD_S
            try:
                failure, said = self._link.look(time.monotonic() - self._began)
            except (_core.TransportError, OSError, RuntimeError) as error:
                failure, said = "", self._unreachable(error)
                gone_since = gone_since or time.monotonic()
                if self._link.has_met and time.monotonic() - gone_since > _GONE_S:
                    failure = self._gone(error)
            else:
                gone_since = None
            if failure:
                with contextlib.suppress(_core.TransportError, OSError, RuntimeError):
                    self._link.linger()
                self._end(failure)
            self._reports.say(said, time.monotonic() - self._began)
        with contextlib.suppress(_core.TransportError, OSError, RuntimeError):
            self._link.leave()

    def _gone(self, error: Exception) -> str:
        return (
            f"the launcher's store at {self._start.store_name}, in the process of rank 0 or its "
            f"launcher, has gone ({first_line(error)}); see what rank 0 said"
        )

    def _unreachable(self, error: Exception) -> str:
        return (
            f"the launcher's store at {self._start.store_name} cannot be reached "
            f"({first_line(error)}); see whether rank 0 has started, and whether a firewall lets "
            "this port through"
        )

    def _end(self, why: str) -> None:
        """Of this process: its main thread is inside torch, where nothing interrupts it."""
        with self._lock:
            if self._over.is_set():
                return
            text = f"[init] rank {self._start.rank}: {why}; this process ends"
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                print(text, file=sys.stderr, flush=True)
            os._exit(1)


class _Reports:
    """What a host says while it waits: one line at a time, with growing pauses."""

    def __init__(self, start: Start) -> None:
        self._rank = start.rank
        self._speaks = os.environ.get("LOCAL_RANK", "0") == "0"
        self._next_s = _PATIENCE_S
        self._pause_s = _PATIENCE_S

    def say(self, text: str, waited_s: float) -> None:
        if not text or not self._speaks or waited_s < self._next_s:
            return
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        self._next_s = waited_s + self._pause_s
        line = f"[init] rank {self._rank}: has waited for {waited_s:.0f} s: {text}"
        print(line, file=sys.stderr, flush=True)


class _Link:
    """A rank's own connection to the store, made anew where it breaks."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._board: Board | None = None
        self._beat = 0
        self._survey = _Survey(start)
        self.has_met = False

    def look(self, waited_s: float) -> tuple[str, str]:
        """Why another rank has failed, else empty; and what all wait for."""
        try:
            return self._look(waited_s)
        except (_core.TransportError, OSError, RuntimeError):
            self._board = None
            raise

    def _look(self, waited_s: float) -> tuple[str, str]:
        board = self._connected()
        self._beat += 1
        board.set(self._key("beat", self._start.rank), str(self._beat))
        failure = board.look(self._key("failed"))
        if failure:
            board.add(self._key("heard"), 1)
            return failure.decode(), ""
        if self._start.rank == 0 and waited_s > _PATIENCE_S:
            failed, waiting = board.ask(self._survey.look)
            if failed:
                board.compare_set(self._key("failed"), "", failed)
            board.set(self._key("waiting"), waiting)
        return "", (board.look(self._key("waiting")) or b"").decode()

    def tell_failure(self, error: Exception) -> str | None:
        """What another rank said before, if one did."""
        start = self._start
        board = self._connected()
        limit = time.monotonic() + _CONNECT_S
        while not board.ask(self._survey.is_whole) and time.monotonic() < limit:
            time.sleep(0.1)
        hint = board.ask(self._survey.explanation)
        mine = (
            f"rank {start.rank} on {start.card.host} could not start: {hint or first_line(error)}"
        )
        first = board.compare_set(self._key("failed"), "", mine).decode()
        self.linger()
        return first if first != mine or hint else None

    def linger(self) -> None:
        """Rank 0, in whose process the store may be, stays until the others have heard."""
        if self._start.rank != 0 or self._board is None:
            return
        limit = time.monotonic() + _LINGER_S
        while int(self._board.add(self._key("heard"), 0)) < self._start.begins - 1:
            if time.monotonic() > limit:
                return
            time.sleep(0.1)

    def leave(self) -> None:
        if self._board is not None:
            self._board.set(self._key("beat", self._start.rank), _DONE)

    def _connected(self) -> Board:
        if self._board is None:
            host, port = self._start.store
            socket.create_connection((host, port), _CONNECT_S).close()  # its errors are clear
            store = dist.TCPStore(
                *(host, port),
                timeout=timedelta(seconds=_ANSWER_S),
                wait_for_workers=False,
            )
            board = Board(store, self._start.rank, _ANSWER_S)
            card = json.dumps(asdict(self._start.card))
            board.set(self._key("card", self._start.rank), card)
            self._board, self.has_met = board, True
        return self._board

    def _key(self, name: str, rank: int | None = None) -> str:
        return f"{self._start.place}/{name}" + ("" if rank is None else f"/{rank}")


class _Survey:
    """Rank 0's view of all: their cards, and since when their numbers have not grown."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._beats: dict[int, tuple[str, float]] = {}

    def look(self, store: dist.Store) -> tuple[str, str]:
        """Why the start has failed, else empty; and what all wait for."""
        cards = self._cards(store)
        if wrong := leads_nowhere(cards):
            return wrong, ""
        now = time.monotonic()
        for rank in cards:
            beat = _value(store, f"{self._start.place}/beat/{rank}") or ""
            before = self._beats.get(rank, ("", now))
            self._beats[rank] = before if before[0] == beat else (beat, now)
        for rank, (beat, since) in self._beats.items():
            if beat != _DONE and now - since > _SILENT_S:
                on = f"rank {rank} on {cards[rank]['host']}"
                return f"{on} has said nothing for {_SILENT_S:g} s; see whether it has ended", ""
        return "", self._waiting(cards)

    def is_whole(self, store: dist.Store) -> bool:
        """Whether all have put their cards there."""
        return len(self._cards(store)) == self._start.begins

    def explanation(self, store: dist.Store) -> str:
        return leads_nowhere(self._cards(store))

    def _waiting(self, cards: Mapping[int, Mapping[str, str]]) -> str:
        start = self._start
        missing = [rank for rank in range(start.begins) if rank not in cards]
        if missing:
            return (
                f"of {start.begins} ranks {_each_of(missing)} has not come to {start.store_name}; "
                "see whether it has started, and whether a firewall lets that port through"
            )
        left = [rank for rank, (beat, _) in self._beats.items() if beat != _DONE]
        places = ", ".join(
            f"rank {rank} on {cards[rank]['host']} by {cards[rank]['address']}"
            for rank in left[:MOST_LISTED]
        )
        return (
            f"all {start.begins} ranks have come, but Gloo has not connected {_each_of(left)}; it "
            f"expects {places}, at ports that the system chooses; see whether a firewall lets "
            "these through, or set GLOO_SOCKET_IFNAME"
        )

    def _cards(self, store: dist.Store) -> dict[int, dict[str, str]]:
        found = {
            rank: _value(store, f"{self._start.place}/card/{rank}")
            for rank in range(self._start.begins)
        }
        return {rank: json.loads(text) for rank, text in found.items() if text}


def leads_nowhere(cards: Mapping[int, Mapping[str, Any]]) -> str:
    """What is wrong where ranks of several machines are to reach one at a loopback address."""
    if len({card["machine"] for card in cards.values()}) < 2:
        return ""
    for rank, card in sorted(cards.items()):
        if _core.is_loopback(card["address"]):
            return (
                f"rank {rank} on {card['host']} waits for the others at {card['address']}, which "
                "leads to no other machine; set GLOO_SOCKET_IFNAME there to the interface that "
                "does, or MASTER_ADDR to an address of rank 0's machine that the others reach"
            )
    return ""


def _value(store: dist.Store, key: str) -> str | None:
    return bytes(store.get(key)).decode() if store.check([key]) else None


def _each_of(ranks: Sequence[int]) -> str:
    return f"each of {listed(ranks)}" if len(ranks) > 1 else listed(ranks)
