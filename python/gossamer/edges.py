"""The connections of a worker to those it exchanges with."""

from __future__ import annotations

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
    mine = {"reach": _core.reach_of_shared_memory(), "token": secrets.token_hex(32)}
    cards = exchange(world, "connect", mine, None, timeout_s)
    is_one_host = mine["reach"] != "" and all(card["reach"] == mine["reach"] for card in cards)

    def share(words: str) -> list[str]:
        told = exchange(world, "connect", {"words": words}, None, timeout_s)
        return [card["words"] for card in told]

    return _core.net_transport(
        world.rank,
        world.size,
        token=cards[0]["token"],
        share=share,
        address="" if is_one_host else _machine.address_for_peers(),
        tls=tls,
    )
