"""Two small detectors on a residual network with a pyramid of two maps: a RetinaNet, which scores
anchors, and a Faster R-CNN, which proposes boxes and classifies what is in them.

Group norm stands where such networks have batch norm. The statistics of batch norm are not
parameters: gossip does not mix them, and with few images per worker they are noise.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn.functional import cross_entropy, interpolate, relu, smooth_l1_loss

import boxes as box_math

STRIDES = (8, 16)
SIDES = ((12.0, 17.0), (24.0, 34.0))  # of the anchors, for canvases of 96 pixels
RATIOS = (1.0, 2.0)
PER_CELL = len(SIDES[0]) * len(RATIOS)
DRAWN_FOR = 96

FEWEST_SCORE = 0.05
MOST_BOXES = 100  # of an image, as COCO counts
MOST_OVERLAP = 0.5
GROUPS = 8


class Target(NamedTuple):
    """What is in an image."""

    boxes: torch.Tensor  # [n, 4]
    labels: torch.Tensor  # [n], from 0


class Found(NamedTuple):
    """What a detector finds in an image, best first."""

    boxes: torch.Tensor
    scores: torch.Tensor
    labels: torch.Tensor


def layer(inputs: int, outputs: int, kernel: int, stride: int, *, bias: bool) -> nn.Conv2d:
    """Whose outputs are as large as its inputs are before ReLU (He et al. 2015)."""
    made = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=bias)
    nn.init.kaiming_normal_(made.weight, nonlinearity="relu")
    return made


def convolution(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """3 x 3 with a norm."""
    made = layer(inputs, outputs, 3, stride, bias=False)
    return nn.Sequential(made, nn.GroupNorm(GROUPS, outputs))


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.first, self.second = (
            convolution(inputs, outputs, stride),
            convolution(outputs, outputs),
        )
        nn.init.constant_(self.second[1].weight, 0.2)  # at first little more than the shortcut
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1:
            self.shortcut = layer(inputs, outputs, 1, stride, bias=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return relu(self.second(relu(self.first(x))) + self.shortcut(x))


class Pyramid(nn.Module):
    """Maps of images [n, 3, size, size] at each of STRIDES, `width` channels each."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(convolution(3, 16, 2), nn.ReLU(), Residual(16, 32, 2))
        self.fine = nn.Sequential(Residual(32, 64, 2), Residual(64, 64))
        self.coarse = nn.Sequential(Residual(64, 96, 2), Residual(96, 96))
        self.lateral = nn.ModuleList(layer(n, width, 1, 1, bias=True) for n in (64, 96))

    def forward(self, images: torch.Tensor) -> list[torch.Tensor]:
        fine = self.fine(self.stem(images))
        top = self.lateral[1](self.coarse(fine))
        return [self.lateral[0](fine) + interpolate(top, scale_factor=2.0), top]


def tower(width: int) -> nn.Sequential:
    return nn.Sequential(convolution(width, width), nn.ReLU(), convolution(width, width), nn.ReLU())


def output(inputs: int, outputs: int) -> nn.Conv2d:
    made = nn.Conv2d(inputs, outputs, 3, padding=1)
    nn.init.normal_(made.weight, std=0.01)
    nn.init.zeros_(made.bias)
    return made


def flat(maps: list[torch.Tensor], last: int) -> torch.Tensor:
    """Maps [n, anchors of a cell * last, height, width] as one tensor [n, anchors, last]."""
    return torch.cat([m.permute(0, 2, 3, 1).flatten(1).unflatten(1, (-1, last)) for m in maps], 1)


def all_anchors(size: int) -> torch.Tensor:
    grown = size / DRAWN_FOR
    sides = [[grown * side for side in row] for row in SIDES]
    each = zip(STRIDES, sides, strict=True)
    return torch.cat([box_math.anchors(size, stride, row, RATIOS) for stride, row in each])


