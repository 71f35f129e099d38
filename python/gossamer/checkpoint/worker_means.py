"""The files of all workers of a checkpoint as one: what another number of workers goes on from."""

from __future__ import annotations

from typing import Any

import torch

from gossamer import _core
from gossamer.checkpoint.worker_file import Document, Source, WorkerFile, understood


class Means:
    """Note [Other numbers of workers]: parameters, what is mixed of them where that is wider, and
    floating-point buffers become the mean over all files, the optimizer's floating-point state
    tensors the mean over the files that have them, its counters (whole numbers, and tensors named
    ``step``) the maximum, all else is that of the first file that has it. What a pattern keeps is
    left out: it starts at zero, where corrections add up to zero and trackers to the gradients
    before. One file after the other is read: memory is that of one file, and of one worker in
    double precision.
    """

    def __init__(self) -> None:
        self.document: Document = {}
        self._values: dict[str, torch.Tensor] = {}
        self._counts: dict[str, int] = {}
        self._dtypes: dict[str, torch.dtype] = {}

    def add(self, source: Source) -> None:
        """Takes in another file."""
        document = {"complex": [], "optimizer": {}, **source.document}
        first = self.document or document
        self.document = {
            **first,
            "complex": sorted({*first["complex"], *document["complex"]}),
            "optimizer": merge(first["optimizer"], document["optimizer"]),
        }
        for key in source.keys():  # noqa: SIM118  not a dict
            if not key.startswith("pattern/"):
                self._add(key, source.tensor(key))

    def _add(self, key: str, tensor: torch.Tensor) -> None:
        is_counter = key.startswith("optimizer/") and (
            key.endswith("/step") or not tensor.is_floating_point()
        )
        is_mean = tensor.is_floating_point() and not is_counter and not key.startswith("group/")
        if key not in self._values:
            self._values[key] = tensor.to(torch.float64, copy=True) if is_mean else tensor.clone()
            self._counts[key] = 1
            self._dtypes[key] = tensor.dtype
        elif self._values[key].shape != tensor.shape:
            return  # a history of another length: the first one's
        elif is_mean:
            self._values[key] += tensor
            self._counts[key] += 1
        elif is_counter:
            self._values[key] = torch.maximum(self._values[key], tensor)

    def keys(self) -> list[str]:
        """Of the tensors."""
        return list(self._values)

    def tensor(self, key: str) -> torch.Tensor:
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


def means_of(path: str, manifest: _core.Manifest) -> Means:
    """Reads the files of all workers of a checkpoint, in the order of their ranks."""
    means = Means()
    for rank in range(manifest.workers):
        file = _core.open_worker_file(path, manifest, rank)
        with understood(path):
            means.add(WorkerFile(file))
        del file  # before the next one is read
    return means
