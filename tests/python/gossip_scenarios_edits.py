"""Parameters that the user changes between steps, coded and over TCP."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from gossip_support import batch, loss_of, mlp
from torch import nn
from torch.optim import SGD
from user_actions import apart

from gossamer import Gossip

LR = 0.05
STEPS = 7


def flat(tensors: Any) -> torch.Tensor:
    return torch.cat([tensor.detach().flatten() for tensor in tensors])


def mean_over_ranks(values: torch.Tensor) -> torch.Tensor:
    total = values.clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def reset_head(model: nn.Sequential, rank: int) -> None:
    with torch.no_grad():
        model[2].weight.fill_(0.3)
        model[2].bias.data.zero_()


def clamp(model: nn.Sequential, rank: int) -> None:
    for p in model.parameters():
        p.data.clamp_(-0.2, 0.2)


def own_change(model: nn.Sequential, rank: int) -> None:
    with torch.no_grad():
        model[0].weight.add_(0.1 * (rank + 1))


def swap_and_back(model: nn.Sequential, rank: int) -> None:
    kept = [p.detach().clone() for p in model.parameters()]
    for p in model.parameters():
        p.data.fill_(7.0)
    for p, old in zip(model.parameters(), kept, strict=True):
        p.data = old


EDITS: dict[int, Callable[[nn.Sequential, int], None]] = {
    1: reset_head, 2: clamp, 3: own_change, 4: swap_and_back,
}  # fmt: skip


class Sam:
    """Sharpness-aware minimisation around an optimizer: two gradients per step, the first of which
    moves the parameters away and back by giving them other memory."""

    def __init__(self, base: torch.optim.Optimizer) -> None:
        self.base = base
        self._old: list[tuple[nn.Parameter, torch.Tensor]] = []

    def away(self) -> None:
        parameters = [p for group in self.base.param_groups for p in group["params"]]
        self._old = [(p, p.data.clone()) for p in parameters]
        for p in parameters:
            p.data.add_(p.grad, alpha=0.01)

    def back_and_step(self) -> None:
        for p, old in self._old:
            p.data = old
        self.base.step()


def edits(rank: int, size: int, *, codec: str, pattern: str, tcp: bool) -> dict[str, float]:
    """How far the mean over the workers is from what changes and gradients make of it, and how far
    the workers are from each other."""
    model = mlp().double()
    optimizer = SGD(model.parameters(), lr=LR)
    sam = Sam(optimizer)
    with apart() if tcp else nullcontext():
        gossip = Gossip(
            model, optimizer, topology="ring", pattern=pattern, codec=codec, timeout_s=20
        )
    off = 0.0
    for step in range(STEPS):
        EDITS.get(step, lambda *_: None)(model, rank)
        x = batch(step, rank).double()
        optimizer.zero_grad()
        loss_of(model, x).backward()
        if step == 5:
            sam.away()
            optimizer.zero_grad()
            loss_of(model, x).backward()
            before = flat(old for _, old in sam._old)
            sam.back_and_step()
        else:
            before = flat(model.parameters())
            optimizer.step()
        gradient = flat(p.grad for p in model.parameters())
        expected = mean_over_ranks(before - LR * gradient)
        off = max(off, float((mean_over_ranks(flat(model.parameters())) - expected).abs().max()))
    values = flat(model.parameters())
    spread = float((values - mean_over_ranks(values)).abs().max())
    gossip.close()
    return {"off": off, "spread": spread}


CASES = [
    (codec, pattern)
    for pattern in ("cwa", "atc", "allreduce")
    for codec in ("fp32", "bf16", "int8")
]  # fmt: skip


def edited(rank: int, size: int) -> Any:
    tcp = os.geteuid() == 0
    return {
        f"{pattern} {codec}": edits(rank, size, codec=codec, pattern=pattern, tcp=tcp)
        for codec, pattern in CASES
    }


SCENARIOS: dict[str, Callable[[int, int], Any]] = {"edited": edited}
