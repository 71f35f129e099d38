"""Latency and bandwidth of the links between workers, over Gossamer's own transport.

One end of a link leads and measures, the other serves it: a word says what comes next.

    PING     the server answers at once
    n > 0    a payload of n bytes follows, the server answers when it is there
    n < 0    the server sends a payload of -n bytes
    CLOCK    the server answers with its wall clock, in nanoseconds
    END      the server goes
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch.distributed import HashStore

from gossamer import _core
from gossamer.workers import gloo_edges, machine

END = 0
_PING, _CLOCK = 1, 2
_CLOCK_TRIPS = 10
_FEWEST_PINGS, _MOST_PINGS = 5, 100
_SMALLEST_BYTES, _LARGEST_BYTES = 16 << 10, 32 << 20


@dataclass(frozen=True)
class Speed:
    """Of a link: half a round trip of 8 bytes, the median; and payload bytes over seconds, one
    direction at a time. ``there`` is from the end that led."""

    latency_us: float
    there_gb_per_s: float
    back_gb_per_s: float


def in_bits(gb_per_s: float) -> str:
    """As commands take rates, with three digits: 7.04 Mbit/s."""
    rate, unit = 8e9 * gb_per_s, "bit/s"
    for larger in ("kbit/s", "Mbit/s", "Gbit/s"):
        if float(f"{rate:.3g}") < 1000:
            break
        rate, unit = rate / 1000, larger
    if rate >= 1000:
        return f"{rate:.0f} {unit}"
    digits = 2 if rate < 9.995 else 1 if rate < 99.95 else 0
    return f"{rate:.{digits}f} {unit}"


@dataclass(frozen=True)
class Skew:
    """How far the wall clock of the end that serves is ahead of the other's. Half the round trip
    by which it was found is as much as that can be wrong."""

    ahead_s: float
    uncertain_s: float


def now_ns() -> int:
    """The wall clock, as timelines have it."""
    return time.time_ns()


class End:
    """One end of a link. Everything on it fails ``timeout_s`` after it was made."""

    def __init__(self, transport: _core.Transport, peer: int, timeout_s: float) -> None:
        self._transport = transport
        self._peer = peer
        self._deadline = time.monotonic() + timeout_s
        self._sent = self._received = 0
        self._word = torch.zeros(1, dtype=torch.int64)
        self._payload = torch.ones(_SMALLEST_BYTES, dtype=torch.uint8)

    def say(self, word: int) -> None:
        """Sends a word."""
        self._word[0] = word
        self._send(self._word)

    def hear(self) -> int:
        """Waits for a word."""
        self._receive(self._word)
        return int(self._word)

    def send(self, size: int) -> None:
        """Sends a payload."""
        self._send(self._room(size))

    def receive(self, size: int) -> None:
        """Waits for a payload."""
        self._receive(self._room(size))

    def prepare(self, size: int) -> None:
        """Makes room for a payload, so that no transfer has to."""
        self._room(size)

    def _room(self, size: int) -> torch.Tensor:
        if self._payload.numel() < size:
            self._payload = torch.ones(size, dtype=torch.uint8)
        return self._payload[:size]

    def _left_s(self) -> float:
        return max(self._deadline - time.monotonic(), 1e-3)

    def _send(self, tensor: torch.Tensor) -> None:
        self._sent += 1
        tag = _core.Tag(self._sent)
        self._transport.wait(
            self._transport.send(self._peer, tensor, tag, timeout_s=self._left_s())
        )

    def _receive(self, tensor: torch.Tensor) -> None:
        self._received += 1
        tag = _core.Tag(self._received)
        self._transport.wait(
            self._transport.receive(self._peer, tensor, tag, timeout_s=self._left_s())
        )


def serve(end: End) -> None:
    """Does what the leading end asks for until it has finished. TransportError when it is lost."""
    while (word := end.hear()) != END:
        if word == _CLOCK:
            end.say(now_ns())
            continue
        if word > _PING:
            end.receive(word)
        if word < 0:
            end.send(-word)
        else:
            end.say(word)


def measure(end: End, budget_s: float) -> Speed:
    """Measures a link whose other end serves, in about ``budget_s``. TransportError when it is
    lost, or so slow that the end's timeout passes."""
    latency_s = _latency_s(end, 0.2 * budget_s)
    there, back = (_rate(end, sign, latency_s, 0.4 * budget_s) for sign in (1, -1))
    end.say(END)
    return Speed(latency_s * 1e6, there * 1e-9, back * 1e-9)


def compare_clocks(end: End) -> Skew:
    """By the shortest of some round trips, as if it took equally long there and back. The other end
    serves. TransportError when it is lost."""
    trips: list[Skew] = []
    for _ in range(_CLOCK_TRIPS):
        before = now_ns()
        end.say(_CLOCK)
        theirs = end.hear()
        after = now_ns()
        trips.append(Skew((2 * theirs - before - after) * 0.5e-9, (after - before) * 0.5e-9))
    return min(trips, key=lambda trip: trip.uncertain_s)


def _latency_s(end: End, budget_s: float) -> float:
    trips: list[float] = []
    begin = time.perf_counter()
    while len(trips) < _MOST_PINGS:
        start = time.perf_counter()
        if len(trips) >= _FEWEST_PINGS and start - begin > budget_s:
            break
        end.say(_PING)
        end.hear()
        trips.append(time.perf_counter() - start)
    return statistics.median(trips[1:]) / 2  # the first one wakes everything up


def _rate(end: End, sign: int, latency_s: float, budget_s: float) -> float:
    """Bytes per second of payloads that grow until each takes about a fifth of the budget."""
    size = _SMALLEST_BYTES
    sizes: list[int] = []
    seconds: list[float] = []
    begin = time.perf_counter()
    while len(sizes) < 2 or time.perf_counter() - begin < budget_s:
        end.prepare(size)
        start = time.perf_counter()
        end.say(sign * size)
        if sign > 0:
            end.send(size)
            end.hear()
        else:
            end.receive(size)
        sizes.append(size)
        seconds.append(max(time.perf_counter() - start - latency_s, 1e-9))
        fitting = int(size / seconds[-1] * budget_s / 5)
        size = min(max(fitting, size), 16 * size, _LARGEST_BYTES)
    # Only the largest payloads count, and of those not the first, which makes room.
    largest = [i for i, size in enumerate(sizes) if size >= sizes[-1] // 2]
    counted = largest[1:] or largest
    return sum(sizes[i] for i in counted) / sum(seconds[i] for i in counted)


def measure_here(budget_s: float, timeout_s: float) -> tuple[Speed, list[machine.Listener]]:
    """A link whose two ends are in this process, on the interface that Gloo chooses; and what the
    process listened on meanwhile."""
    store = HashStore()

    def connect(rank: int) -> _core.Transport:
        groups = gloo_edges.connect(rank, [1 - rank], store, timeout_s=timeout_s)
        return _core.c10d_transport(rank, 2, groups)

    with ThreadPoolExecutor(2) as pool:
        transports = list(pool.map(connect, range(2)))
        ends = [End(transports[rank], 1 - rank, timeout_s) for rank in range(2)]
        serving = pool.submit(serve, ends[1])
        speed = measure(ends[0], budget_s)
        serving.result()
        listeners = machine.own_listeners()
        list(pool.map(_core.Transport.stop, transports))
    return speed, listeners
