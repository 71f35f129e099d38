"""Runs a script with torchvision, whose operators in C++ are missing beside a CPU build of torch.

torchvision_operators.py SCRIPT ARGUMENT…: operators of examples/detection/boxes.py stand in.
"""

import importlib.util
import runpy
import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "detection"))

import boxes as box_math


def nms(boxes: torch.Tensor, scores: torch.Tensor, most: float) -> torch.Tensor:
    return box_math.nms(boxes, scores, most)


def roi_align(
    features: torch.Tensor,
    boxes: torch.Tensor,
    scale: float,
    height: int,
    width: int,
    samples: int,
    aligned: bool,
) -> torch.Tensor:
    """Of square cells; `boxes` have the number of the image first."""
    assert height == width
    if not aligned:  # an older rule: half a pixel to the right
        boxes = torch.cat([boxes[:, :1], boxes[:, 1:] + 0.5 / scale], 1)
    result = features.new_zeros(len(boxes), features.shape[1], height, width)
    for number in boxes[:, 0].unique().long().tolist():
        own = (boxes[:, 0] == number).nonzero()[:, 0]
        inside = boxes[own, 1:]
        cut = box_math.roi_align(features[number], inside, round(1 / scale), height, samples)
        result = result.index_copy(0, own, cut)
    return result


def are_missing() -> bool:
    """torchvision loads its operators by this call, too."""
    found = importlib.util.find_spec("torchvision")
    assert found and found.origin
    try:
        torch.ops.load_library(Path(found.origin).with_name("_C.so"))
    except OSError:
        return True
    return False


def register() -> torch.library.Library:
    """Must be kept as long as torchvision is used."""
    library = torch.library.Library("torchvision", "DEF")
    suppression = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    library.define(f"nms{suppression}")
    library.define(f"qnms{suppression}")  # torchvision asks for its name
    library.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor"
    )
    library.impl("nms", nms, "CPU")
    library.impl("roi_align", roi_align, "CompositeImplicitAutograd")
    extension = importlib.import_module("torchvision.extension")
    vars(extension)["_has_ops"] = lambda: True  # it asks before it calls one
    return library


if __name__ == "__main__":
    _, script, *arguments = sys.argv
    kept = register() if are_missing() else None
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")
