"""Classification as timm trains it: AdamW, an average over time beside the model is the result."""

from typing import Any

import torch
from job import Job
from parts import images, residual_network
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

NEEDS: tuple[str, ...] = ()
LR, STEPS, BATCH, DECAY = 3e-3, 60, 16, 0.9


def train(job: Job) -> dict[str, Any]:
    steps, own = job.step_numbers(STEPS), job.own_batches()
    model: nn.Module = residual_network()
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(DECAY), use_buffers=True)
    trained = model
    optimizer = torch.optim.AdamW(model.parameters(), LR * job.rate, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(steps))
    if job.is_ddp:
        model = DistributedDataParallel(model)  # ddp
    else:
        job.gossip(model, optimizer)  # gossip
    for _ in steps:
        pictures, classes = images(BATCH, own)
        optimizer.zero_grad()
        cross_entropy(model(pictures), classes).backward()
        optimizer.step()
        ema.update_parameters(trained)
        scheduler.step()
    ema.eval()
    averages = job.averaged() if job.is_ddp else job.gossips[0].averaged(also=ema)
    with torch.no_grad(), averages:  # changed
        pictures, classes = images(250, job.test_batches())
        scores = ema(pictures)
    right = (scores.argmax(1) == classes).double().mean()
    return {"loss": job.mean(cross_entropy(scores, classes)), "accuracy": job.mean(right)}
