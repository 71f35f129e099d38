"""Who takes part: ranks, hosts and the process group, and whether all of them want the same."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch.distributed as dist

from gossamer import _core
from gossamer._core import TransportError
from gossamer.workers import causes, last_words, machine, members, versions
from gossamer.workers.board import Board, Waiting, next_number
from gossamer.workers.groups import group_of


@dataclass(frozen=True)
class Seat:
    """One rank's place in a group, before it has met the others."""

    rank: int
    size: int
    group: dist.ProcessGroup | None

    @property
    def begins(self) -> int:
        """How many ranks, from 0 on, begin; see Note [Joining]."""
        is_of_all = self.group is None or _is_of_all(self)
        return members.how_many_begin(self.size) if is_of_all else self.size


@dataclass(frozen=True)
class World(Seat):
    """The workers of one Gossip. ``workers_per_host`` has one entry per host, in rank order;
    ``subfolder`` is theirs among the groups of the job, empty for all ranks. What they tell each
    other has keys that begin with ``place``: where one has failed to make its Gossip, and all try
    again, others have got further, and nobody knows how far."""

    workers_per_host: tuple[int, ...]
    rank_in_job: int
    subfolder: str = ""
    place: str = ""
    about: str = ""  # a digest of what all of them want
    members: Path | None = None  # see Note [Members]
    comes_back: bool = False
    copies: dist.ProcessGroup | None = None  # who has copies of the model, where DDP is inside


def find_seat(group: dist.ProcessGroup | dist.device_mesh.DeviceMesh | None) -> Seat:
    """The seat in ``group``, by default all ranks; a worker alone without torch.distributed.

    Raises RuntimeError when the launcher started several processes but the process group is
    missing, ValueError on a rank outside of the group and for what is no group.
    """
    if members.is_coming_back():
        return _seat_of_one_who_comes_back(group)
    of = group_of(group)
    if not dist.is_available() or not dist.is_initialized():
        together = _core.started_together()
        if together is not None:
            launcher, says = together
            variable = says.split("=")[0]
            raise RuntimeError(
                "[Gossip] torch.distributed must be initialised: the launcher started several "
                f"workers, as {says} of {launcher} says; call "
                'torch.distributed.init_process_group("gloo") first, as for DDP, or unset '
                f"{variable} where this process is to train alone"
            )
        return Seat(0, 1, None)
    of = of or dist.group.WORLD
    rank = dist.get_rank(of)
    if rank < 0:
        raise ValueError("[Gossip] this rank is not in the group; make Gossip only on its members")
    return Seat(rank, dist.get_world_size(of), of)


def _seat_of_one_who_comes_back(group: object) -> Seat:
    if group is not None:
        raise ValueError(
            "[Gossip] a worker comes back to a job of one group of all ranks, got a group; leave "
            "it out, or start the whole job again"
        )
    return Seat(*members.seat(), None)


_PLACES = ("[Gossip]", "[Mixer]", "[engine]", "[net]", "[topology]", "[transport]")


def explain(
    error: Exception, seat: Seat, where: str = "optimizer.step()", timeout_s: float = 0.0
) -> None:
    """Adds to a message of ours whose it is among several workers, and what a lost peer means.

    ``where`` it was that the peer was waited for, for ``timeout_s`` at most. Once per error.
    """
    text = str(error)
    if seat.size == 1 or not text.startswith(_PLACES) or getattr(error, "_is_explained", False):
        return
    vars(error)["_is_explained"] = True
    if isinstance(error, TransportError) and error.operation not in ("", "meet"):
        if error.peer >= 0:
            error.peer = causes.first_to_end(seat.rank, error, partial(board_of, seat))
            last_words.expect(error, seat.rank, error.peer)
        limit = (
            f", which waits for timeout_s={timeout_s:g} s of Gossip at most" if timeout_s else ""
        )
        method = "optimizer.step()" if where.startswith("step ") else where
        text += (
            f"; this was in {where} on rank {seat.rank}{limit}; see what rank {error.peer} said: "
            f"it failed, was ended, is late, or takes fewer steps; every rank must call {method} "
            "equally often, and where one only takes longer, raise timeout_s"
        )
    elif f"rank {seat.rank}" not in text and f"worker {seat.rank}" not in text:
        text = text.replace("] ", f"] rank {seat.rank}: ", 1)
    error.args = (text,)


def is_lowest_of_host(world: World, present: Iterable[int]) -> bool:
    """Whether this is the first rank of its host among those that are present."""
    here = ranks_of_host(world)
    return world.rank == min(rank for rank in present if rank in here)


def ranks_of_host(world: World) -> range:
    """The ranks of this rank's host."""
    ends = list(accumulate(world.workers_per_host))
    host = next(i for i, end in enumerate(ends) if world.rank < end)
    return range(ends[host] - world.workers_per_host[host], ends[host])


