"""What all workers of a training find out together; every function here is collective."""

import math
import statistics
import time
from collections.abc import Iterable

import torch
import torch.distributed as dist
from models import loss_of
from torch import nn
from torch.distributed.tensor import DTensor

ALL_REDUCES = 3
AT_ONCE = 64  # windows of a validation


def trouble(losses: Iterable[float], begin: float, end: float) -> str:
    """What is wrong with a training of these losses, and validations before and after it."""
    if not all(map(math.isfinite, [*losses, begin, end])):
        return "a loss is not finite"
    return "" if end < begin else f"nothing was learned: the loss went from {begin:g} to {end:g}"


def total(value: float) -> float:
    """The sum over all workers."""
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(tensor)
    return float(tensor)


def largest(value: float) -> float:
    """Of all workers'."""
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return float(tensor)


@torch.no_grad()
def validation_loss(model: nn.Module, text: torch.Tensor, length: int) -> float:
    """The mean loss over all of `text` in windows, which are dealt to the workers."""
    count = (len(text) - 1) // length
    rank, size = dist.get_rank(), dist.get_world_size()
    inputs = text[: count * length].view(count, length)[rank::size].long()
    targets = text[1 : count * length + 1].view(count, length)[rank::size].long()
    model.eval()
    found = 0.0
    for batch in zip(inputs.split(AT_ONCE), targets.split(AT_ONCE), strict=True):
        found += float(loss_of(model, batch)) * len(batch[0])
    model.train()
    return total(found) / count


def all_reduce_s(count: int) -> float:
    """Seconds that torch's all-reduce of this many floats takes on these links."""
    tensor, found = torch.zeros(count), []
    for _ in range(1 + ALL_REDUCES):
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(tensor)
        found.append(time.perf_counter() - begin)
    return largest(statistics.median(found[1:]))


def whole(model: nn.Module) -> torch.Tensor:
    """All parameters, also those that other ranks of a replica hold."""
    values = [p.full_tensor() if isinstance(p, DTensor) else p for p in model.parameters()]
    return torch.cat([each.flatten() for each in values])


@torch.no_grad()
def disagreement(model: nn.Module) -> float:
    """√(mean over workers of ‖xᵢ - x̄‖²) / ‖x̄‖."""
    mine = whole(model).double()
    mean = mine.clone()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    apart = total(float((mine - mean).square().sum())) / dist.get_world_size()
    return math.sqrt(apart) / float(mean.norm())


@torch.no_grad()
def workers_are_equal(model: nn.Module) -> bool:
    """Whether all have the bits of rank 0's parameters."""
    mine = whole(model)
    first = mine.clone()
    dist.broadcast(first, 0)
    return total(float(not torch.equal(mine, first))) == 0
