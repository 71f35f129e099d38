"""The connections of a worker to those it exchanges with."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable

import torch.distributed as dist

from gossamer import _core, _machine, gloo_edges
from gossamer.board import next_number
from gossamer.cards import exchange
from gossamer.world import World, board_of


def make_transport(
    world: World,
    peers: Iterable[int],
    timeout_s: float,
    kind: str = "auto",
    *,
    tls: bool = False,
) -> _core.Transport | None:
    """A transport to ``peers``, or None for a worker alone. Collective over the world.

    ``"net"`` and ``"auto"`` are Gossamer's own, over shared memory inside a host and TCP between
    hosts, with ``tls`` over TLS 1.3; ``"c10d"`` goes over Gloo.
    """
    if world.size == 1:
        return None
    if kind != "c10d":
        return _net(world, timeout_s, tls)
    number = next_number(board_of(world, timeout_s), world.rank, world.size)
    store = dist.distributed_c10d._get_process_group_store(world.group)
    edges = dist.PrefixStore(f"gossamer/edges/{number}", store)
    groups = gloo_edges.connect(world.rank, peers, edges, timeout_s=timeout_s)
    return _core.c10d_transport(world.rank, world.size, groups)


def _net(world: World, timeout_s: float, tls: bool) -> _core.Transport:
    mine = {
        "reach": _core.reach_of_shared_memory(),
        "machine": _core.machine_of_this_process(),
        "token": secrets.token_hex(32),
    }
    cards = exchange(world, "connect", mine, None, timeout_s)
    address = ""
    if mine["reach"] == "" or any(card["reach"] != mine["reach"] for card in cards):
        address = _machine.address_for_peers()
        problem = None
        if any(card["machine"] != mine["machine"] for card in cards):
            problem = _leads_nowhere(world, address)
        exchange(world, "connect", {}, problem, timeout_s)

    def share(words: str) -> list[str]:
        told = exchange(world, "connect", {"words": words}, None, timeout_s)
        return [card["words"] for card in told]

    return _core.net_transport(
        world.rank,
        world.size,
        token=cards[0]["token"],
        share=share,
        address=address,
        tls=tls,
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
