"""The connections of a worker to those it exchanges with."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterable
from typing import NamedTuple

import torch.distributed as dist

from gossamer import _core
from gossamer.workers import gloo_edges, machine, members, versions
from gossamer.workers.board import Waiting, next_number
from gossamer.workers.cards import exchange
from gossamer.workers.world import World, board_of, store_of

_OPEN_STORE = (
    "[Gossip] the key of tls=True comes from the launcher's store, which anybody reads who reaches "
    "its port; give all ranks GOSSAMER_SECRET_FILE, as SECURITY.md says"
)


class Silence(NamedTuple):
    """When a peer that sends nothing counts as lost: after ``longest_s``, but with ``least_heard``
    not while this worker hears fewer workers than so many, or with 0 fewer than it misses."""

    longest_s: float = 30.0
    least_heard: int | None = None


def make_transport(
    world: World,
    peers: Iterable[int],
    timeout_s: float,
    kind: str = "auto",
    *,
    tls: bool = False,
    silence: Silence | None = None,
) -> _core.Transport | None:
    """A transport to ``peers``, or None for a worker alone. Collective over the world.

    ``"net"`` and ``"auto"`` are Gossamer's own, over shared memory inside a host and TCP between
    hosts, with ``tls`` over TLS 1.3; ``"c10d"`` goes over Gloo.
    """
    if world.size == 1:
        return None
    silence = silence or Silence()
    if world.comes_back:
        return _net_again(world, tls, silence)
    if kind != "c10d":
        return _net(world, timeout_s, tls, silence)
    number = next_number(board_of(world, timeout_s), world.rank, world.size)
    edges = dist.PrefixStore(f"gossamer/edges/{number}", store_of(world))
    groups = gloo_edges.connect(world.rank, peers, edges, timeout_s=timeout_s)
    return _core.c10d_transport(world.rank, world.size, groups)


def _net(world: World, timeout_s: float, tls: bool, silence: Silence) -> _core.Transport:
    mine: dict[str, str | bool] = {
        "reach": _core.reach_of_shared_memory(),
        "machine": _core.machine_of_this_process(),
        "nonce": _core.random_digits(),
    }
    problem = None
    try:
        mine["has_secret"] = _core.token_by_secret("") is not None
    except (ValueError, OSError) as error:
        problem = error
    cards = exchange(world, "connect", mine, problem, timeout_s)
    _require_all_or_none([card["has_secret"] for card in cards])
    number = next_number(board_of(world, timeout_s), world.rank, world.size)
    place = f"gossamer/token/{number}"
    token = _core.token_by_secret(cards[0]["nonce"])
    comes_from_store = token is None
    if token is None:
        token = _from_store(world, place, timeout_s)
        if tls and world.rank == 0:
            warnings.warn(_OPEN_STORE, stacklevel=2)
    address = ""
    is_whole = world.begins == world.size
    others_may_be_away = any(card["reach"] != mine["reach"] for card in cards) or not is_whole
    if mine["reach"] == "" or others_may_be_away:
        address = machine.address_for_peers()
        problem = None
        if any(card["machine"] != mine["machine"] for card in cards):
            problem = _leads_nowhere(world, address)
        exchange(world, "connect", {}, problem, timeout_s)

    sealed = ""

    def put(words: str, is_connected: bool) -> None:
        kept = token if comes_from_store else ""
        _put_card(world, words, address, cards[0]["nonce"], kept, is_connected=is_connected)
        for rank in range(world.begins, world.size) if world.rank == 0 else ():
            later = dataclasses.replace(world, rank=rank, rank_in_job=rank)
            _put_card(
                later, "", address, cards[0]["nonce"], kept, is_connected=True, has_state=False
            )

    def share(words: str) -> list[str]:
        nonlocal sealed
        sealed = _core.sealed(token, world.rank, words)
        put(sealed, is_connected=False)
        told = exchange(world, "connect", {"words": sealed}, None, timeout_s)
        if comes_from_store and world.rank == 0:
            board_of(world, timeout_s).forget(place)  # all have read it
        words_of = [_core.opened(token, rank, card["words"]) for rank, card in enumerate(told)]
        return words_of + [""] * (world.size - world.begins)

    transport = _core.net_transport(
        world.rank,
        world.size,
        token=token,
        share=share,
        address=address,
        tls=tls,
        longest_silence_s=silence.longest_s,
        least_heard=silence.least_heard,
    )
    put(sealed, is_connected=True)
    return transport


def _put_card(
    world: World,
    words: str,
    address: str,
    nonce: str,
    token: str,
    *,
    is_connected: bool,
    has_state: bool = True,
) -> None:
    """For workers that come back, see Note [Members]. A worker that fails before it was connected
    is not one that the others have lost."""
    if world.members is None:
        return
    card = {
        "words": words,
        "address": address,
        "nonce": nonce,
        "token": token,
        "connected": is_connected,
        "has_state": has_state,
        "is_of_all": not world.subfolder,
        "about": world.about,
        "versions": versions.own(),
        "workers_per_host": world.workers_per_host,
    }
    members.put(world.members, world.rank_in_job, card)


def _net_again(world: World, tls: bool, silence: Silence) -> _core.Transport:
    """Of a worker that comes back: a later generation of what it was."""
    assert world.members is not None
    place = world.members
    former = members.read(place, world.size)[world.rank]
    nonce = former["nonce"]
    token = former["token"] or _core.token_by_secret(nonce)
    if token is None:
        raise ValueError(
            f"[Gossip] rank {world.rank} comes back without the secret that the others have; give "
            "it GOSSAMER_SECRET_FILE"
        )
    address = machine.address_for_peers() if former["address"] else ""

    def share(words: str) -> list[str]:
        mine = _core.sealed(token, world.rank, words)
        token_here = former["token"]
        _put_card(world, mine, address, nonce, token_here, is_connected=True, has_state=False)
        # Read after that: of two that come back together, one at least finds the other.
        cards = members.read(place, world.size)
        said = [cards[rank]["words"] for rank in range(world.size)]
        return [_core.opened(token, rank, each) if each else "" for rank, each in enumerate(said)]

    return _core.net_transport(
        world.rank,
        world.size,
        token=token,
        share=share,
        address=address,
        tls=tls,
        generation=members.next_generation(),
        longest_silence_s=silence.longest_s,
        least_heard=silence.least_heard,
    )


def _from_store(world: World, place: str, timeout_s: float) -> str:
    """Rank 0's token, until all have read it."""
    board = board_of(world, timeout_s)
    if world.rank == 0:
        board.set(place, _core.random_digits())
    who = Waiting(world.rank, 0, "connect", _core.seconds_awake() + timeout_s, timeout_s)
    return board.read(place, who, f"has not come to connect within {timeout_s:g} s").decode()


def _require_all_or_none(have_secrets: list[bool]) -> None:
    """ValueError on all ranks where some have a secret and others none."""
    if len(set(have_secrets)) == 1:
        return
    raise ValueError(
        "[Gossip] all ranks need the same secret, or none does, got one on rank "
        f"{have_secrets.index(True)} and none on rank {have_secrets.index(False)}; give all of "
        "them GOSSAMER_SECRET_FILE, or unset it"
    )


def _leads_nowhere(world: World, address: str) -> ValueError | None:
    """What is wrong with an address that the workers of other machines are to reach."""
    if not _core.is_loopback(address):
        return None
    interface = os.environ.get("GLOO_SOCKET_IFNAME")
    chosen = (
        f"of GLOO_SOCKET_IFNAME={interface}"
        if interface
        else f"that leads to MASTER_ADDR={os.environ.get('MASTER_ADDR', '')} or is the host name's"
    )
    return ValueError(
        f"[Gossip] rank {world.rank}: workers of other machines must reach this one, got "
        f"{address}, the address {chosen}, which leads to no other machine; set "
        "GLOO_SOCKET_IFNAME to the interface that does, or MASTER_ADDR to an address of rank 0's "
        "machine that the others reach"
    )
