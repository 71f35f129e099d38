"""The files of all workers of a checkpoint as one: what another number of workers goes on from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from gossamer.checkpoint import rank_files

Document = dict[str, Any]


class Means:
    """Note [Other numbers of workers]: parameters and floating-point buffers become the mean over
    all files, the optimizer's floating-point state tensors the mean over the files that have them,
    its counters (whole numbers, and tensors named ``step``) the maximum, all else is that of the
    first file that has it. What a pattern keeps is left out: it starts at zero, where corrections
    add up to zero and trackers to the gradients before. One file after the other is read, and of it
    one tensor after the other: memory is that of one worker in double precision.
    """

    def __init__(self) -> None:
        self.document: Document = {}
        self._values: dict[str, torch.Tensor] = {}
        self._counts: dict[str, int] = {}
        self._dtypes: dict[str, torch.dtype] = {}

    def add(self, document: Document, file: Any) -> None:
        """Takes in a file as ``rank_files.opened`` gives it."""
        first = self.document or document
        self.document = {
            **first,
            "complex": sorted({*first["complex"], *document["complex"]}),
            "state": merge(first["state"], document["state"]),
        }
        for key in file.keys():  # noqa: SIM118  not a dict
            if not key.startswith(rank_files.PATTERN):
                self._add(key, file.get_tensor(key))

    def _add(self, key: str, tensor: torch.Tensor) -> None:
        is_counter = key.startswith("state/") and (
            key.endswith("/step") or not tensor.is_floating_point()
        )
        is_mean = tensor.is_floating_point() and not is_counter and not key.startswith("group/")
        if key not in self._values:
            self._values[key] = tensor.double() if is_mean else tensor.clone()
            self._counts[key] = 1
            self._dtypes[key] = tensor.dtype
        elif self._values[key].shape != tensor.shape:
            return  # a history of another length: the first one's
        elif is_mean:
            self._values[key] += tensor
            self._counts[key] += 1
        elif is_counter:
            self._values[key] = torch.maximum(self._values[key], tensor)

    def read(self, key: str) -> torch.Tensor:
        """The value in its dtype."""
        value = self._values[key]
        count = self._counts[key]
        return (value / count if count > 1 else value).to(self._dtypes[key])


def merge(one: Any, other: Any) -> Any:
    """Two JSON values as one: the larger of whole numbers, entries of both, all else of ``one``."""
    if type(one) is int and type(other) is int:
        return max(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        both = {key: merge(value, other.get(key, value)) for key, value in one.items()}
        return {**other, **both}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [merge(*pair) for pair in zip(one, other, strict=True)]
    return one


def means_of(paths: Iterable[Path]) -> Means:
    """Reads the files of all workers, in the order of their ranks."""
    means = Means()
    for path in paths:
        with rank_files.opened(path) as (document, file):
            means.add(document, file)
    return means
