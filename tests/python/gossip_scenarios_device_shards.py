"""What the workers of test_gossip_device_shards.py do: replicas, whose shards are in CPU memory and
on the test device."""

from collections.abc import Callable
from functools import partial
from typing import Any

import device_backend
import device_groups
import torch
from gossip_scenarios_basic import gossiping
from gossip_scenarios_ends import attempt_to
from gossip_scenarios_mesh import ALL, RUNS, sharded, small, square, whole
from gossip_support import batch, difference, loss_of, mlp
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, AdamW, RMSprop

STEPS = 6
MAKE = {
    "momentum": partial(SGD, lr=0.1, momentum=0.9, weight_decay=0.01, foreach=False),
    "adamw": partial(AdamW, lr=0.01, foreach=False),
    "rmsprop": partial(RMSprop, lr=0.01, foreach=False),
}


RUNS_OF_DDP = ["cwa adamw", "atc momentum", "allreduce adamw"]


def parallel(mesh: DeviceMesh) -> nn.Module:
    """Within a replica by DDP."""
    group = mesh["inner"].get_group()
    return DistributedDataParallel(small().to(mesh.device_type), process_group=group)


def train(
    mesh: DeviceMesh, name: str, rank: int, make: Callable[[DeviceMesh], nn.Module]
) -> list[float]:
    """The model at its end, the average in between, its loss, and how far the workers were."""
    pattern, kind = name.split()
    place = mesh.device_type
    model = make(mesh)
    optimizer = MAKE[kind](model.parameters())
    found: list[float] = []
    with gossiping(model, optimizer, group=mesh["gossip"], pattern=pattern, **ALL) as gossip:
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(model, batch(step, rank).to(place)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            if step == STEPS // 2:
                found.append(gossip.disagreement())
                with gossip.averaged() as average, torch.no_grad():
                    found += whole(average)
                    found.append(float(loss_of(average, batch(99).to(place))))
    return found + whole(model)


def replicas_on_device(rank: int, size: int) -> Any:
    """By kind of replica, pattern and optimizer: how far from CPU memory, for some orders of
    lateness."""
    here, there = square(), device_groups.square()
    found = {}
    for kind, make, runs in (("fsdp", sharded, RUNS), ("ddp", parallel, RUNS_OF_DDP)):
        for name in runs:
            expected = train(here, name, rank, make)
            gaps = []
            for seed in (1, 2, 3):
                device_backend.seed(seed)
                pairs = zip(expected, train(there, name, rank, make), strict=True)
                gaps.append(max(abs(x - y) for x, y in pairs))
            found[f"{kind} {name}"] = max(gaps)
    return found


def nan_on_device(rank: int, size: int) -> Any:
    """What the second step says after a NaN in a shard of rank 1 in the first. Its partner has a
    payload with it by then."""
    mesh = device_groups.square()
    device_backend.seed(1)
    model = sharded(mesh)
    optimizer = SGD(model.parameters(), lr=0.0)

    def steps() -> None:
        for k in range(2):
            optimizer.zero_grad()
            loss_of(model, batch(k, rank).to(mesh.device_type)).backward()
            if rank == 1 and k == 0:
                gradient = model[0].weight.grad.to_local()
                gradient.copy_(torch.full(gradient.shape, float("nan")))
            optimizer.step()

    with gossiping(model, optimizer, group=mesh["gossip"], check_payloads=False, **ALL):
        return attempt_to(steps)


def memory(rank: int, size: int) -> Any:
    """By pattern: bytes per parameter that a Gossip takes, on the device and pinned."""
    device_backend.install()
    found = {}
    for case in ("cwa", "atc", "allreduce", "cwa bfloat16"):
        pattern, _, dtype = case.partition(" ")
        model = nn.Sequential(nn.Linear(700, 700), nn.Linear(700, 700)).to(device_backend.NAME)
        model = model.to(getattr(torch, dtype or "float32"))
        count = sum(p.numel() for p in model.parameters())
        optimizer = SGD(model.parameters(), lr=0.1, foreach=False)
        x = torch.ones(2, 700).to(next(model.parameters()))
        before = device_backend.sizes()
        with gossiping(model, optimizer, pattern=pattern, **ALL):
            for _ in range(3):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
            optimizer.zero_grad()
            torch.accelerator.synchronize()  # what is queued has memory, too
            taken = [b - a for a, b in zip(before, device_backend.sizes(), strict=True)]
        found[case] = [bytes_ / count for bytes_ in taken]
    return found


def empty_parameter(rank: int, size: int) -> Any:
    """A parameter without elements does no harm."""
    device_backend.install()
    found = []
    for place in ("cpu", device_backend.NAME):
        model = mlp()
        model.register_parameter("nothing", nn.Parameter(torch.empty(0, 3)))
        model.to(place)
        optimizer = SGD(model.parameters(), lr=0.1, foreach=False)
        with gossiping(model, optimizer, **ALL):
            for k in range(3):
                optimizer.zero_grad()
                loss_of(model, batch(k, rank).to(place)).backward()
                optimizer.step()
        found.append(model.cpu())
    return difference(*found)


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function
    for function in (replicas_on_device, nan_on_device, memory, empty_parameter)
}
