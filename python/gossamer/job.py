"""The process group of a job whose workers may come back."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from gossamer.workers import members

_BACKEND = "gossamer"


def init(**arguments: Any) -> tuple[int, int]:
    """Rank and number of workers, after ``torch.distributed.init_process_group("gloo")``.

    A worker that comes back (see ``gossamer launch``) cannot join the process group of those that
    are there, who would not answer. It gets one that knows rank and size, and whose collective
    calls raise RuntimeError. So use the group before the first step only; later ``gossip.mean`` and
    ``gossip.averaged`` reach all that are there. ``arguments`` are those of ``init_process_group``.

    Example::

        rank, workers = gossamer.init()
        gossip = gossamer.Gossip(model, optimizer, lost="go_on")
        for step in range(gossip.steps_done, total):
            ...
    """
    if not members.is_coming_back():
        dist.init_process_group(**{"backend": "gloo", **arguments})
        return dist.get_rank(), dist.get_world_size()
    rank, size = members.seat()
    if not hasattr(dist.Backend, _BACKEND.upper()):
        dist.Backend.register_backend(_BACKEND, _Absent.of, devices=["cpu", "cuda"])
    dist.init_process_group(_BACKEND, rank=rank, world_size=size, store=dist.HashStore())
    return rank, size


class _Absent(dist.ProcessGroup):
    """Of a worker that comes back: the others do not know it."""

    @classmethod
    def of(cls, store: object, rank: int, size: int, timeout: object) -> _Absent:
        """As torch calls it."""
        return cls(rank, size)

    def getBackendName(self) -> str:  # noqa: N802
        return _BACKEND

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(
            "[Gossip] this worker has come back, so it is in no process group of the others, and a "
            "collective call of torch.distributed would reach nobody; use gossip.mean, or leave "
            "the call out where gossip.steps_done is above 0"
        )

    allreduce = allreduce_coalesced = barrier = broadcast = reduce = _refuse
    allgather = _allgather_base = allgather_coalesced = allgather_into_tensor_coalesced = _refuse
    gather = scatter = alltoall = alltoall_base = _refuse
    reduce_scatter = _reduce_scatter_base = reduce_scatter_tensor_coalesced = _refuse
    send = recv = recv_anysource = _refuse
