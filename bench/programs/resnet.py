"""Classification as torch's ImageNet example: residual network, batch norm, SGD with momentum."""

from typing import Any

import torch
from job import Job
from parts import images, residual_network
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

NEEDS: tuple[str, ...] = ()
LR, STEPS, BATCH = 0.1, 60, 16


def train(job: Job) -> dict[str, Any]:
    steps, own = job.step_numbers(STEPS), job.own_batches()
    model: nn.Module = residual_network()
    optimizer = torch.optim.SGD(model.parameters(), LR * job.rate, momentum=0.9, weight_decay=1e-4)
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
        scheduler.step()
    model.eval()
    with torch.no_grad(), job.averaged():  # changed
        pictures, classes = images(250, job.test_batches())
        scores = model(pictures)
    right = (scores.argmax(1) == classes).double().mean()
    return {"loss": job.mean(cross_entropy(scores, classes)), "accuracy": job.mean(right)}
