"""What the pages take for granted in their Python: the names of a training script."""

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import gossamer


class Classifier(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))

    @property
    def layers(self) -> list[nn.Module]:
        return [self[0], self[3]]


def names() -> dict[str, Any]:
    torch.manual_seed(0)
    model = Classifier()
    loader = [(torch.randn(4, 6), torch.randint(3, (4,))) for _ in range(8)]
    return {
        "data": [(x, y) for xs, ys in loader for x, y in zip(xs, ys, strict=True)],
        "dist": dist,
        "DistributedDataParallel": DistributedDataParallel,
        "fully_shard": fully_shard,
        "gossamer": gossamer,
        "init_device_mesh": init_device_mesh,
        "loader": loader,
        "loss_of": lambda model, x, y: cross_entropy(model(x), y),
        "model": model,
        "optimizer": torch.optim.AdamW(model.parameters(), lr=1e-3),
        "rank": 0,
        "torch": torch,
        "x": loader[0][0],
        "y": loader[0][1],
    }
