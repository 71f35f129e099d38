"""What the workers of the Gossip tests do: meshes of four, two replicas of two ranks each."""

import shutil
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from gossip_scenarios_basic import gossiping
from gossip_scenarios_ends import attempt_to
from gossip_scenarios_save import folder
from gossip_support import batch, loss_of, mlp, newest
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, AdamW, Muon, NAdam, RMSprop

from gossamer import Gossip

Make = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
MOMENTUM = partial(SGD, lr=0.1, momentum=0.9, weight_decay=0.01)
ADAMW = partial(AdamW, lr=0.01)
RMSPROP = partial(RMSprop, lr=0.01)
STEPS = 6
RUNS = [f"{pattern} {name}" for pattern in ("cwa", "atc") for name in ("momentum", "adamw")]
RUNS += ["exact_diffusion momentum", "extra adamw"]
RUNS += ["allreduce adamw", "allreduce rmsprop", "gradient_gossip rmsprop"]
FULL = StateDictOptions(full_state_dict=True)
ALL = {"topology": "complete"}  # others take turns by bucket, and shards have other buckets


def square() -> DeviceMesh:
    return init_device_mesh("cpu", (2, 2), mesh_dim_names=("gossip", "inner"))


def small(seed: int = 0) -> nn.Module:
    """Two ranks hold unequal shards of it, and one of them nothing of its last bias."""
    return mlp(seed, hidden=7, outputs=1)


def sharded(mesh: DeviceMesh, seed: int = 0) -> nn.Module:
    model = small(seed).to(mesh.device_type)
    fully_shard(model[0], mesh=mesh["inner"])  # the root keeps the rest gathered after a forward
    return fully_shard(model, mesh=mesh["inner"])


def whole(model: nn.Module) -> list[float]:
    """All numbers of a model, also those that other ranks hold. Collective."""
    return all_of(model.parameters())


def gathered(shard: DTensor) -> torch.Tensor:
    """As full_tensor(), which on a GPU crashes over Gloo (torch 2.11)."""
    if shard.device.type == "cpu":
        return shard.full_tensor()
    group = shard.device_mesh.get_group()
    parts: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(parts, shard.to_local().detach().cpu(), group=group)
    return torch.cat(parts)


def all_of(tensors: Iterable[torch.Tensor]) -> list[float]:
    """Likewise of any tensors."""
    values = [gathered(t) if isinstance(t, DTensor) else t for t in tensors]
    return torch.cat([v.detach().cpu().double().flatten() for v in values]).tolist()


def walk(
    model: nn.Module,
    make: Make,
    mesh: DeviceMesh,
    backward: Callable[[nn.Module, int], None],
    pattern: str,
) -> dict[str, Any]:
    """Trains, clips, evaluates the average in between, and trains on."""
    optimizer = make(model.parameters())
    with gossiping(model, optimizer, group=mesh["gossip"], pattern=pattern, **ALL) as gossip:
        found: dict[str, Any] = {"start": whole(model)}
        for step in range(STEPS):
            optimizer.zero_grad()
            backward(model, step)
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            if step == STEPS // 2:
                found["disagreement"] = gossip.disagreement()
                local = whole(model)
                with gossip.averaged() as average, torch.no_grad():
                    found["average"] = whole(average)
                    found["loss"] = float(loss_of(average, batch(99)))
                with torch.no_grad():  # of the local values, which are back
                    found["local_loss"] = float(loss_of(model, batch(99)))
                found["restored"] = whole(model) == local
        found["end"] = whole(model)
        found["steps"] = gossip.stats()["steps"]
        return found


def own_batch(rank: int) -> Callable[[nn.Module, int], None]:
    return lambda model, step: loss_of(model, batch(step, rank)).backward()


def replica_batch(rank: int) -> Callable[[nn.Module, int], None]:
    """The mean over the batches of both ranks of a replica, on one rank."""
    ranks = [rank - rank % 2, rank - rank % 2 + 1]

    def backward(model: nn.Module, step: int) -> None:
        sum(loss_of(model, batch(step, other)) / 2 for other in ranks).backward()

    return backward


def replicas(rank: int, size: int) -> Any:
    """By kind of replica, pattern and optimizer: how it went; plain ones are of one rank each."""
    mesh = square()
    found = {}
    for name in RUNS:
        pattern, optimizer = name.split()
        make = {"momentum": MOMENTUM, "adamw": ADAMW, "rmsprop": RMSPROP}[optimizer]
        run = partial(walk, make=make, mesh=mesh, pattern=pattern)
        parallel = DistributedDataParallel(small(), process_group=mesh["inner"].get_group())
        found[f"plain {name}"] = run(small(), backward=replica_batch(rank))
        found[f"ddp {name}"] = run(parallel, backward=own_batch(rank))
        found[f"fsdp {name}"] = run(sharded(mesh), backward=own_batch(rank))
    return found


