"""What the workers of test_gossip_device_half.py do: parameters in half precision, on the device
and in CPU memory."""

from collections.abc import Callable
from typing import Any

import device_backend
import device_groups
import torch
from gossip_scenarios_basic import gossiping, numbers
from gossip_scenarios_devices import OwnAdamW, OwnSGD, on_device
from gossip_scenarios_half import masters
from gossip_scenarios_mesh import ALL, all_of, small, square
from gossip_scenarios_save import folder
from gossip_support import batch, loss_of, mlp
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

STEPS = 9
WAYS: dict[str, dict[str, Any]] = {
    "cwa": {"topology": "ring"},
    "cwa float16": {"topology": "ring"},
    "cwa int8": {"topology": "ring", "codec": "int8"},
    "atc": {"topology": "ring", "pattern": "atc"},
    "one peer": {"topology": "one_peer_exponential"},
    "exact_diffusion": {"pattern": "exact_diffusion", **ALL},
    "late": {"topology": "complete", "late": "skip", "staleness": 1},
    "allreduce": {"pattern": "allreduce"},
    "gradient_gossip": {"pattern": "gradient_gossip", "topology": "ring"},
}


def half_model(way: str, seed: int = 0) -> nn.Module:
    return mlp(seed).to(torch.float16 if "float16" in way else torch.bfloat16)


def optimizer_of(model: nn.Module, way: str) -> torch.optim.Optimizer:
    if way == "atc":
        return OwnAdamW(model.parameters(), lr=0.001, foreach=False)
    return OwnSGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)


def steps(model: nn.Module, optimizer: torch.optim.Optimizer, rank: int, count: range) -> None:
    like = next(model.parameters())
    for k in count:
        optimizer.zero_grad()
        loss_of(model, batch(k, rank).to(like)).backward()
        optimizer.step()


def half_on_device(rank: int, size: int) -> Any:
    """By way: how far parameters and masters are from those in CPU memory, and from each other."""
    found = {}
    for way, options in WAYS.items():
        ends = []
        for number in (0, 1, 2):
            model = on_device(half_model(way), number) if number else half_model(way)
            optimizer = optimizer_of(model, way)
            with gossiping(model, optimizer, bucket_bytes=128, **options) as gossip:
                steps(model, optimizer, rank, range(STEPS))
                kept = [m.cpu().flatten().float() for m in masters(gossip)]
            ends.append((torch.tensor(numbers(model.cpu())), torch.cat(kept)))
        found[way] = {
            "parameters": max(float((end[0] - ends[0][0]).abs().max()) for end in ends),
            "masters": max(float((end[1] - ends[0][1]).abs().max()) for end in ends),
            "rounding": float((ends[1][1] - ends[1][0]).abs().max()),
        }
    return found


def half_mixing_on_device(rank: int, size: int) -> Any:
    """Steps that only mix values that differ by an ulp: masters there and in CPU memory, and how
    far apart the workers are before and after."""
    ends, apart = [], []
    for number in (0, 1, 2):
        model = half_model("cwa")
        for i, p in enumerate(model.parameters()):
            torch.manual_seed(10 * rank + i)
            p.data.mul_(1 + torch.randint(0, 2, p.shape) * 2.0**-7)
        values = [p.detach().clone() for p in model.parameters()]
        model = on_device(model, number) if number else model
        optimizer = OwnSGD(model.parameters(), lr=0.0)
        with gossiping(model, optimizer, topology="ring") as gossip:
            for p, value in zip(model.parameters(), values, strict=True):
                p.data.copy_(value)  # rank 0's are everybody's at first
                p.grad = torch.zeros_like(p)
            optimizer.step()
            before = gossip.disagreement()
            for _ in range(6):
                optimizer.step()
            apart.append([before, gossip.disagreement()])
            ends.append(torch.cat([m.cpu().flatten() for m in masters(gossip)]))
    return {"gap": max(float((e - ends[0]).abs().max()) for e in ends), "apart": apart}


def half_looks_on_device(rank: int, size: int) -> Any:
    """Whether looks at the mean leave all bits, and the mean."""
    model = on_device(half_model("cwa"))
    optimizer = optimizer_of(model, "cwa")
    with gossiping(model, optimizer, topology="ring") as gossip:
        steps(model, optimizer, rank, range(5))
        shown, kept = numbers(model), masters(gossip)
        gossip.disagreement()
        with gossip.averaged():
            mean = numbers(model)
        same = all(map(torch.equal, kept, masters(gossip))) and numbers(model) == shown
        return {"same": same, "mean": mean, "masters": [m.tolist() for m in kept]}


def half_resumed_on_device(rank: int, size: int) -> Any:
    """By way: parameters and masters after nine steps, and after a resume at five, on the device;
    and whether it goes on in CPU memory."""
    found = {}
    for way in ("cwa", "exact_diffusion", "allreduce"):
        ends: list[dict[str, Any]] = []
        for place in ("whole", "resumed", "cpu"):
            model = half_model(way, seed=0 if place == "whole" else 7)
            model = model if place == "cpu" else on_device(model, 1 + len(ends))
            optimizer = optimizer_of(model, way)
            with gossiping(model, optimizer, **WAYS[way]) as gossip:
                if place == "whole":
                    steps(model, optimizer, rank, range(5))
                    gossip.save(folder(f"device-half-{way}"))
                else:
                    gossip.load(folder(f"device-half-{way}"))
                steps(model, optimizer, rank, range(5, STEPS))
                kept = [m.tolist() for m in masters(gossip)]
            ends.append({"parameters": numbers(model), "masters": kept})
        found[way] = ends
    return found


def _sharded(mesh: DeviceMesh) -> nn.Module:
    model = small().bfloat16().to(mesh.device_type)
    fully_shard(model[0], mesh=mesh["inner"])
    return fully_shard(model, mesh=mesh["inner"])


def half_shards_on_device(rank: int, size: int) -> Any:
    """By pattern: how far shards in bfloat16 are from those in CPU memory."""
    found = {}
    for pattern in ("cwa", "atc", "allreduce"):
        ends = []
        for mesh in (square(), device_groups.square()):
            device_backend.seed(3)
            model = _sharded(mesh)
            optimizer = OwnSGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)
            group = mesh["gossip"]
            with gossiping(model, optimizer, group=group, pattern=pattern, **ALL):
                for k in range(STEPS):
                    optimizer.zero_grad()
                    x = batch(k, rank).bfloat16().to(mesh.device_type)
                    loss_of(model, x).backward()
                    optimizer.step()
            ends.append(torch.tensor(all_of(model.parameters())))
        found[pattern] = float((ends[1] - ends[0]).abs().max())
    return found


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function
    for function in (
        half_on_device,
        half_mixing_on_device,
        half_looks_on_device,
        half_resumed_on_device,
        half_shards_on_device,
    )
}
