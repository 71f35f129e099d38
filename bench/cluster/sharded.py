"""Models that are sharded inside a host, by FSDP2, and averaged or mixed between hosts."""

import os

import torch.distributed as dist
from methods import Contender, Entry, Job, nothing, optimizer_of, train
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard


def _mesh() -> DeviceMesh:
    inner = int(os.environ["LOCAL_WORLD_SIZE"])
    shape = (dist.get_world_size() // inner, inner)
    return init_device_mesh("cpu", shape, mesh_dim_names=("hosts", "shards"))


def _shard(job: Job, mesh: DeviceMesh) -> None:
    for layer in job.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(job.model, mesh=mesh)


def hsdp() -> Entry:
    """FSDP2's own, over both dimensions."""

    def make(job: Job) -> Contender:
        _shard(job, _mesh())
        optimizer = optimizer_of(job)
        step = train(job, job.model, optimizer)
        return Contender(step, nothing, is_synchronous=True, mean_error=1e-5)

    return Entry(make)


def gossamer_hsdp(topology: str, *, mean_error: float, **keywords: object) -> Entry:
    """FSDP2 inside a host, ours between hosts; the limit follows from the bytes measured."""

    def make(job: Job) -> Contender:
        from gossamer import Gossip

        mesh = _mesh()
        _shard(job, mesh["shards"])
        optimizer = optimizer_of(job)
        gossip = Gossip(job.model, optimizer, topology=topology, group=mesh["hosts"], **keywords)
        step = train(job, job.model, optimizer)
        is_synchronous = keywords.get("pattern") == "allreduce"
        return Contender(step, gossip.close, is_synchronous, mean_error, gossip.averaged)

    return Entry(make)
