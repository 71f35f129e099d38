"""The workers of a launcher as the doctor sees them: who is where, what each found, every link."""

from __future__ import annotations

import itertools
import json
import math
import os
import time
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from gossamer import _core
from gossamer.diagnosis import clocks, links
from gossamer.diagnosis.links import Skew
from gossamer.workers import machine
from gossamer.workers.edges import make_transport
from gossamer.workers.starting import init_process_group
from gossamer.workers.world import Seat, World, find_hosts, place_of

NO_TIME = "no time was left; give more with --timeout-s"

_LAUNCHER = ("RANK", "MASTER_ADDR", "MASTER_PORT")
_LONGEST_TURN_S, _SHORTEST_TURN_S = 0.4, 0.05
_NONE = 0
_END_S = 1.0  # kept for good-byes and printing
Pair = tuple[int, int]


@dataclass
class Findings:
    """What a worker found: facts by name, in words what is odd and what will not work; ``stage``
    is what it does at the moment."""

    stage: str = "looking around"
    is_connected: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Link:
    """A pair of workers; ``speed`` is missing where ``error`` says why. ``skew``: how far the
    higher one's clock is ahead."""

    low: int
    high: int
    speed: links.Speed | None
    error: str = ""
    skew: Skew | None = None


@dataclass(frozen=True)
class Team:
    """All workers, by rank: the names of their hosts, and what they found; None: no answer."""

    hosts: list[str]
    findings: list[Findings | None]
    links: list[Link]

    def clocks(self) -> list[Skew | None]:
        """How far each worker's is ahead of rank 0's; None: not measured."""
        known = [(each.low, each.high, each.skew) for each in self.links if each.skew]
        return clocks.against_rank_0(len(self.hosts), known)


class Clock:
    """Counts down to the end of the examination."""

    def __init__(self, limit_s: float) -> None:
        self._end = time.monotonic() + limit_s

    def left_s(self) -> float:
        """At least a moment."""
        return max(self._end - time.monotonic(), 0.05)

    def is_over(self) -> bool:
        """Whether what failed just now may have failed for want of time."""
        return time.monotonic() >= self._end

    def left(self) -> timedelta:
        """For torch."""
        return timedelta(seconds=self.left_s())


def launched_workers() -> int:
    """How many workers the launcher started; 1 without one."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def pairs_of(hosts: list[str]) -> list[Pair]:
    """The pairs of workers that a Gossip of the default topology connects; hosts are by rank.

    Raises ValueError for hosts that it cannot serve.
    """
    counts = [len(list(group)) for _, group in itertools.groupby(hosts)]
    options = _core.EngineOptions(
        schedule=_core.make_schedule("alternating_exponential_ring", counts),
        pattern="cwa",
        optimizer="sgd",
        timeout_s=1.0,
        check_gradients=False,
        check_payloads=False,
        hyper=_core.Hyper(),
    )
    both_ways = (
        (rank, peer) for rank in range(len(hosts)) for peer in _core.peers_of(options, rank)
    )
    return sorted({(min(pair), max(pair)) for pair in both_ways})


def examine(mine: Findings, clock: Clock) -> Team | None:
    """Meets the other workers and measures the links between them. Rank 0 is told about all.

    Raises RuntimeError where the workers do not find each other.
    """
    mine.stage = "looking for what a launcher sets"
    missing = [name for name in _LAUNCHER if name not in os.environ]
    if missing:
        raise RuntimeError(
            f"WORLD_SIZE is set, but not {', '.join(missing)}; torchrun sets all that is needed: "
            "torchrun --nproc-per-node 4 -m gossamer doctor"
        )
    mine.stage = "inside init_process_group"
    init_process_group("", backend="gloo", timeout=clock.left())
    try:
        return _examine(mine, clock)
    finally:
        dist.destroy_process_group()


def _examine(mine: Findings, clock: Clock) -> Team | None:
    rank, size = dist.get_rank(), dist.get_world_size()
    store = dist.PrefixStore("gossamer/doctor", dist.distributed_c10d._get_default_store())
    mine.stage = "hearing from all workers"
    hosts = _hosts(mine, store, rank, size, clock)
    pairs = pairs_of(hosts)
    transport = _connect(mine, rank, size, pairs, clock)
    mine.facts["listens"] = [str(listener) for listener in machine.own_listeners()]
    _judge_listeners(mine, rank)
    mine.stage = "waiting for all workers to connect"
    store.set(f"findings/{rank}", json.dumps(asdict(mine)))
    findings = _share_time(mine, store, size, len(pairs), clock) if rank == 0 else []
    store.wait(["time"], clock.left())
    turn_s, every = json.loads(store.get("time"))
    turns = pairs[::every] if every != _NONE else []
    mine.stage = "measuring links"
    for turn, pair in enumerate(turns):
        if transport is not None and rank in pair:
            _take_turn(store, turn, pair, rank, transport, turn_s, clock)
    links = _collect(store, turns, clock) if rank == 0 else []
    if transport is not None:
        transport.stop()
    store.set(f"end/{rank}", "")
    if rank != 0:
        return None
    # This process may hold the store.
    good_byes_s = max(clock.left_s(), _END_S)
    _has(store, [f"end/{peer}" for peer in range(size)], timedelta(seconds=good_byes_s))
    return Team(hosts, findings, links)


def _has(store: dist.Store, keys: list[str], timeout: timedelta) -> bool:
    """Waits for the keys."""
    try:
        store.wait(keys, timeout)
    except RuntimeError:
        return False
    return True


def _hosts(mine: Findings, store: dist.Store, rank: int, size: int, clock: Clock) -> list[str]:
    """A name for each rank's host."""
    store.set(f"host/{rank}", json.dumps(place_of(Seat(rank, size, dist.group.WORLD))))
    keys = [f"host/{peer}" for peer in range(size)]
    store.wait(keys, clock.left())
    places = [json.loads(store.get(key)) for key in keys]
    try:
        counts, names, warning = find_hosts(places, "doctor")
    except ValueError as problem:
        if rank == 0:
            mine.problems.append(str(problem))
        return [str(peer) for peer in range(size)]  # all links are looked at then
    if warning and rank == 0:
        mine.warnings.append(warning)
    return [name for count, name in zip(counts, names, strict=True) for _ in range(count)]


