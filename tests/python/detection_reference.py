"""What examples/detection computes, in loops over single numbers and in double precision."""

import math
from collections.abc import Sequence

import torch

Numbers = Sequence[float]
BACKGROUND, IGNORED = -1, -2


def iou(a: Numbers, b: Numbers) -> float:
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def corrections(box: Numbers, reference: Numbers) -> list[float]:
    width, height = reference[2] - reference[0], reference[3] - reference[1]
    return [
        10 * ((box[0] + box[2]) - (reference[0] + reference[2])) / 2 / width,
        10 * ((box[1] + box[3]) - (reference[1] + reference[3])) / 2 / height,
        5 * math.log((box[2] - box[0]) / width),
        5 * math.log((box[3] - box[1]) / height),
    ]


def matches(
    boxes: list[Numbers],
    references: list[Numbers],
    positive: float,
    negative: float,
    *,
    forced: bool,
) -> list[int]:
    overlaps = [[iou(box, reference) for reference in references] for box in boxes]
    result = []
    for k in range(len(references)):
        most = max((row[k] for row in overlaps), default=0.0)
        first = [row[k] for row in overlaps].index(most) if boxes else BACKGROUND
        result.append(first if most >= positive else IGNORED if most >= negative else BACKGROUND)
    for number, row in enumerate(overlaps):
        for k, overlap in enumerate(row):
            if forced and overlap == max(row) and overlap > 0:
                result[k] = number
    return [k if boxes else BACKGROUND for k in result]


def smooth_l1(found: Numbers, right: Numbers) -> float:
    apart = [abs(a - b) for a, b in zip(found, right, strict=True)]
    return sum(0.5 * d * d if d < 1 else d - 0.5 for d in apart)


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def focal(score: float, *, is_there: bool) -> float:
    right = 1 / (1 + math.exp(-score if is_there else score))
    return -(0.25 if is_there else 0.75) * (1 - right) ** 2 * math.log(right)


def retina_loss(scores, shifts, anchors, targets) -> float:
    total, count = 0.0, 0
    for image, (boxes, labels) in enumerate(targets):
        found = matches(boxes, anchors, 0.5, 0.4, forced=True)
        for k, box in enumerate(found):
            if box == IGNORED:
                continue
            for label, score in enumerate(scores[image][k]):
                total += focal(score, is_there=box >= 0 and label == labels[box])
            if box >= 0:
                count += 1
                total += smooth_l1(shifts[image][k], corrections(boxes[box], anchors[k]))
    return total / max(1, count)


def proposal_loss(objectness, shifts, anchors, targets) -> float:
    total = 0.0
    for image, (boxes, _) in enumerate(targets):
        found = matches(boxes, anchors, 0.6, 0.3, forced=True)
        positive = [k for k, box in enumerate(found) if box >= 0]
        negative = [-log_sigmoid(-objectness[image][k]) for k, b in enumerate(found) if b == -1]
        loss = sum(sorted(negative, reverse=True)[: 3 * max(1, len(positive))])
        for k in positive:
            loss -= log_sigmoid(objectness[image][k])
            loss += smooth_l1(shifts[image][k], corrections(boxes[found[k]], anchors[k]))
        total += loss / max(1, len(positive))
    return total / len(targets)


def box_loss(scores, shifts, proposals, targets) -> float:
    """`scores` and `shifts` have the proposals of all images one after the other."""
    entropy, distance, positive, row = 0.0, 0.0, 0, 0
    for (boxes, labels), seen in zip(targets, proposals, strict=True):
        for k, box in enumerate(matches(boxes, seen, 0.5, 0.5, forced=False)):
            label = labels[box] if box >= 0 else len(scores[row]) - 1
            entropy += math.log(sum(map(math.exp, scores[row]))) - scores[row][label]
            if box >= 0:
                positive += 1
                distance += smooth_l1(shifts[row][label], corrections(boxes[box], seen[k]))
            row += 1
    return entropy / row + distance / max(1, positive)


def nms(boxes: list[Numbers], scores: Numbers, most: float) -> list[int]:
    kept: list[int] = []
    for k in sorted(range(len(boxes)), key=lambda k: -scores[k]):
        if all(iou(boxes[k], boxes[other]) <= most for other in kept):
            kept.append(k)
    return kept


def roi_align(features: torch.Tensor, box: Numbers, stride: int, cells: int) -> torch.Tensor:
    """Of two samples per cell and side."""
    height, width = features.shape[-2:]

    def at(x: float, y: float) -> torch.Tensor:
        x, y = min(max(x, 0.0), width - 1.0), min(max(y, 0.0), height - 1.0)
        left, top = min(int(x), width - 2), min(int(y), height - 2)
        a, b = x - left, y - top
        low = (1 - a) * features[:, top, left] + a * features[:, top, left + 1]
        high = (1 - a) * features[:, top + 1, left] + a * features[:, top + 1, left + 1]
        return (1 - b) * low + b * high

    result = torch.zeros(len(features), cells, cells, dtype=features.dtype)
    step_x, step_y = (box[2] - box[0]) / cells / 2, (box[3] - box[1]) / cells / 2
    for row in range(2 * cells):
        for column in range(2 * cells):
            x, y = box[0] + (column + 0.5) * step_x, box[1] + (row + 0.5) * step_y
            result[:, row // 2, column // 2] += at(x / stride - 0.5, y / stride - 0.5) / 4
    return result
