"""Process groups for the test device: Gloo over copies in the host's memory.

On a real device it is Gloo itself, which several ranks of one GPU can use.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import device_backend
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future  # type: ignore[attr-defined]
from torch.distributed.device_mesh import DeviceMesh
from torch.futures import Future

BACKEND = "gloo" if device_backend.IS_REAL else "through_host"


class ThroughHost(dist.ProcessGroup):
    """What FSDP asks of a group, on tensors of the device."""

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._gloo = dist.ProcessGroupGloo(store, rank, size, timeout)
        self._size = size

    def _through(
        self, tensors: Sequence[torch.Tensor], work: Callable[[list[torch.Tensor]], Any]
    ) -> Any:
        host = [tensor.cpu() for tensor in tensors]
        work(host)
        for tensor, result in zip(tensors, host, strict=True):
            tensor.copy_(result)
        over: Future[list[torch.Tensor]] = Future()
        over.set_result(list(tensors))
        return _create_work_from_future(over)

    def _reduce(self, host: list[torch.Tensor], operation: Any) -> None:
        is_mean = operation == dist.ReduceOp.AVG
        options = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp.SUM if is_mean else operation
        self._gloo.allreduce(host, options).wait()
        for tensor in host if is_mean else []:
            tensor /= self._size

    def allreduce(self, tensors: Any, opts: Any = None) -> Any:
        operation = opts.reduceOp if opts is not None else dist.ReduceOp.SUM
        return self._through(tensors, lambda host: self._reduce(host, operation))

    def broadcast(self, tensors: Any, opts: Any) -> Any:
        return self._through(tensors, lambda host: self._gloo.broadcast(host, opts).wait())

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        def work(host: list[torch.Tensor]) -> None:
            self._gloo.allgather([host[1:]], host[:1]).wait()

        return self._through([*inputs, *outputs[0]], work)

    def all_gather_single(self, output: Any, input: Any, opts: Any = None) -> Any:
        def work(host: list[torch.Tensor]) -> None:
            parts = [torch.empty_like(host[1]) for _ in range(self._size)]
            self._gloo.allgather([parts], host[1:]).wait()
            host[0].copy_(torch.cat([part.flatten() for part in parts]).view_as(host[0]))

        return self._through([output, input], work)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        pairs = zip(outputs, inputs, strict=True)
        return [self.all_gather_single(output, part) for output, part in pairs][-1]

    def reduce_scatter_single(self, output: Any, input: Any, opts: Any) -> Any:
        def work(host: list[torch.Tensor]) -> None:
            whole = host[1].clone()
            self._reduce([whole], opts.reduceOp)
            host[0].copy_(whole.flatten().chunk(self._size)[self.rank()].view_as(host[0]))

        return self._through([output, input], work)

    def barrier(self, opts: Any = None) -> Any:
        return self.allreduce([torch.zeros(1)])

    def size(self) -> int:
        return self._size

    @property
    def group_name(self) -> str:
        return str(dist.distributed_c10d._world.pg_names[self])

    def getBackendName(self) -> str:  # noqa: N802
        return BACKEND


def square() -> DeviceMesh:
    """Four ranks, two replicas of two; its groups work on the device."""
    device_backend.install()
    if not device_backend.IS_REAL and not hasattr(dist.Backend, BACKEND.upper()):
        dist.Backend.register_backend(BACKEND, ThroughHost, devices=[device_backend.NAME])
    rank = dist.get_rank()
    groups = []
    for all_ranks in ([[0, 2], [1, 3]], [[0, 1], [2, 3]]):
        made = [dist.new_group(ranks, backend=BACKEND) for ranks in all_ranks]
        groups += [g for g, ranks in zip(made, all_ranks, strict=True) if rank in ranks]
    return DeviceMesh.from_group(
        groups,
        device_backend.NAME,
        mesh=torch.arange(4).view(2, 2),
        mesh_dim_names=("gossip", "inner"),
    )