def _connect(
    mine: Findings, rank: int, size: int, pairs: list[Pair], clock: Clock
) -> _core.Transport | None:
    peers = [low + high - rank for low, high in pairs if rank in (low, high)]
    mine.stage = f"connecting with workers {', '.join(map(str, peers))}"
    try:
        world = World(rank, size, dist.group.WORLD, (size,), rank)  # the hosts do not matter here
        transport = make_transport(world, peers, clock.left_s())
        if transport is not None:
            mine.facts["transport"] = transport.describe()["name"]
        mine.is_connected = True
        return transport
    except _core.TransportError as error:
        mine.problems.append(str(error))
        return None


def _judge_listeners(mine: Findings, rank: int) -> None:
    store_port = int(os.environ["MASTER_PORT"])
    for listener in machine.own_listeners():
        if listener.is_everywhere and listener.port != store_port:
            mine.problems.append(
                f"rank {rank} listens on every interface, at {listener}; nothing of Gossamer does, "
                "so look for what else this process runs"
            )
    if rank == 0 and any(each.is_everywhere for each in machine.listeners_on(store_port)):
        mine.warnings.append(
            f"the launcher's store listens on every interface, at port {store_port}; that is the "
            "launcher's doing, so let a firewall keep the port from whoever is not of the job"
        )


def _share_time(
    mine: Findings, store: dist.Store, size: int, links: int, clock: Clock
) -> list[Findings | None]:
    """For rank 0: what all found; and tells all how long to measure each of every how many links:
    none unless all are connected."""
    findings = []
    for rank in range(size):
        key = f"findings/{rank}"
        here = _has(store, [key], clock.left())
        findings.append(Findings(**json.loads(store.get(key))) if here else None)
    links = max(links, 1)
    left_s = max(clock.left_s() - _END_S, _SHORTEST_TURN_S)
    every = math.ceil(links * _SHORTEST_TURN_S / left_s)
    turn_s = min(left_s * every / links, _LONGEST_TURN_S)
    if not all(each is not None and each.is_connected for each in findings):
        every = _NONE
    elif every > 1:
        mine.warnings.append(
            f"{math.ceil(links / every)} of {links} links are measured, there is no time for more"
        )
    store.set("time", json.dumps([turn_s, every]))
    return findings


def _take_turn(
    store: dist.Store,
    turn: int,
    pair: Pair,
    rank: int,
    transport: _core.Transport,
    turn_s: float,
    clock: Clock,
) -> None:
    """Measures the pair's link, or serves while the other does, when all before it are through."""
    low, high = pair
    error, speed, skew = "", None, None
    try:
        if turn > 0 and not _has(store, [f"link/{turn - 1}"], clock.left()):
            error = NO_TIME
        else:
            end = links.End(transport, low + high - rank, min(clock.left_s(), 5 * turn_s + 2))
            if rank == high:
                links.serve(end)
            else:
                skew = links.compare_clocks(end)
                speed = links.measure(end, turn_s)
    except _core.TransportError as lost:
        error = NO_TIME if clock.is_over() else str(lost)
    if rank == low:
        told = [speed and asdict(speed), error, skew and asdict(skew)]
        store.set(f"link/{turn}", json.dumps(told))


def _collect(store: dist.Store, turns: list[Pair], clock: Clock) -> list[Link]:
    found = []
    for turn, (low, high) in enumerate(turns):
        if not _has(store, [f"link/{turn}"], clock.left()):
            found.append(Link(low, high, None, "no answer"))
            continue
        speed, error, skew = json.loads(store.get(f"link/{turn}"))
        found.append(
            Link(
                *(low, high, links.Speed(**speed) if speed else None, error),
                skew=Skew(**skew) if skew else None,
            )
        )
    return found
