"""What four workers do with shards, several optimizers, half precision and the device at once."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import device_backend
import device_groups
import torch
import torch.distributed as dist
from gossip_scenarios_basic import gossiping
from gossip_scenarios_half import gradients_of, held_back, held_loss, learner, masters, teacher
from gossip_scenarios_mesh import ALL, own_batch, replica_batch, sharded, small, square, whole
from gossip_scenarios_save import folder
from gossip_support import batch, loss_of
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.optim import SGD, AdamW, RMSprop

from gossamer import Gossip

STEPS = 5
PATTERNS = ("cwa", "atc", "allreduce", "gradient_gossip")
Optimizers = list[torch.optim.Optimizer]
Backward = Callable[[nn.Module, int], None]


def halves(model: nn.Module) -> Optimizers:
    """One optimizer for matrices, and another one for vectors."""
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    first = SGD(matrices, lr=0.05, momentum=0.9, foreach=False)
    return [first, AdamW(vectors, lr=0.01, foreach=False)]


def train(
    model: nn.Module, optimizers: Optimizers, backward: Backward, steps: Iterable[int]
) -> None:
    """The loop, which clips."""
    for step in steps:
        for optimizer in optimizers:
            optimizer.zero_grad()
        backward(model, step)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        for optimizer in optimizers:
            optimizer.step()


def trained(model: nn.Module, backward: Backward, pattern: str, group: Any) -> dict[str, Any]:
    """With two optimizers: the end, the average, and the number of mixes."""
    optimizers = halves(model)
    with gossiping(model, optimizers, group=group, pattern=pattern, **ALL) as gossip:
        train(model, optimizers, backward, range(STEPS))
        with gossip.averaged() as average:
            mean = whole(average)
        return {"end": whole(model), "mean": mean, "steps": gossip.stats()["steps"]}


def two_on_shards(rank: int, size: int) -> Any:
    """By pattern: two optimizers over shards, and over two plain workers."""
    mesh = square()
    return {
        pattern: {
            "plain": trained(small(), replica_batch(rank), pattern, mesh["gossip"]),
            "shards": trained(sharded(mesh), own_batch(rank), pattern, mesh["gossip"]),
        }
        for pattern in PATTERNS
    }


# The test device.


def there(rank: int) -> Backward:
    def backward(model: nn.Module, step: int) -> None:
        loss_of(model, batch(step, rank).to(device_backend.NAME)).backward()

    return backward


def two_on_device(rank: int, size: int) -> Any:
    """By model and pattern: how far two optimizers on the device are from CPU memory, at most, for
    some orders of lateness."""
    here, far = square(), device_groups.square()
    found = {}
    for pattern in PATTERNS:
        for kind in ("plain", "shards"):
            group = None if kind == "plain" else here["gossip"]
            model = small() if kind == "plain" else sharded(here)
            expected = trained(model, own_batch(rank), pattern, group)
            gaps = []
            for seed in (1, 2):
                device_backend.seed(seed)
                group = None if kind == "plain" else far["gossip"]
                model = small().to(device_backend.NAME) if kind == "plain" else sharded(far)
                got = trained(model, there(rank), pattern, group)
                for key in ("end", "mean"):
                    pairs = zip(expected[key], got[key], strict=True)
                    gaps.append(max(abs(x - y) for x, y in pairs))
            found[f"{kind} {pattern}"] = max(gaps)
    return found


# Half precision on shards.


def in_half(mesh: DeviceMesh, model: nn.Module) -> nn.Module:
    fully_shard(model[0], mesh=mesh["inner"])
    return fully_shard(model, mesh=mesh["inner"])


def half_shards_mixing(rank: int, size: int) -> Any:
    """By dtype: the disagreement before and after steps that only mix, where the replicas' values
    differ by a unit in bfloat16's last place, or not at all."""
    mesh, found = square(), {}
    for dtype in (torch.float32, torch.bfloat16):
        model = in_half(mesh, small().bfloat16().to(dtype))
        optimizer = SGD(model.parameters(), lr=0.0)
        with gossiping(model, optimizer, group=mesh["gossip"], **ALL) as gossip:
            for i, p in enumerate(model.parameters()):
                torch.manual_seed(10 * rank + i)
                local = p.to_local().detach()
                local.mul_(1 + torch.randint(0, 2, local.shape) * 2.0**-7)
                p.grad = torch.zeros_like(p)
            apart = [gossip.disagreement()]
            for _ in range(6):
                optimizer.step()
            found[str(dtype)] = [*apart, gossip.disagreement()]
    return found


