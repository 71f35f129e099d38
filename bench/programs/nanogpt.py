"""A character model as nanoGPT trains it: warm-up and cosine, clipping, decay for matrices only."""

from typing import Any

import torch
from job import Job
from parts import CharacterModel, text, text_loss, windows
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import OneCycleLR

NEEDS: tuple[str, ...] = ()
LR, STEPS, BATCH, LENGTH = 1e-3, 100, 12, 64


def train(job: Job) -> dict[str, Any]:
    training, held_back = text()
    steps, own = job.step_numbers(STEPS), job.own_batches()
    model: nn.Module = CharacterModel(LENGTH)
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, LR * job.rate, betas=(0.9, 0.99), weight_decay=0.1)
    if job.is_ddp:
        model = DistributedDataParallel(model)  # ddp
    else:
        job.gossip(model, optimizer)  # gossip
    scheduler = OneCycleLR(optimizer, [LR * job.rate] * 2, len(steps), pct_start=0.1)
    for _ in steps:
        optimizer.zero_grad()
        text_loss(model, *windows(training, BATCH, LENGTH, own)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    with torch.no_grad(), job.averaged():  # changed
        loss = text_loss(model, *windows(held_back, 60, LENGTH, job.test_batches()))
    return {"loss": job.mean(loss)}
