"""A character model that learns a short text by heart, as minGPT's example: the loss falls fast."""

from typing import Any

import torch
from job import Job
from parts import CharacterModel, text, text_loss, windows
from torch import nn
from torch.nn.parallel import DistributedDataParallel

NEEDS: tuple[str, ...] = ()
LR, STEPS, BATCH, LENGTH = 2e-3, 160, 16, 32


def train(job: Job) -> dict[str, Any]:
    short = text()[0][:3000]
    own = job.own_batches()
    model: nn.Module = CharacterModel(LENGTH, width=64)
    optimizer = torch.optim.AdamW(model.parameters(), LR * job.rate, betas=(0.9, 0.95))
    if job.is_ddp:
        model = DistributedDataParallel(model)  # ddp
    else:
        job.gossip(model, optimizer)  # gossip
    for _ in job.step_numbers(STEPS):
        optimizer.zero_grad()
        text_loss(model, *windows(short, BATCH, LENGTH, own)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad(), job.averaged():  # changed
        loss = text_loss(model, *windows(short, 200, LENGTH, job.test_batches()))
    return {"loss": job.mean(loss)}