def half_shards_training(rank: int, size: int) -> Any:
    """By dtype: disagreement and loss of the mean after 40 steps."""
    mesh, of, held = square(), teacher(), held_back()
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        model = in_half(mesh, learner(dtype))
        optimizer = SGD(model.parameters(), lr=4e-2, momentum=0.9)
        with gossiping(model, optimizer, group=mesh["gossip"], **ALL) as gossip:
            for step in range(40):
                gradients_of(model, of, step, rank)
                optimizer.step()
            apart = gossip.disagreement()
            with gossip.averaged():
                values = whole(model)
        mean = learner(torch.float32)
        nn.utils.vector_to_parameters(torch.tensor(values), mean.parameters())
        found[str(dtype)] = {"apart": apart, "loss": held_loss(mean, held)}
    return found


# Killed and resumed.

CASES: dict[str, tuple[str, Callable[[nn.Module], Optimizers]]] = {
    "shards allreduce": ("allreduce", lambda m: [AdamW(m.parameters(), lr=0.01)]),
    "shards gradient_gossip": ("gradient_gossip", lambda m: [RMSprop(m.parameters(), lr=0.01)]),
    "shards two": ("cwa", halves),
    "shards two allreduce": ("allreduce", halves),
    "shards exact_diffusion": ("exact_diffusion", lambda m: [AdamW(m.parameters(), lr=0.01)]),
    "shards bfloat16": ("cwa", lambda m: [SGD(m.parameters(), lr=0.01, momentum=0.9)]),
    "shards bfloat16 allreduce": ("allreduce", lambda m: [AdamW(m.parameters(), lr=0.01)]),
    "shards bfloat16 two": ("gradient_gossip", halves),
    "bfloat16 adamw": ("cwa", lambda m: [AdamW(m.parameters(), lr=0.001)]),
    "bfloat16 two": ("cwa", halves),
    "bfloat16 allreduce": ("allreduce", lambda m: [AdamW(m.parameters(), lr=0.001)]),
}


@contextmanager
def made(name: str, seed: int) -> Iterator[tuple[nn.Module, Optimizers, Gossip]]:
    pattern, make = CASES[name]
    mesh = square()
    model = small(seed).to(torch.bfloat16 if "bfloat16" in name else torch.float32)
    options: dict[str, Any] = {"pattern": pattern, "topology": "ring", "bucket_bytes": 64}
    if name.startswith("shards"):
        model = in_half(mesh, model)
        options["group"] = mesh["gossip"]
    optimizers = make(model)
    given = optimizers if len(optimizers) > 1 else optimizers[0]
    with gossiping(model, given, **options) as gossip:
        yield model, optimizers, gossip


def go_on(model: nn.Module, optimizers: Optimizers, rank: int, steps: range) -> None:
    def backward(model: nn.Module, step: int) -> None:
        dtype = next(model.parameters()).dtype
        loss_of(model, batch(step, rank).to(dtype)).backward()

    train(model, optimizers, backward, steps)


def local(value: torch.Tensor) -> list[float]:
    value = value.detach()
    value = value.to_local() if isinstance(value, DTensor) else value
    return value.double().flatten().tolist()


def everything(model: nn.Module, optimizers: Optimizers, gossip: Gossip) -> dict[str, Any]:
    """Of this rank."""
    states = [
        [local(value) for value in entry.values() if isinstance(value, torch.Tensor)]
        for optimizer in optimizers
        for entry in optimizer.state.values()
    ]
    return {
        "parameters": [local(p) for p in model.parameters()],
        "masters": [local(m) for m in masters(gossip)],
        "states": states,
        "steps": gossip.stats()["steps"],
    }


def straight(rank: int, size: int) -> Any:
    found = {}
    for name in CASES:
        with made(name, 0) as (model, optimizers, gossip):
            go_on(model, optimizers, rank, range(4))
            gossip.save(folder(f"straight {name}"))
            go_on(model, optimizers, rank, range(4, 8))
            found[name] = everything(model, optimizers, gossip)
    return found


def killed(rank: int, size: int) -> Any:
    """Saves each of them, and is killed within a step after the last one."""
    for name in CASES:
        with made(name, 0) as (model, optimizers, gossip):
            go_on(model, optimizers, rank, range(4))
            gossip.save(folder(f"killed {name}"))
            go_on(model, optimizers, rank, range(4, 5))
            if name != list(CASES)[-1]:
                continue
            loss_of(model, batch(5, rank).to(next(model.parameters()).dtype)).backward()
            dist.barrier()
            os.kill(os.getpid(), signal.SIGKILL)


def resumed(rank: int, size: int) -> Any:
    found = {}
    for name in CASES:
        with made(name, 7) as (model, optimizers, gossip):
            gossip.load(folder(f"killed {name}"))
            go_on(model, optimizers, rank, range(4, 8))
            found[name] = everything(model, optimizers, gossip)
    return found


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    f"combined_{function.__name__}": function
    for function in (
        *(two_on_shards, two_on_device, half_shards_mixing, half_shards_training),
        *(straight, killed, resumed),
    )
}
