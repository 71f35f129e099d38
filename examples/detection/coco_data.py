"""Sets in COCO's format: images and boxes for training, average precision for validation.

A folder has train.json and val.json. A file_name in them is a path from the folder, or from its
subfolder train or val.
"""

import contextlib
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from detectors import Found, Target

COLOURS = 3


class Example(NamedTuple):
    image: torch.Tensor  # [3, size, size], from -1 to 1
    target: Target
    number: int  # of the image in the annotations
    scale: float  # pixels here over pixels there


class CocoSet(torch.utils.data.Dataset[Example]):
    """A part of the set; images fill squares of `size` pixels, the rest of a square is black.
    Raises ValueError where annotations or an image are missing."""

    def __init__(self, folder: Path, part: str, size: int) -> None:
        self.annotations = read_annotations(folder / f"{part}.json")
        self._folders, self._size = (folder, folder / part), size
        self._numbers = sorted(self.annotations.getImgIds())
        self.categories: list[int] = sorted(self.annotations.getCatIds())
        self._labels = {category: label for label, category in enumerate(self.categories)}

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> Example:
        number = self._numbers[index]
        image, scale = self._read(self.annotations.loadImgs(number)[0]["file_name"])
        inside = self.annotations.loadAnns(self.annotations.getAnnIds(number, iscrowd=False))
        inside = [each for each in inside if min(each["bbox"][2:]) > 0]
        boxes = torch.tensor([each["bbox"] for each in inside], dtype=torch.float32).view(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        labels = [self._labels[each["category_id"]] for each in inside]
        target = Target(boxes * scale, torch.tensor(labels, dtype=torch.long))
        return Example(image, target, number, scale)

    def _read(self, name: str) -> tuple[torch.Tensor, float]:
        paths = [folder / name for folder in self._folders]
        path = next((path for path in paths if path.exists()), None)
        if path is None:
            raise ValueError(
                f"[detection] {name} must lie in {self._folders[0]} or {self._folders[1]}, got no "
                "such file; link the folder of the images there"
            )
        image = Image.open(path).convert("RGB")
        scale = self._size / max(image.size)
        if scale != 1:
            image = image.resize([max(1, round(scale * side)) for side in image.size])
        square: numpy.ndarray = numpy.zeros((self._size, self._size, COLOURS), dtype=numpy.uint8)
        square[: image.height, : image.width] = image
        pixels = torch.from_numpy(square).permute(2, 0, 1)
        return pixels.float() / 127.5 - 1, scale


def read_annotations(path: Path) -> COCO:
    """With pycocotools, which would tell about it on stdout."""
    if not path.exists():
        raise ValueError(
            f"[detection] {path.parent} must have {path.name} in COCO's format, got no such file; "
            f"write a set with: python examples/detection/digits.py --idx IDX --out {path.parent}"
        )
    with contextlib.redirect_stdout(io.StringIO()):
        return COCO(str(path))


def as_results(
    found: Found, example: Example, categories: Mapping[int, int] | list[int]
) -> list[dict[str, Any]]:
    """What was found in an image, as COCO writes it."""
    corners = (found.boxes / example.scale).tolist()
    each = zip(corners, found.scores.tolist(), found.labels.tolist(), strict=True)
    return [
        {
            "image_id": example.number,
            "category_id": categories[label],
            "bbox": [left, top, right - left, bottom - top],
            "score": score,
        }
        for (left, top, right, bottom), score, label in each
    ]


def average_precision(
    annotations: COCO, results: list[dict[str, Any]], numbers: Iterable[int] = ()
) -> tuple[float, float]:
    """COCO's, over its ten thresholds .5 to .95 and at .5 alone; of some images or of all."""
    if not results:
        return 0.0, 0.0
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = COCOeval(annotations, annotations.loadRes(results), "bbox")
        evaluation.params.imgIds = list(numbers) or evaluation.params.imgIds
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[0]), float(evaluation.stats[1])
