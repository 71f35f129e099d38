"""A detection set from digits: canvases with digits of many sizes, and their boxes as COCO writes
them. Nothing is downloaded.

    python examples/detection/digits.py --idx mnist --out digits

--idx is a folder with IDX files as MNIST's (NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte,
plain or gzip). The digits are split first, so no digit is in training and in validation.
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageChops

sys.path.append(str(Path(__file__).resolve().parents[1]))

from idx_data import read_idx

CLASSES = 10
INK = 64  # a pixel at least as bright belongs to the digit
MOST_OVERLAP = 0.3  # intersection over union of two boxes

Box = tuple[int, int, int, int]  # left, top, width, height


@dataclass(frozen=True)
class Canvas:
    size: int = 96
    fewest: int = 2  # digits
    most: int = 6
    smallest: int = 14  # pixels of a digit's longer side
    largest: int = 42


@dataclass(frozen=True)
class Digit:
    number: int  # of the image in the IDX files
    label: int
    image: Image.Image  # cut to its ink


def read_digits(folder: Path) -> list[Digit]:
    """Those of all IDX files of the folder. Raises ValueError where there are none."""
    found: list[Digit] = []
    for path in sorted(folder.glob("*-images-idx3-ubyte*")):
        name = path.name.replace("images-idx3", "labels-idx1")
        for pixels, label in zip(read_idx(path), read_idx(path.with_name(name)), strict=True):
            found.append(Digit(len(found), int(label), cut(pixels)))
    if not found:
        raise ValueError(
            f"[digits] {folder} must have NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte, plain "
            "or with .gz, got no such file; name the folder of MNIST's files"
        )
    return found


def cut(pixels: torch.Tensor) -> Image.Image:
    """The image without its margins."""
    image = Image.fromarray(pixels.numpy())
    return image.crop(image.point(lambda value: 255 if value >= INK else 0).getbbox())


def overlap(a: Box, b: Box) -> float:
    """Intersection over union."""
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    return width * height / (a[2] * a[3] + b[2] * b[3] - width * height)


def draw(
    digits: Sequence[Digit], rule: Canvas, numbers: random.Random
) -> tuple[Image.Image, list[tuple[Digit, Box]]]:
    """A canvas and what is on it."""
    canvas = Image.new("L", (rule.size, rule.size))
    placed: list[tuple[Digit, Box]] = []
    count = numbers.randint(rule.fewest, rule.most)
    while len(placed) < count:
        digit = numbers.choice(digits)
        scale = numbers.randint(rule.smallest, rule.largest) / max(digit.image.size)
        width, height = (max(1, round(scale * side)) for side in digit.image.size)
        left, top = numbers.randint(0, rule.size - width), numbers.randint(0, rule.size - height)
        box = (left, top, width, height)
        if any(overlap(box, other) > MOST_OVERLAP for _, other in placed):
            continue
        layer = Image.new("L", canvas.size)
        layer.paste(digit.image.resize((width, height), Image.Resampling.BILINEAR), (left, top))
        canvas = ImageChops.lighter(canvas, layer)
        placed.append((digit, box))
    return canvas, placed


def write_part(
    out: Path, part: str, digits: Sequence[Digit], count: int, rule: Canvas, seed: int
) -> int:
    """PART.json and the images in the folder PART; returns the number of boxes."""
    (out / part).mkdir(parents=True, exist_ok=True)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number in range(1, count + 1):
        canvas, placed = draw(digits, rule, random.Random(f"{seed} {part} {number}"))
        name = f"{part}/{number:06}.png"
        canvas.save(out / name)
        size = {"width": rule.size, "height": rule.size}
        images.append({"id": number, "file_name": name, **size})
        for digit, box in placed:
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": digit.label + 1,
                    "bbox": box,
                    "area": box[2] * box[3],
                    "iscrowd": 0,
                    "digit": digit.number,
                }
            )
    categories = [{"id": label + 1, "name": str(label)} for label in range(CLASSES)]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (out / f"{part}.json").write_text(json.dumps(content))
    return len(annotations)


def write_set(
    idx: Path, out: Path, counts: dict[str, int], *, held_back: float, seed: int
) -> dict[str, int]:
    """Both parts, "train" and "val"; returns their numbers of boxes. Raises ValueError where the
    digits do not suffice for both."""
    digits = read_digits(idx)
    random.Random(seed).shuffle(digits)
    split = len(digits) - int(len(digits) * held_back)
    if not 0 < split < len(digits):
        raise ValueError(
            f"[digits] both parts need digits and a share between 0 and 1, got {len(digits)} "
            f"digits and --held-back {held_back:g}; name more digits"
        )
    parts = {"train": digits[:split], "val": digits[split:]}
    return {
        part: write_part(out, part, those, counts[part], Canvas(), seed)
        for part, those in parts.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(".")[0])
    parser.add_argument("--idx", type=Path, required=True, help="folder with IDX files")
    parser.add_argument("--out", type=Path, required=True, help="folder for images and boxes")
    parser.add_argument("--train", type=int, default=4000, help="canvases for training")
    parser.add_argument("--val", type=int, default=1000, help="canvases for validation")
    parser.add_argument("--held-back", type=float, default=0.2, help="share of validation's digits")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    counts = {"train": args.train, "val": args.val}
    boxes = write_set(args.idx, args.out, counts, held_back=args.held_back, seed=args.seed)
    for part, count in counts.items():
        print(f"{args.out / part}.json: {count} images, {boxes[part]} boxes")


if __name__ == "__main__":
    main()
