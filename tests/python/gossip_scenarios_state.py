"""What two workers of the tests of state that is mixed do; the oracles are in the tests."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from gossip_scenarios_basic import gossiping, numbers
from gossip_scenarios_mesh import all_of, sharded, small, square
from gossip_scenarios_save import everything, folder
from gossip_support import batch, gap, loss_of, mlp
from schedulefree import AdamWScheduleFree, SGDScheduleFree
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, Adam, AdamW, RMSprop
from torch.optim.swa_utils import AveragedModel

from gossamer import Gossip

STEPS = 30
WIDE = 100
DECAY = 0.9
DOUBLE = torch.float64


def schedule_free(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = SGDScheduleFree(model.parameters(), lr=0.1, momentum=0.8, warmup_steps=3)
    optimizer.train()
    return optimizer


def train_free(
    model: nn.Module, optimizer: torch.optim.Optimizer, steps: range, rank: int, **how: Any
) -> None:
    forward, dtype = how.get("forward", model), next(model.parameters()).dtype
    for step in steps:
        optimizer.zero_grad()
        loss_of(forward, batch(step, rank).to(dtype)).backward()
        optimizer.step()


def z_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[float]:
    return torch.cat([optimizer.state[p]["z"].flatten() for p in model.parameters()]).tolist()


def moving_average(model: nn.Module) -> AveragedModel:
    return AveragedModel(
        model, avg_fn=lambda old, new, _: DECAY * old + (1 - DECAY) * new, use_buffers=True
    )


# Schedule-free.


def recursion(rank: int, size: int) -> Any:
    """By pattern: y and z at the end, and the mean of both in averaged()."""
    found: dict[str, dict[str, Any]] = {}
    for pattern in ("atc", "cwa", "gradient_gossip"):
        model = mlp(seed=rank).double()
        optimizer = schedule_free(model)
        options = {"topology": "complete", "pattern": pattern, "bucket_bytes": 64}
        with gossiping(model, optimizer, mix_state="z", **options) as gossip:
            train_free(model, optimizer, range(STEPS), rank)
            found[pattern] = {"y": numbers(model), "z": z_of(model, optimizer)}
            with gossip.averaged():
                found[pattern]["mean"] = [numbers(model), z_of(model, optimizer)]
            found[pattern]["again"] = [numbers(model), z_of(model, optimizer)]
    return found


def as_ddp(rank: int, size: int) -> Any:
    """What is evaluated, here and with the same optimizer under DDP; and how far z is apart, also
    without a mix of z."""
    found: dict[str, Any] = {}
    for name in ("mixed", "ddp", "unmixed"):
        model = mlp(seed=0).double()
        optimizer = schedule_free(model)
        if name == "ddp":
            forward = DistributedDataParallel(model)
            train_free(model, optimizer, range(STEPS), rank, forward=forward)
            optimizer.eval()
            found[name] = numbers(model)
            continue
        mix_state = ("z",) if name == "mixed" else ()
        options = {"topology": "complete", "pattern": "atc"}
        with gossiping(model, optimizer, mix_state=mix_state, **options) as gossip:
            train_free(model, optimizer, range(STEPS), rank)
            optimizer.eval()
            with gossip.averaged():
                found[name] = numbers(model)
        found[f"{name} z"] = z_of(model, optimizer)
    return found


class Replacing(SGD):
    """Keeps a second sequence, in a new tensor after every step."""

    def step(self, closure: Any = None) -> Any:
        super().step(closure)
        for p in self.param_groups[0]["params"]:
            former = self.state[p].get("z", torch.zeros_like(p))
            self.state[p]["z"] = 0.5 * former + p.detach()


class InPlace(Replacing):
    """The same, in one tensor."""

    def step(self, closure: Any = None) -> Any:
        SGD.step(self, closure)
        for p in self.param_groups[0]["params"]:
            z = self.state[p].setdefault("z", torch.zeros_like(p))
            z.mul_(0.5).add_(p.detach())


def replaced(rank: int, size: int) -> Any:
    """Two optimizers that differ in where they keep their state."""
    found = []
    for kind in (Replacing, InPlace):
        model = mlp(seed=0).double()
        optimizer = kind(model.parameters(), lr=0.1)
        with gossiping(model, optimizer, topology="complete", mix_state="z") as gossip:
            train_free(model, optimizer, range(10), rank)
            found.append([numbers(model), z_of(model, optimizer), gossip.stats()["steps"]])
    return found


def among_others(rank: int, size: int) -> Any:
    """y and z of one optimizer of two, which alone has a z."""
    model = mlp(seed=rank).double()
    matrices = [p for p in model.parameters() if p.ndim == 2]
    free = SGDScheduleFree(matrices, lr=0.1)
    free.train()
    other = AdamW([p for p in model.parameters() if p.ndim < 2], lr=0.01)
    options: dict[str, Any] = {"topology": "complete", "pattern": "atc", "mix_state": "z"}
    with gossiping(model, [free, other], **options) as gossip:
        for step in range(10):
            free.zero_grad()
            other.zero_grad()
            loss_of(model, batch(step, rank).double()).backward()
            free.step()
            other.step()
        z = torch.cat([free.state[p]["z"].flatten() for p in matrices])
        return {"y": numbers(model), "z": z.tolist(), "steps": gossip.stats()["steps"]}


def in_shards(rank: int, size: int) -> Any:
    """How far y, z, their means and their ends after a load are from those of plain workers."""
    mesh = square()
    replica = mesh["gossip"].get_local_rank()
    ends = []
    for is_sharded in (False, True):
        model = small(replica)
        if is_sharded:
            model = sharded(mesh, replica)
        optimizer = SGDScheduleFree(model.parameters(), lr=0.1, foreach=False)
        optimizer.train()
        place = folder(f"shards-{is_sharded}" if is_sharded else f"plain-{rank % 2}")
        options: dict[str, Any] = {"topology": "complete", "mix_state": {"z": 2}}
        with gossiping(model, optimizer, group=mesh["gossip"], **options) as gossip:
            train_free(model, optimizer, range(5), replica)
            gossip.save(place)
            train_free(model, optimizer, range(5, 8), replica)
            with gossip.averaged():
                ends.append(both_of(model, optimizer))
            ends.append(both_of(model, optimizer))
            gossip.load(place)
            train_free(model, optimizer, range(5, 8), replica)
            ends.append(both_of(model, optimizer))
    plain, sharded_ends = ends[:3], ends[3:]
    return {
        "apart": [gap(a, b) for a, b in zip(plain, sharded_ends, strict=True)],
        "resumed": [each[1] == each[2] for each in (plain, sharded_ends)],
    }


def both_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[float]:
    """y and z, also what other ranks hold of them. Collective."""
    return all_of(each for p in model.parameters() for each in (p, optimizer.state[p]["z"]))


# A moving average.


def averages(rank: int, size: int) -> Any:
    """By period: parameters after each step, the moving average and its mean, bytes sent."""
    found = {}
    for every in (0, 1, 4):
        for name, make in (
            ("fused", Adam),
            ("own", RMSprop),
            ("gradients", Adam),
            ("both", RMSprop),
        ):
            model = mlp(seed=rank, hidden=WIDE).double()
            optimizer = make(model.parameters(), lr=0.01)
            ema = moving_average(model)
            options: dict[str, Any] = {"mix_state": {ema: every}} if every else {}
            if name in ("gradients", "both"):
                options["pattern"] = "gradient_gossip"
            with gossiping(model, optimizer, topology="ring", **options) as gossip:
                path = []
                ema.update_parameters(model)
                for step in range(16):
                    train_free(model, optimizer, range(step, step + 1), rank)
                    ema.update_parameters(model)
                    path.append(numbers(model))
                gossip._run.team.engine.quiesce()  # what leaves ahead has left
                sent = sum(edge["sent"] for edge in gossip.stats()["edges"].values())
                local, apart = numbers(ema), gossip.disagreement()
                with gossip.averaged(also=() if every else ema):
                    mean = numbers(ema)
                found[f"{name} {every}"] = {
                    "path": path,
                    "local": local,
                    "mean": mean,
                    "sent": sent,
                    "apart": apart,
                    "restored": numbers(ema) == local,
                    "fused": gossip.is_fused,
                }
    return found


# Checkpoints.


@contextmanager
def on_ring(seed: int, dtype: torch.dtype) -> Iterator[tuple[Any, Any, Any, Gossip]]:
    model = mlp(seed=seed).to(dtype)
    optimizer = AdamWScheduleFree(model.parameters(), lr=0.01)
    optimizer.train()
    ema = moving_average(model)
    options: dict[str, Any] = {"topology": "ring", "mix_state": {"z": 2, ema: 3}}
    with gossiping(model, optimizer, **options) as gossip:
        yield model, optimizer, ema, gossip


def train_with(model: Any, optimizer: Any, ema: Any, steps: range, rank: int) -> None:
    for step in steps:
        train_free(model, optimizer, range(step, step + 1), rank)
        ema.update_parameters(model)


def ends(rank: int, name: str, dtype: torch.dtype, *, kills: bool = False) -> Any:
    with on_ring(rank, dtype) as (model, optimizer, ema, gossip):
        train_with(model, optimizer, ema, range(7), rank)
        gossip.save(folder(f"{name}-{dtype}"))
        if kills:
            dist.barrier()
            os.kill(os.getpid(), signal.SIGKILL)
        train_with(model, optimizer, ema, range(7, 14), rank)
        return [everything(model, optimizer), numbers(ema), int(ema.n_averaged)]


def resumes(rank: int, dtype: torch.dtype) -> Any:
    with on_ring(rank + 5, dtype) as (model, optimizer, ema, gossip):
        gossip.load(folder(f"killed-{dtype}"))
        ema.n_averaged.fill_(7)
        train_with(model, optimizer, ema, range(7, 14), rank)
        return [everything(model, optimizer), numbers(ema), int(ema.n_averaged)]


def straight(rank: int, size: int) -> Any:
    return [ends(rank, "straight", dtype) for dtype in (DOUBLE, torch.bfloat16)]


def killed(rank: int, size: int) -> Any:
    ends(rank, "killed", DOUBLE, kills=True)


def killed_half(rank: int, size: int) -> Any:
    ends(rank, "killed", torch.bfloat16, kills=True)


def resumed(rank: int, size: int) -> Any:
    return [resumes(rank, dtype) for dtype in (DOUBLE, torch.bfloat16)]


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    "state_recursion": recursion,
    "state_as_ddp": as_ddp,
    "state_replaced": replaced,
    "state_among_others": among_others,
    "state_averages": averages,
    "state_straight": straight,
}
LAUNCHES: dict[str, Callable[[int, int], Any]] = {
    "state_in_shards": in_shards,
    "state_killed": killed,
    "state_killed_half": killed_half,
    "state_resumed": resumed,
}