class RetinaNet(nn.Module):
    """Lin et al. 2017. The loss of images [n, 3, size, size] and what is in them."""

    anchors: torch.Tensor

    def __init__(self, classes: int, size: int, width: int = 64) -> None:
        super().__init__()
        self.size, self.classes = size, classes
        self.pyramid = Pyramid(width)
        self.score_tower, self.box_tower = tower(width), tower(width)
        self.scores, self.corrections = (
            output(width, PER_CELL * classes),
            output(width, PER_CELL * 4),
        )
        # So that all scores are 0.01 at first: most anchors have nothing in them.
        nn.init.constant_(self.scores.bias, -4.6)
        self.register_buffer("anchors", all_anchors(size), persistent=False)

    def _heads(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        maps = self.pyramid(images)
        scores = [self.scores(self.score_tower(m)) for m in maps]
        corrections = [self.corrections(self.box_tower(m)) for m in maps]
        return flat(scores, self.classes), flat(corrections, 4)

    def forward(self, images: torch.Tensor, targets: list[Target]) -> torch.Tensor:
        return retina_loss(*self._heads(images), self.anchors, targets)

    @torch.no_grad()
    def detect(self, images: torch.Tensor) -> list[Found]:
        scores, corrections = self._heads(images)
        found = box_math.decode(corrections, self.anchors, self.size)
        each = zip(scores.sigmoid(), found, strict=True)
        return [chosen(s, b[:, None].expand(-1, self.classes, -1)) for s, b in each]


def retina_loss(
    scores: torch.Tensor, corrections: torch.Tensor, anchors: torch.Tensor, targets: list[Target]
) -> torch.Tensor:
    """Focal loss of scores [n, anchors, classes] and smooth L1 loss of the positive anchors'
    corrections [n, anchors, 4], over the number of positive anchors."""
    matched = torch.stack(
        [
            box_math.match(box_math.iou(t.boxes, anchors), positive=0.5, negative=0.4, forced=True)
            for t in targets
        ]
    )
    image, anchor = (matched >= 0).nonzero(as_tuple=True)
    offsets = torch.tensor([0, *(len(t.boxes) for t in targets[:-1])], device=scores.device)
    box = matched[image, anchor] + offsets.cumsum(0)[image]
    wanted = torch.zeros_like(scores)
    wanted[image, anchor, torch.cat([t.labels for t in targets])[box]] = 1
    counted = matched != box_math.IGNORED
    loss = box_math.focal_loss(scores[counted], wanted[counted])
    right = box_math.encode(torch.cat([t.boxes for t in targets])[box], anchors[anchor])
    loss = loss + smooth_l1_loss(corrections[image, anchor], right, reduction="sum")
    return loss / max(1, len(box))


def chosen(scores: torch.Tensor, found: torch.Tensor) -> Found:
    """Of scores [n, classes] and boxes [n, classes, 4] those that a user sees."""
    place, label = (scores > FEWEST_SCORE).nonzero(as_tuple=True)
    kept = scores[place, label].topk(min(len(place), 3 * MOST_BOXES)).indices
    place, label = place[kept], label[kept]
    likely, seen = scores[place, label], found[place, label]
    kept = box_math.nms_by_class(seen, likely, label, MOST_OVERLAP)[:MOST_BOXES]
    return Found(seen[kept], likely[kept], label[kept])


PROPOSED, KEPT = 150, 40  # proposals of an image before and after suppression
CELLS = 5  # of what is cut out of a map
HARD = 3  # negatives per positive, those with the largest loss


class FasterRCNN(nn.Module):
    """Ren et al. 2015 with a pyramid. The loss of images [n, 3, size, size] and what is in them.

    The proposals' negatives are the hardest ones (Shrivastava et al. 2016), not random ones, so a
    run that is resumed has the same loss.
    """

    anchors: torch.Tensor

    def __init__(self, classes: int, size: int, width: int = 64, hidden: int = 128) -> None:
        super().__init__()
        self.size, self.classes = size, classes
        self.pyramid = Pyramid(width)
        self.proposer = nn.Sequential(convolution(width, width), nn.ReLU())
        self.objectness, self.shifts = output(width, PER_CELL), output(width, PER_CELL * 4)
        self.smooth = nn.ModuleList(convolution(width, width) for _ in STRIDES)
        self.hidden = nn.Sequential(
            nn.Linear(width * CELLS**2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.scores = nn.Linear(hidden, classes + 1)  # the last one: nothing is there
        self.corrections = nn.Linear(hidden, classes * 4)
        nn.init.normal_(self.corrections.weight, std=0.001)
        self.register_buffer("anchors", all_anchors(size), persistent=False)

    def _propose(
        self, maps: list[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
        hidden = [self.proposer(m) for m in maps]
        objectness = flat([self.objectness(m) for m in hidden], 1)[..., 0]
        shifts = flat([self.shifts(m) for m in hidden], 4)
        found = box_math.decode(shifts.detach(), self.anchors, self.size)
        proposals = []
        for scores, decoded in zip(objectness.detach(), found, strict=True):
            best = scores.topk(min(PROPOSED, len(scores))).indices
            best = best[(decoded[best, 2:] - decoded[best, :2] >= 1).all(-1)]
            kept = box_math.nms(decoded[best], scores[best], 0.7)[:KEPT]
            proposals.append(decoded[best][kept])
        return objectness, shifts, proposals

    def _classify(
        self, maps: list[torch.Tensor], proposals: list[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        smooth = [each(m) for each, m in zip(self.smooth, maps, strict=True)]
        cut = [self._cut([m[k] for m in smooth], seen) for k, seen in enumerate(proposals)]
        hidden = self.hidden(torch.cat(cut).flatten(1))
        return self.scores(hidden), self.corrections(hidden).unflatten(1, (self.classes, 4))

    def _cut(self, maps: list[torch.Tensor], proposals: torch.Tensor) -> torch.Tensor:
        """Large boxes out of the coarse map, small ones out of the fine map."""
        border = (SIDES[0][-1] * SIDES[1][0]) ** 0.5 * self.size / DRAWN_FOR
        is_large = (box_math.areas(proposals) > border**2).view(-1, 1, 1, 1)
        fine, coarse = (
            box_math.roi_align(m, proposals, stride, CELLS)
            for m, stride in zip(maps, STRIDES, strict=True)
        )
        return torch.where(is_large, coarse, fine)

    def forward(self, images: torch.Tensor, targets: list[Target]) -> torch.Tensor:
        maps = self.pyramid(images)
        objectness, shifts, proposals = self._propose(maps)
        loss = proposal_loss(objectness, shifts, self.anchors, targets)
        pairs = zip(proposals, targets, strict=True)
        proposals = [torch.cat([seen, target.boxes]) for seen, target in pairs]
        return loss + box_loss(*self._classify(maps, proposals), proposals, targets)

    @torch.no_grad()
    def detect(self, images: torch.Tensor) -> list[Found]:
        maps = self.pyramid(images)
        proposals = self._propose(maps)[2]
        scores, corrections = self._classify(maps, proposals)
        found = box_math.decode(corrections, torch.cat(proposals)[:, None], self.size)
        counts = [len(seen) for seen in proposals]
        likely = scores.softmax(-1)[:, : self.classes]
        return [
            chosen(*each) for each in zip(likely.split(counts), found.split(counts), strict=True)
        ]


def proposal_loss(
    objectness: torch.Tensor, shifts: torch.Tensor, anchors: torch.Tensor, targets: list[Target]
) -> torch.Tensor:
    """Cross-entropy of positive and hard negative anchors and smooth L1 loss of positive ones,
    over the number of positive anchors; mean over the images."""
    total = objectness.sum() * 0
    for scores, moved, target in zip(objectness, shifts, targets, strict=True):
        overlaps = box_math.iou(target.boxes, anchors)
        matched = box_math.match(overlaps, positive=0.6, negative=0.3, forced=True)
        positive = (matched >= 0).nonzero()[:, 0]
        negative = nn.functional.softplus(scores[matched == box_math.BACKGROUND])
        hardest = negative.topk(min(len(negative), HARD * max(1, len(positive)))).values
        right = box_math.encode(target.boxes[matched[positive]], anchors[positive])
        loss = nn.functional.softplus(-scores[positive]).sum() + hardest.sum()
        loss = loss + smooth_l1_loss(moved[positive], right, reduction="sum")
        total = total + loss / max(1, len(positive))
    return total / len(targets)


def box_loss(
    scores: torch.Tensor,
    corrections: torch.Tensor,
    proposals: list[torch.Tensor],
    targets: list[Target],
) -> torch.Tensor:
    """Cross-entropy of all proposals' scores [n, classes + 1], and smooth L1 loss of the positive
    ones' corrections [n, classes, 4] over their number."""
    nothing = scores.shape[1] - 1
    labels, right = [], []
    for seen, target in zip(proposals, targets, strict=True):
        overlaps = box_math.iou(target.boxes, seen)
        matched = box_math.match(overlaps, positive=0.5, negative=0.5, forced=False)
        is_positive = matched >= 0
        label = torch.full_like(matched, nothing)
        label[is_positive] = target.labels[matched[is_positive]]
        labels.append(label)
        right.append(box_math.encode(target.boxes[matched[is_positive]], seen[is_positive]))
    label = torch.cat(labels)
    place = (label != nothing).nonzero()[:, 0]
    moved = corrections[place, label[place]]
    distance = smooth_l1_loss(moved, torch.cat(right), reduction="sum") / max(1, len(place))
    return cross_entropy(scores, label) + distance


MODELS: dict[str, type[nn.Module]] = {"retinanet": RetinaNet, "fasterrcnn": FasterRCNN}
