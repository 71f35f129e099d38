"""A character model with Muon for the matrices of its blocks and AdamW for all else."""

from typing import Any

import torch
from job import Job
from parts import CharacterModel, text, text_loss, windows
from torch import nn
from torch.nn.parallel import DistributedDataParallel

NEEDS: tuple[str, ...] = ()
LR, LR_MUON, STEPS, BATCH, LENGTH = 3e-3, 0.02, 80, 12, 64


def train(job: Job) -> dict[str, Any]:
    training, held_back = text()
    own = job.own_batches()
    model: nn.Module = CharacterModel(LENGTH)
    matrices = [p for n, p in model.named_parameters() if "blocks" in n and p.ndim == 2]
    others = [p for n, p in model.named_parameters() if "blocks" not in n or p.ndim != 2]
    muon = torch.optim.Muon(matrices, LR_MUON * job.rate, weight_decay=0.0)
    adamw = torch.optim.AdamW(others, LR * job.rate, betas=(0.9, 0.95))
    if job.is_ddp:
        model = DistributedDataParallel(model)  # ddp
    else:
        job.gossip(model, muon)  # gossip
        job.gossip(model, adamw)  # gossip
    for _ in job.step_numbers(STEPS):
        model.zero_grad()
        text_loss(model, *windows(training, BATCH, LENGTH, own)).backward()
        muon.step()
        adamw.step()
    with torch.no_grad(), job.averaged():  # changed
        loss = text_loss(model, *windows(held_back, 60, LENGTH, job.test_batches()))
    return {"loss": job.mean(loss)}
