"""A loop over Lightning Fabric; its setup() would wrap the model in DDP."""

from typing import Any

import torch
from job import Job
from parts import CharacterModel, text, text_loss, windows
from torch import nn

NEEDS = ("lightning",)
LR, STEPS, BATCH, LENGTH = 2e-3, 80, 12, 64


def train(job: Job) -> dict[str, Any]:
    import lightning

    training, held_back = text()
    own = job.own_batches()
    fabric = lightning.Fabric(accelerator="cpu", devices=1, num_nodes=job.size, strategy="ddp")
    fabric.launch()
    model: nn.Module = CharacterModel(LENGTH)
    optimizer: Any = torch.optim.AdamW(model.parameters(), LR * job.rate)
    if job.is_ddp:
        model, optimizer = fabric.setup(model, optimizer)  # ddp
    else:
        job.gossip(model, optimizer)  # gossip
        optimizer = fabric.setup_optimizers(optimizer)  # gossip
    for _ in job.step_numbers(STEPS):
        optimizer.zero_grad()
        fabric.backward(text_loss(model, *windows(training, BATCH, LENGTH, own)))
        optimizer.step()
    with torch.no_grad(), job.averaged():  # changed
        loss = text_loss(model, *windows(held_back, 60, LENGTH, job.test_batches()))
    return {"loss": job.mean(loss)}
