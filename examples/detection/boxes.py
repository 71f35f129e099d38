"""What detectors do with boxes, in torch alone. A box is left, top, right, bottom in pixels."""

from collections.abc import Sequence

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, grid_sample

# Corrections of a box are about as large as 1 after this; exp of the last two stays below 8.
SCALES = (10.0, 10.0, 5.0, 5.0)
MOST_GROWTH = 2.0

BACKGROUND, IGNORED = -1, -2


def areas(boxes: torch.Tensor) -> torch.Tensor:
    return (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(-1)


def iou(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Intersection over union [n, m] of boxes [n, 4] and [m, 4]."""
    low = torch.maximum(a[:, None, :2], b[None, :, :2])
    high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    return both / (areas(a)[:, None] + areas(b)[None] - both).clamp(min=1e-6)


def anchors(
    size: int, stride: int, sides: Sequence[float], ratios: Sequence[float]
) -> torch.Tensor:
    """Boxes [n, 4] around the centres of a map's cells, all of a cell one after the other. A side
    is the root of the area, a ratio height over width."""
    shapes = torch.tensor([(s / r**0.5, s * r**0.5) for s in sides for r in ratios])
    middle = (torch.arange(size // stride) + 0.5) * stride
    y, x = torch.meshgrid(middle, middle, indexing="ij")
    centres = torch.stack([x, y], -1).reshape(-1, 1, 2)
    return torch.cat([centres - shapes / 2, centres + shapes / 2], -1).reshape(-1, 4)


def encode(boxes: torch.Tensor, references: torch.Tensor) -> torch.Tensor:
    """The corrections [n, 4] that lead from references to boxes."""
    size, reference = boxes[:, 2:] - boxes[:, :2], references[:, 2:] - references[:, :2]
    moved = (boxes[:, :2] + size / 2 - references[:, :2] - reference / 2) / reference
    return torch.cat([moved, (size / reference).log()], -1) * moved.new_tensor(SCALES)


def decode(corrections: torch.Tensor, references: torch.Tensor, size: int) -> torch.Tensor:
    """The boxes that corrections [..., 4] lead to, cut at the border of the image."""
    reference = references[..., 2:] - references[..., :2]
    scaled = corrections / corrections.new_tensor(SCALES)
    centre = references[..., :2] + reference / 2 + scaled[..., :2] * reference
    half = reference * scaled[..., 2:].clamp(max=MOST_GROWTH).exp() / 2
    return torch.cat([centre - half, centre + half], -1).clamp(0, size)


def match(
    overlaps: torch.Tensor, *, positive: float, negative: float, forced: bool
) -> torch.Tensor:
    """For overlaps [boxes, references] the box of each reference, BACKGROUND or IGNORED. With
    `forced` every box has the references that overlap it most."""
    if not len(overlaps):
        return torch.full_like(overlaps[:0].sum(0), BACKGROUND, dtype=torch.long)
    best, found = overlaps.max(0)
    result = torch.where(best >= negative, IGNORED, BACKGROUND)
    result = torch.where(best >= positive, found, result)
    if forced:
        most = overlaps.max(1, keepdim=True).values.clamp(min=1e-3)
        box, reference = (overlaps >= most).nonzero(as_tuple=True)
        result[reference] = box
    return result


def focal_loss(
    scores: torch.Tensor, targets: torch.Tensor, *, alpha: float = 0.25, gamma: float = 2.0
) -> torch.Tensor:
    """The sum over all scores, with targets of 0 and 1 (Lin et al. 2017, equation 5)."""
    entropy = binary_cross_entropy_with_logits(scores, targets, reduction="none")
    likely = scores.sigmoid()
    wrong = torch.where(targets > 0.5, 1 - likely, likely)
    weight = torch.where(targets > 0.5, alpha, 1 - alpha)
    return (weight * wrong**gamma * entropy).sum()


def nms(boxes: torch.Tensor, scores: torch.Tensor, most: float) -> torch.Tensor:
    """The boxes that stay, best first: each suppresses worse ones that overlap it by more than
    `most`."""
    order = scores.argsort(descending=True, stable=True)
    suppresses = (iou(boxes[order], boxes[order]) > most).cpu().numpy()
    left = torch.ones(len(order), dtype=torch.bool).numpy()
    for k in range(len(left)):
        if left[k]:
            left[k + 1 :] &= ~suppresses[k, k + 1 :]
    return order[torch.from_numpy(left).to(order.device)]


def nms_by_class(
    boxes: torch.Tensor, scores: torch.Tensor, classes: torch.Tensor, most: float
) -> torch.Tensor:
    """As `nms`, within each class."""
    if not len(boxes):
        return classes
    apart = classes[:, None] * (boxes.max() + 1)  # boxes of two classes do not meet
    return nms(boxes + apart, scores, most)


def roi_align(
    features: torch.Tensor, boxes: torch.Tensor, stride: int, cells: int, samples: int = 2
) -> torch.Tensor:
    """Features [channels, height, width] of one image inside boxes [n, 4]: [n, channels, cells,
    cells], each the mean of samples² bilinear samples (He et al. 2017)."""
    count = cells * samples
    places = (torch.arange(count, device=boxes.device) + 0.5) / count
    size = boxes[:, 2:] - boxes[:, :2]
    grid_x = boxes[:, :1] + places * size[:, :1]
    grid_y = boxes[:, 1:2] + places * size[:, 1:]
    height, width = features.shape[-2:]
    # grid_sample counts from -1 to 1 over the whole map.
    x = (2 * grid_x / (stride * width) - 1)[:, None, :].expand(-1, count, -1)
    y = (2 * grid_y / (stride * height) - 1)[:, :, None].expand(-1, -1, count)
    # All boxes as one tall grid: one call for them all.
    grid = torch.stack([x, y], -1).reshape(1, -1, count, 2)
    sampled = grid_sample(features[None], grid, padding_mode="border", align_corners=False)
    shape = (len(features), len(boxes), cells, samples, cells, samples)
    return sampled.reshape(shape).mean((3, 5)).transpose(0, 1)
