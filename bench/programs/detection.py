"""Finds a bright rectangle: a backbone whose first layers and batch norms are frozen, two heads."""

from typing import Any

import torch
from job import Job
from parts import SIDE, residual_network
from torch import nn
from torch.nn.functional import cross_entropy, smooth_l1_loss
from torch.nn.parallel import DistributedDataParallel

NEEDS: tuple[str, ...] = ()
LR, STEPS, BATCH = 0.005, 80, 16


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = residual_network()[:-3]
        with torch.no_grad():  # what a trained backbone brings along
            for layer in self.backbone.modules():
                if isinstance(layer, nn.BatchNorm2d):
                    layer.momentum = None
            self.backbone(scenes(64, torch.Generator().manual_seed(3))[0])
        for layer in self.backbone[:4]:
            layer.requires_grad_(False)
        self.box = nn.Sequential(nn.Flatten(), nn.Linear(48 * (SIDE // 4) ** 2, 4))
        self.kind = nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(48, 3))

    def train(self, mode: bool = True) -> "Detector":
        super().train(mode)
        self.backbone.eval()  # frozen batch norm
        return self

    def forward(self, pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.backbone(pictures)
        return self.box(found), self.kind(found)


def scenes(count: int, draw: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pictures, boxes as parts of the side, colours."""
    pictures = 0.3 * torch.randn(count, 3, SIDE, SIDE, generator=draw)
    corners = torch.randint(0, SIDE // 2, (count, 2), generator=draw)
    sizes = torch.randint(4, SIDE // 2, (count, 2), generator=draw)
    kinds = torch.randint(3, (count,), generator=draw)
    for i, ((x, y), (w, h)) in enumerate(zip(corners.tolist(), sizes.tolist(), strict=True)):
        pictures[i, kinds[i], y : y + h, x : x + w] += 2
    return pictures, torch.cat([corners, sizes], 1) / SIDE, kinds


def loss_of(model: nn.Module, draw: torch.Generator, count: int) -> torch.Tensor:
    pictures, boxes, kinds = scenes(count, draw)
    found, scores = model(pictures)
    return 10 * smooth_l1_loss(found, boxes, beta=0.1) + cross_entropy(scores, kinds)


def train(job: Job) -> dict[str, Any]:
    own, steps = job.own_batches(), job.step_numbers(STEPS)
    model: nn.Module = Detector().train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, LR * job.rate, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [len(steps) * 3 // 4])
    if job.is_ddp:
        model = DistributedDataParallel(model)  # ddp
    else:
        job.gossip(model, optimizer)  # gossip
    for _ in steps:
        optimizer.zero_grad()
        loss_of(model, own, BATCH).backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad(), job.averaged():  # changed
        return {"loss": job.mean(loss_of(model, job.test_batches(), 250))}