def own_folder(world: World, folder: str | os.PathLike[str]) -> Path:
    """Where the files of this group are: groups of some of the ranks each have a place of their
    own, for the others may be given the same folder."""
    return Path(folder) / world.subfolder


def schedule_for(
    world: World, topology: str | _core.Schedule | _core.Method, pattern: str, seed: int
) -> _core.Schedule:
    """The rounds of this world. Raises ValueError for a topology that cannot serve its shape."""
    if pattern == "allreduce":
        return _core.alone_schedule(list(world.workers_per_host))
    try:
        return _schedule(topology, list(world.workers_per_host), seed)
    except ValueError as error:
        explain(error, world)
        raise


def _schedule(
    topology: str | _core.Schedule | _core.Method, hosts: list[int], seed: int
) -> _core.Schedule:
    if isinstance(topology, str):
        return _core.make_schedule(topology, hosts, seed=seed)
    if isinstance(topology, _core.Method):
        return topology.schedule(hosts, seed=seed)
    if topology.workers != sum(hosts):
        is_own = topology.name.startswith("matrices")
        again = f'make it with gossamer.make_schedule("{topology.name}", {hosts})'
        raise ValueError(
            f"[Gossip] the schedule {topology.name} is for {topology.workers} "
            f"workers, got a group of {sum(hosts)}; "
            + (f"give matrices of {sum(hosts)} rows" if is_own else again)
        )
    # Without hosts of its own, as one of matrices is made: these, so that plans know them.
    return topology.on_hosts(hosts) if len(topology.workers_per_host) == 1 else topology


def _is_of_all(seat: Seat) -> bool:
    return seat.size == dist.get_world_size()


def board_of(seat: Seat, timeout_s: float) -> Board:
    """What the seat's ranks tell each other; only for more than one worker."""
    return Board(store_of(seat), seat.rank, timeout_s)


def store_of(seat: Seat) -> dist.Store:
    """That of its process group, of a World with its own place there."""
    store = dist.distributed_c10d._get_process_group_store(seat.group)
    place = seat.place if isinstance(seat, World) else ""
    return dist.PrefixStore(place, store) if place else store


def meet(
    seat: Seat, about: str, problem: Exception | None, timeout_s: float, gpu: str = ""
) -> World:
    """Meets the other ranks, which must want the same, said in ``about``, and have no problem.

    Collective over the group. Rank 0 warns of ranks that have the same ``gpu``, by its own name.
    Raises ``problem``, on all other ranks a ValueError that tells of it; ValueError on every rank
    where one says something else than rank 0, with the first line that differs; TransportError for
    a rank that does not come within ``timeout_s``.
    """
    if seat.size == 1:
        if problem is not None:
            raise problem
        return World(0, 1, seat.group, (1,), _rank_in_job(seat), _subfolder(seat))
    cards_place = members.next_place()
    digest = hashlib.sha256(about.encode()).hexdigest()
    if members.is_coming_back():
        assert cards_place is not None
        return _meet_again(seat, cards_place, digest, about, problem)
    board = board_of(seat, timeout_s)
    place = f"gossamer/meetings/{next_number(board, seat.rank, seat.size)}"
    board.set(f"{place}/about/{seat.rank}", about)
    message = None if problem is None else str(problem)
    if problem is not None:
        explain(problem, seat)
    card = {
        "place": place_of(seat),
        "about": digest,
        "problem": message,
        "gpu": gpu,
        "versions": versions.own(),
    }
    board.set(f"{place}/card/{seat.rank}", json.dumps(card))
    if problem is not None:
        raise problem
    deadline = _core.seconds_awake() + timeout_s
    cards = [
        _card(board, place, seat.rank, peer, deadline, timeout_s) for peer in range(seat.begins)
    ]
    told = {rank: other.get("versions", {}) for rank, other in enumerate(cards)}
    _check(cards, told, board, place)
    hosts, _, doubt = find_hosts([other["place"] for other in cards], "Gossip")
    hosts += _hosts_that_join_later(seat, about)
    doubts = [doubt, versions.other_torches(told), _crowd([other["gpu"] for other in cards])]
    for each in doubts if seat.rank == 0 else ():
        if each:
            warnings.warn(f"[Gossip] {each}", stacklevel=4)
    return World(
        *(seat.rank, seat.size, seat.group, tuple(hosts), _rank_in_job(seat)),
        *(_subfolder(seat), place),
        about=digest,
        members=cards_place,
    )


