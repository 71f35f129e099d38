"""A character model with an optimizer of its own, which averages gradients in its step."""

from typing import Any

import torch
import torch.distributed as dist
from job import Job
from parts import CharacterModel, text, text_loss, windows
from torch import nn

NEEDS: tuple[str, ...] = ()
LR, STEPS, BATCH, LENGTH = 3e-3, 80, 12, 64


class SignedMomentum(torch.optim.Optimizer):
    """Steps by an average of the sign and the size of its momentum."""

    def __init__(self, parameters: Any, lr: float, group: dist.ProcessGroup | None) -> None:
        super().__init__(parameters, {"lr": lr})
        self.group = group  # to average over; None: nobody

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if self.group is not None:
                    dist.all_reduce(p.grad, group=self.group)
                    p.grad /= dist.get_world_size(self.group)
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                momentum.lerp_(p.grad, 0.1)
                scale = momentum.abs().mean() + 1e-12
                p.sub_((momentum / scale).clamp(-2, 2), alpha=group["lr"])


def train(job: Job) -> dict[str, Any]:
    training, held_back = text()
    own = job.own_batches()
    model: nn.Module = CharacterModel(LENGTH)
    group = dist.group.WORLD if job.is_ddp else None
    optimizer = SignedMomentum(model.parameters(), LR * job.rate, group)  # changed
    if not job.is_ddp:
        job.gossip(model, optimizer)  # gossip
    for _ in job.step_numbers(STEPS):
        optimizer.zero_grad()
        text_loss(model, *windows(training, BATCH, LENGTH, own)).backward()
        optimizer.step()
    with torch.no_grad(), job.averaged():  # changed
        loss = text_loss(model, *windows(held_back, 60, LENGTH, job.test_batches()))
    return {"loss": job.mean(loss)}
