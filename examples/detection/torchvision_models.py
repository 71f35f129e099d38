"""torchvision's RetinaNet and Faster R-CNN, small and not trained before, where it is installed.

Group norm stands for their batch norm, as in detectors.py.
"""

import importlib.util
from typing import Any

import torch
from torch import nn

from detectors import GROUPS, Found, Target

NAMES = ("torchvision_retinanet", "torchvision_fasterrcnn")


class TorchvisionModel(nn.Module):
    """With the loss of images [n, 3, size, size] and what is in them."""

    def __init__(self, inner: nn.Module, *, has_background: bool) -> None:
        super().__init__()
        self.inner = inner
        self._first = 1 if has_background else 0  # its number of our label 0

    def forward(self, images: torch.Tensor, targets: list[Target]) -> torch.Tensor:
        self.inner.train()
        named = [{"boxes": t.boxes, "labels": t.labels + self._first} for t in targets]
        return torch.stack([*self.inner(list(images), named).values()]).sum()

    @torch.no_grad()
    def detect(self, images: torch.Tensor) -> list[Found]:
        self.inner.eval()
        return [
            Found(each["boxes"], each["scores"], each["labels"] - self._first)
            for each in self.inner(list(images))
        ]


def group_norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(GROUPS, channels)


def make(name: str, classes: int, size: int) -> TorchvisionModel:
    """Raises ValueError where torchvision is not installed."""
    if importlib.util.find_spec("torchvision") is None:
        raise ValueError(
            f"[detection] --model {name} needs torchvision, got none; install the one for your "
            "torch, or take --model retinanet or fasterrcnn"
        )
    from torchvision.models.detection import FasterRCNN, RetinaNet
    from torchvision.models.detection.anchor_utils import AnchorGenerator
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    backbone = resnet_fpn_backbone(
        backbone_name="resnet18", weights=None, norm_layer=group_norm, trainable_layers=5
    )
    backbone.fpn.extra_blocks = None
    grown = size / 96
    sides = tuple((round(grown * side),) for side in (12, 17, 24, 34))
    anchors = AnchorGenerator(sides, ((1.0, 2.0),) * len(sides))
    shared: dict[str, Any] = {
        "image_mean": [0.0] * 3,
        "image_std": [1.0] * 3,
        "min_size": size,
        "max_size": size,
    }
    if name == "torchvision_retinanet":
        inner: nn.Module = RetinaNet(backbone, classes, anchor_generator=anchors, **shared)
        return TorchvisionModel(inner, has_background=False)
    inner = FasterRCNN(
        backbone,
        classes + 1,
        rpn_anchor_generator=anchors,
        rpn_pre_nms_top_n_train=200,
        rpn_post_nms_top_n_train=100,
        rpn_pre_nms_top_n_test=200,
        rpn_post_nms_top_n_test=100,
        box_batch_size_per_image=64,
        **shared,
    )
    return TorchvisionModel(inner, has_background=True)
