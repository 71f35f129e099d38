"""Who takes part: ranks, hosts and the process group, found out from torch.distributed."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

import torch.distributed as dist


@dataclass(frozen=True)
class World:
    """The workers of one Gossip. ``workers_per_host`` has one entry per host, in rank order."""

    rank: int
    size: int
    workers_per_host: tuple[int, ...]
    group: dist.ProcessGroup | None


def _host_name() -> str:
    """What tells hosts apart: the launcher's node number, else the machine's name."""
    return os.environ.get("GROUP_RANK") or os.environ.get("SLURM_NODEID") or socket.gethostname()


def _hosts_in_order(names: list[str]) -> tuple[int, ...]:
    counts: list[int] = []
    seen: set[str] = set()
    for previous, name in zip([None, *names], names, strict=False):
        if name == previous:
            counts[-1] += 1
            continue
        if name in seen:
            raise ValueError(
                "[Gossip] ranks must be dealt host by host, got hosts "
                f"{', '.join(names)} in rank order; start the job with torchrun, or with "
                "--distribution=block under Slurm"
            )
        seen.add(name)
        counts.append(1)
    return tuple(counts)


def find_world(group: dist.ProcessGroup | None) -> World:
    """The world of ``group``, by default all ranks; one worker alone without torch.distributed.

    Collective over the group when it has more than one rank. Raises RuntimeError when the launcher
    started several processes but the process group is missing.
    """
    if not dist.is_available() or not dist.is_initialized():
        started = int(os.environ.get("WORLD_SIZE", "1"))
        if started > 1:
            raise RuntimeError(
                f"[Gossip] torch.distributed must be initialised: the launcher started {started} "
                'workers; call torch.distributed.init_process_group("gloo") first, as for DDP'
            )
        return World(0, 1, (1,), None)
    group = group or dist.group.WORLD
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if rank < 0:
        raise ValueError("[Gossip] this rank is not in the group; make Gossip only on its members")
    if size == 1:
        return World(0, 1, (1,), group)
    return World(rank, size, _hosts_in_order(_all_names(group, rank, size)), group)


def _all_names(group: dist.ProcessGroup, rank: int, size: int) -> list[str]:
    store = dist.distributed_c10d._get_process_group_store(group)
    prefix = f"gossamer/hosts/{next_number(store, rank, size)}"
    store.set(f"{prefix}/{rank}", _host_name())
    return [store.get(f"{prefix}/{peer}").decode() for peer in range(size)]


def next_number(store: dist.Store, rank: int, size: int) -> int:
    """How often all ranks of a store have come by here: a fresh name for what they do next."""
    return (store.add("gossamer/visits/" + str(rank), 1) - 1) if size > 1 else 0
