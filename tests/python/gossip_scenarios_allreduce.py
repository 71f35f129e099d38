"""What the workers of the AllReduce tests do: the same training under DDP and under Gossip."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from gossip_scenarios_basic import gossiping
from gossip_support import batch, difference, loss_of, mlp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import StepLR

STEPS = 100
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda groups: SGD(groups, lr=0.05),
    "momentum": lambda groups: SGD(groups, lr=0.02, momentum=0.9),
    "adam": lambda groups: Adam(groups, lr=1e-3),
    "adamw": lambda groups: AdamW(groups, lr=1e-3),
}


def two_groups(model: nn.Module) -> list[dict[str, Any]]:
    weights = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    return [{"params": weights, "weight_decay": 0.1}, {"params": others, "lr": 2e-3}]


def train(forward: nn.Module, model: nn.Module, optimizer: torch.optim.Optimizer, rank: int) -> Any:
    """With a schedule and clipping that bites."""
    scheduler = StepLR(optimizer, STEPS // 3, 0.5)
    clipped = 0
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(forward, batch(step, rank)).backward()
        clipped += bool(nn.utils.clip_grad_norm_(model.parameters(), 0.2) > 0.2)
        optimizer.step()
        scheduler.step()
    return clipped


def allreduce_and_ddp(rank: int, size: int) -> Any:
    found = {}
    for name, make in OPTIMIZERS.items():
        ours = mlp(seed=rank)
        optimizer = make(two_groups(ours))
        with gossiping(ours, optimizer, pattern="allreduce", bucket_bytes=64):
            reference = copy.deepcopy(ours)  # rank 0's values
            clipped = train(ours, ours, optimizer, rank)
        other = make(two_groups(reference))
        train(DistributedDataParallel(reference), reference, other, rank)
        found[name] = {"difference": difference(ours, reference), "clipped": clipped}
    return found


def accumulation(rank: int, size: int) -> Any:
    """Two backwards per step; the unused head of worker 0 still gets the others' gradient."""
    model = nn.ModuleDict({"body": mlp(), "head": nn.Linear(3, 1)})
    optimizer = SGD(model.parameters(), lr=0.05)
    with gossiping(model, optimizer, pattern="allreduce") as gossip:
        for step in range(3):
            optimizer.zero_grad()
            with gossip.no_sync():
                loss_of(model["body"], batch(2 * step, rank)).backward()
                local = model["body"][0].weight.grad.clone()
            loss = loss_of(model["body"], batch(2 * step + 1, rank))
            if rank > 0:
                loss = loss + model["head"](model["body"](batch(step, rank))).mean()
            loss.backward()
            optimizer.step()
        mean = [p.grad.flatten().tolist() for p in model.parameters()]
        return {"gradients": mean, "local": local.flatten().tolist()}


def partly_used(rank: int, size: int) -> Any:
    """By codec: gradients of a large parameter, of one that only rank 1 uses, of one that nobody
    does; all in one block of a codec."""
    found = {}
    for codec in ("fp32", "bf16", "int8"):
        model = nn.ParameterList([torch.ones(4), torch.ones(2), torch.ones(3)])
        optimizer = SGD(model.parameters(), lr=0.05)
        with gossiping(model, optimizer, pattern="allreduce", codec=codec):
            loss = 1e6 * (rank + 1) * model[0].sum()
            if rank == 1:
                loss = loss + 1e4 * size * model[1].sum()
            loss.backward()
        found[codec] = [None if p.grad is None else p.grad.tolist() for p in model]
    return found


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    "allreduce_and_ddp": allreduce_and_ddp,
    "accumulation": accumulation,
    "partly_used": partly_used,
}