def sharded_ends(rank: int, size: int) -> Any:
    """Rank 0's replica gives the start; a loaded state mixes; a NaN in one shard stops both."""
    mesh = square()
    model = sharded(mesh, seed=rank // 2)
    optimizer = SGD(model.parameters(), lr=0.0)
    loss_of(model, batch(0))  # FSDP keeps what it has gathered of the root
    found: dict[str, Any] = {}
    with gossiping(model, optimizer, group=mesh["gossip"], **ALL) as gossip:
        found["start"] = whole(model)
        found["is_fused"] = gossip.is_fused
        state = {k: v * 0 + (rank // 2 + 1.0) for k, v in model.state_dict().items()}
        model.load_state_dict(state)
        loss_of(model, batch(0, rank)).backward()
        optimizer.step()
        found["mixed"] = whole(model)
        with gossip.averaged() as average:
            whole_state = get_model_state_dict(average, options=FULL)
            found["saved"] = {name: value.tolist() for name, value in whole_state.items()}
        loss_of(model, batch(1, rank)).backward()
        if rank == 1:
            model[0].weight.grad.to_local()[0, 0] = float("nan")
        found["nan"] = attempt_to(optimizer.step) if rank < 2 else {}
        dist.barrier()
        optimizer.zero_grad()
        optimizer.step()  # the other replica has taken this one already
    return found


def refused_groups(rank: int, size: int) -> Any:
    """By case: how Gossip fails with a group that does not fit."""
    mesh = square()
    unnamed = init_device_mesh("cpu", (2, 2))
    outside = dist.new_group([0, 1, 2])

    def gossip(model: nn.Module, **options: Any) -> Callable[[], Any]:
        return lambda: Gossip(model, SGD(model.parameters(), lr=0.1), **options)

    parallel = DistributedDataParallel(small(), process_group=mesh["inner"].get_group())
    cases = {
        "a mesh of two dimensions": gossip(small(), group=mesh),
        "a mesh without names": gossip(small(), group=unnamed),
        "a list of ranks": gossip(small(), group=[0, 1]),
        "not in the group": gossip(small(), group=outside) if rank == 3 else lambda: None,
        "DDP over the same ranks": gossip(parallel, group=mesh["inner"]),
        "DDP among all ranks": gossip(parallel),
        "compiled DDP": gossip(torch.compile(parallel)),
        "shards of one model": gossip(sharded(mesh), group=mesh["inner"]),
        "shards among all ranks": gossip(sharded(mesh)),
        "shards of both": gossip(
            fully_shard(small(), mesh=mesh), group=mesh["gossip"], pattern="allreduce"
        ),
    }
    return {name: attempt_to(case) for name, case in cases.items()}


def averaged_around_ddp(rank: int, size: int) -> Any:
    """AllReduce between replicas of DDP, which averages inside them: the mean over all ranks."""
    mesh = square()
    model = small()
    parallel = DistributedDataParallel(model, process_group=mesh["inner"].get_group())
    options = {"pattern": "allreduce", "bucket_bytes": 64, "group": mesh["gossip"]}
    with gossiping(parallel, SGD(model.parameters(), lr=0.1), **options):
        loss_of(parallel, batch(0, rank)).backward()
    twin = small()
    loss_of(twin, batch(0, rank)).backward()
    found = []
    for parameter, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert parameter.grad is not None and other.grad is not None
        dist.all_reduce(other.grad)
        found.append(float((parameter.grad - other.grad / size).abs().max()))
    return max(found)


# All-reduce beside FSDP's own over both dimensions.

# Adafactor's own step does not work on shards in torch 2.13.
TWINS: dict[str, Make] = {
    "adamw": partial(AdamW, lr=0.01),
    "rmsprop": partial(RMSprop, lr=0.003),
    "nadam": partial(NAdam, lr=0.01),
    "muon": partial(Muon, lr=0.01),
}


def matrices() -> nn.Module:
    torch.manual_seed(0)
    layers = (nn.Linear(5, 8, bias=False), nn.Tanh(), nn.Linear(8, 3, bias=False))
    return nn.Sequential(*layers)


def hsdp_walk(model: nn.Module, optimizer: torch.optim.Optimizer, rank: int) -> list[float]:
    """50 steps, each of two backwards, with clipping."""
    for step in range(50):
        optimizer.zero_grad()
        for half in range(2):
            model.set_requires_gradient_sync(half == 1)
            loss_of(model, batch(2 * step + half, rank)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    return whole(model)


def like_hsdp(rank: int, size: int) -> Any:
    """By optimizer: the largest difference to FSDP over both dimensions, and how far it went."""
    mesh = square()
    found = {}
    for name, make in TWINS.items():
        twin = fully_shard(matrices(), mesh=mesh)
        expected = hsdp_walk(twin, make(twin.parameters()), rank)
        model = matrices()
        fully_shard(model[0], mesh=mesh["inner"])
        fully_shard(model, mesh=mesh["inner"])
        optimizer = make(model.parameters())
        options = {"pattern": "allreduce", "bucket_bytes": 64, "group": mesh["gossip"]}
        with gossiping(model, optimizer, **options):
            got = hsdp_walk(model, optimizer, rank)
        start = whole(matrices())
        found[name] = {
            "apart": max(abs(x - y) for x, y in zip(got, expected, strict=True)),
            "end": got,
            "moved": max(abs(x - y) for x, y in zip(got, start, strict=True)),
        }
    return found


class Either(nn.Module):
    """One of two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4, bias=False) for _ in range(2)])

    def forward(self, which: int, x: torch.Tensor) -> torch.Tensor:
        return self.layers[which](x)


def shards_without_gradients(rank: int, size: int) -> Any:
    """A replica that does not use a layer takes the others' mean; a step without zero_grad, one
    behind no_sync() and one after a start anew average once."""
    mesh = square()
    model = Either()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh["inner"])
    fully_shard(model, mesh=mesh["inner"])
    optimizer = SGD(model.parameters(), lr=0.0)
    found: dict[str, Any] = {}

    def gradients() -> list[list[float] | None]:
        grads = [layer.weight.grad for layer in model.layers]
        return [None if g is None else g.full_tensor().flatten().tolist() for g in grads]

    with gossiping(model, optimizer, group=mesh["gossip"], pattern="gradient_gossip", **ALL) as g:
        ones = torch.ones(1, 4) * (rank // 2 + 1)
        model(rank // 2, ones).sum().backward()
        found["apart"] = gradients()
        optimizer.step()
        optimizer.zero_grad()
        model(0, ones).sum().backward()
        found["one"] = gradients()
        state = model.state_dict()
        model.load_state_dict(state)  # a start anew, between backward and step
        optimizer.step()
        found["anew"] = gradients()
        optimizer.zero_grad()
        with g.no_sync():
            model(0, ones).sum().backward()
            found["alone"] = gradients()
        optimizer.step()
        found["missed"] = gradients()
    return found


# Checkpoints of shards.


def sharded_saves(rank: int, size: int) -> Any:
    """Goes on with equal bits; one replica goes on from the means; half a save is none."""
    mesh = square()
    place = folder("shards")
    found: dict[str, Any] = {}

    def start(seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
        model = sharded(mesh, seed)
        return model, ADAMW(model.parameters())

    def steps(model: nn.Module, optimizer: torch.optim.Optimizer, which: range) -> None:
        for step in which:
            optimizer.zero_grad()
            loss_of(model, batch(step, rank)).backward()
            optimizer.step()

    model, optimizer = start(0)
    with gossiping(model, optimizer, group=mesh["gossip"]) as gossip:
        steps(model, optimizer, range(3))
        gossip.save(place)
        with gossip.averaged() as average:
            found["average"] = whole(average)
        steps(model, optimizer, range(3, 4))
        gossip.save(place, keep=2)
        steps(model, optimizer, range(4, 6))
        found["end"] = whole(model)
    dist.barrier()
    found["there"] = sorted(path.name for path in place.glob("group*/step-*"))
    dist.barrier()
    if rank == 1:  # as if its group had ended before this was whole
        shutil.rmtree(newest(place / "group1"))
    dist.barrier()
    model, optimizer = start(1)
    with gossiping(model, optimizer, group=mesh["gossip"]) as gossip:
        gossip.load(place)
        found["loaded"] = gossip.stats()["steps"]
        steps(model, optimizer, range(3, 6))
        found["resumed"] = whole(model)
    plain = small()
    other = fully_shard(small(), mesh=mesh["gossip"])
    for name, wrong, group in (("plain", plain, "gossip"), ("other", other, "inner")):
        with gossiping(wrong, ADAMW(wrong.parameters()), group=mesh[group]) as gossip:
            found[name] = attempt_to(lambda: gossip.load(place))
    one = DeviceMesh("cpu", [[0, 1]], mesh_dim_names=("gossip", "inner"))
    if rank < 2:
        alone = sharded(one)
        gossip = Gossip(alone, ADAMW(alone.parameters()), group=one["gossip"])
        gossip.load(place)
        found["one replica"] = whole(alone)
        gossip.close()
    return found


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function
    for function in (
        *(replicas, sharded_ends, refused_groups, averaged_around_ddp),
        *(like_hsdp, shards_without_gradients, sharded_saves),
    )
}
