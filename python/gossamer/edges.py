"""The connections of a worker to those it exchanges with."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

import torch.distributed as dist

from gossamer import _core, gloo_edges
from gossamer.cards import exchange, store_of
from gossamer.world import World, next_number


def make_transport(
    world: World, peers: Iterable[int], timeout_s: float, kind: str = "auto"
) -> _core.Transport | None:
    """A transport to ``peers``, or None for a worker alone. Collective over the world.

    ``"net"`` is Gossamer's own, over shared memory, for workers of one host; ``"c10d"`` goes over
    Gloo; ``"auto"`` takes the first where all workers can reach each other that way. Raises
    ValueError on every rank for "net" where they cannot.
    """
    if world.size == 1:
        return None
    mine = {"reach": _core.reach_of_shared_memory(), "token": secrets.token_hex(32)}
    cards = exchange(world, "connect", mine, None, timeout_s)
    reaches = [card["reach"] for card in cards]
    is_one_host = reaches[0] != "" and len(set(reaches)) == 1
    if kind == "net" and not is_one_host:
        other = next((rank for rank, reach in enumerate(reaches) if reach != reaches[0]), 0)
        raise ValueError(
            f'[Gossip] transport="net" shares memory between workers of one host, user and '
            f"container, got ranks 0 and {other}, which cannot; "
            'use transport="c10d", or "auto", which takes what works'
        )
    if kind != "c10d" and is_one_host:
        return _core.net_transport(
            world.rank,
            world.size,
            token=cards[0]["token"],
            share=lambda address: [
                card["address"]
                for card in exchange(world, "connect", {"address": address}, None, timeout_s)
            ],
        )
    store = store_of(world)
    number = next_number(store, world.rank, world.size)
    edges = dist.PrefixStore(f"gossamer/edges/{number}", store)
    groups = gloo_edges.connect(world.rank, peers, edges, timeout_s=timeout_s)
    return _core.c10d_transport(world.rank, world.size, groups)