def _hosts_that_join_later(seat: Seat, about: str) -> list[int]:
    """As their launchers were told."""
    later = seat.size - seat.begins
    if later > 0 and "lost go_on" not in about:
        raise ValueError(
            f"[Gossip] {seat.begins} of {seat.size} workers begin, and the others may join later, "
            "got lost='error'; use lost='go_on', or begin with all"
        )
    per_host = _number("LOCAL_WORLD_SIZE", 1)
    return [per_host] * (later // per_host)


def _check(
    cards: Sequence[Mapping[str, Any]],
    told: Mapping[int, versions.Versions],
    board: Board,
    place: str,
) -> None:
    """Raises ValueError unless all run the same Gossamer, have no problem and want the same."""
    if other_builds := versions.other_gossamers(told):
        raise ValueError(f"[Gossip] {other_builds}")
    for rank, other in enumerate(cards):
        if other["problem"] is not None:
            raise ValueError(f"[Gossip] rank {rank} could not make its Gossip: {other['problem']}")
    for rank, other in enumerate(cards):
        if other["about"] != cards[0]["about"]:
            _refuse(
                board.get(f"{place}/about/0").decode(),
                rank,
                board.get(f"{place}/about/{rank}").decode(),
            )


def _meet_again(
    seat: Seat, place: Path, digest: str, about: str, problem: Exception | None
) -> World:
    """The world of a worker that comes back, as the others' cards say it."""
    if problem is not None:
        raise problem
    if "lost go_on" not in about:
        raise ValueError(
            f"[Gossip] rank {seat.rank} was started again, but the others do not go on without "
            "it, got lost='error'; use lost='go_on', or start the whole job again"
        )
    if "late skip" in about:
        raise ValueError(
            f"[Gossip] rank {seat.rank} was started again, but with late='skip' the others go on "
            "without it for good; use late='wait', or start the whole job again"
        )
    cards = members.read(place, seat.size)
    told = {rank: card.get("versions", {}) for rank, card in cards.items()}
    if other_builds := versions.other_gossamers({**told, seat.rank: versions.own()}):
        raise ValueError(f"[Gossip] rank {seat.rank} comes back, but {other_builds}")
    for rank, card in cards.items():
        if card["about"] != digest and rank != seat.rank:
            raise ValueError(
                f"[Gossip] rank {seat.rank} comes back with another model or other arguments than "
                f"rank {rank} has; start it with the program that the job began with"
            )
    hosts = next(iter(cards.values()))["workers_per_host"]
    return World(
        *(seat.rank, seat.size, None, tuple(hosts), seat.rank),
        about=digest,
        members=place,
        comes_back=True,
    )


def _crowd(gpus: Sequence[str]) -> str:
    """What is wrong where ranks have one GPU together; empty where nothing is."""
    ranks = ", ".join(map(str, _sharing(gpus)))
    return ranks and (
        f"ranks {ranks} compute on one GPU, which each of them then has a part of; start one rank "
        "per GPU, and call torch.cuda.set_device(LOCAL_RANK) before the model is moved there"
    )


def _sharing(gpus: Sequence[str]) -> list[int]:
    """The first ranks that have one GPU together; none where each has its own, or none at all."""
    for gpu in filter(None, gpus):
        ranks = [rank for rank, other in enumerate(gpus) if other == gpu]
        if len(ranks) > 1:
            return ranks
    return []


def _subfolder(seat: Seat) -> str:
    """Found out here, where the process groups are still there."""
    if seat.group is None or _is_of_all(seat):
        return ""
    return f"group{min(dist.get_process_group_ranks(seat.group))}"


def _rank_in_job(seat: Seat) -> int:
    return seat.rank if seat.group is None else dist.get_rank()


def _card(
    board: Board, place: str, rank: int, peer: int, deadline: float, timeout_s: float
) -> dict[str, Any]:
    late = (
        f"has not made its Gossip within {timeout_s:g} s; every rank of the group must make one, "
        "and add parameters or load a model's state when the others do"
    )
    who = Waiting(rank, peer, "meet", deadline, timeout_s)
    return json.loads(board.read(f"{place}/card/{peer}", who, late))


def _refuse(expected: str, rank: int, found: str) -> None:
    wanted, got = _core.first_difference(expected, found)
    raise ValueError(
        f"[Gossip] all ranks must be given the same: rank 0 has {wanted}, got {got} on rank "
        f"{rank}; build the same model and call Gossip with the same arguments on every rank"
    )


Place = tuple[str, str, str, int, int]


def place_of(seat: Seat) -> Place:
    """Where this rank is, as it tells the others: for ``find_hosts``."""
    name = machine.host_name()
    node = os.environ.get("GROUP_RANK") or os.environ.get("SLURM_NODEID") or ""
    # They count all ranks of the launcher, so they say nothing of a group of some of them.
    is_of_all = seat.group is not None and _is_of_all(seat)
    local_rank = _number("LOCAL_RANK", -1) if is_of_all else -1
    local_size = _number("LOCAL_WORLD_SIZE", 0) if is_of_all else 0
    return (_core.machine_of_this_process(), name, node, local_rank, local_size)


def find_hosts(places: Sequence[Sequence[Any]], who: str) -> tuple[list[int], list[str], str]:
    """As in ``_core``, of places that have come as JSON."""
    return _core.find_hosts([tuple(place) for place in places], who)


def _number(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else otherwise
