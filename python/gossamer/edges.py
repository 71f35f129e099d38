"""The connections of a worker to those it exchanges with."""

from __future__ import annotations

from collections.abc import Iterable

import torch.distributed as dist

from gossamer import _core, gloo_edges
from gossamer.world import World, next_number


def make_transport(world: World, peers: Iterable[int], timeout_s: float) -> _core.Transport | None:
    """A transport to `peers` over Gloo, or None for a worker alone. Collective over the world."""
    if world.size == 1:
        return None
    store = dist.distributed_c10d._get_process_group_store(world.group)
    number = next_number(store, world.rank, world.size)
    edges = dist.PrefixStore(f"gossamer/edges/{number}", store)
    groups = gloo_edges.connect(world.rank, peers, edges, timeout_s=timeout_s)
    return _core.c10d_transport(world.rank, world.size, groups)
