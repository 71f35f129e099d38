"""Evaluation by the workers that are left: every row of the data once, by one of them."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch

_accelerate: Any = importlib.import_module("accelerate.utils")
_loaders: Any = importlib.import_module("accelerate.data_loader")


@contextlib.contextmanager
def among(there: Sequence[int], rank: int, trainer: Any, loader: Any) -> Iterator[None]:
    """Deals ``loader``'s batches to the ranks ``there``, of which ``rank`` is this one, and leaves
    out of what the trainer gathers whatever stands in for the others."""
    accelerator = trainer.accelerator
    size = accelerator.num_processes
    if len(there) < size:
        _warn_of_what_cannot_be_dealt(trainer, loader)
    gather = accelerator.gather

    def gather_theirs(data: Any) -> Any:
        return _accelerate.recursively_apply(lambda rows: _theirs(rows, there, size), gather(data))

    dealt = [part for part in _dealing_parts(loader) if hasattr(part, "process_index")]
    before = [(part, part.num_processes, part.process_index) for part in dealt]
    for part in dealt:
        part.num_processes, part.process_index = len(there), there.index(rank)
    accelerator.gather = gather_theirs
    if trainer.gather_function == gather:  # else it calls the accelerator's
        trainer.gather_function = gather_theirs
    try:
        yield
    finally:
        del accelerator.gather
        if trainer.gather_function is gather_theirs:
            trainer.gather_function = gather
        for part, processes, index in before:
            part.num_processes, part.process_index = processes, index


def _dealing_parts(loader: Any) -> list[Any]:
    """What of an accelerate loader knows which rows are this process's."""
    return [getattr(loader, "batch_sampler", None), getattr(loader, "dataset", None)]


def _theirs(rows: torch.Tensor, there: Sequence[int], size: int) -> torch.Tensor:
    parts = rows.chunk(size)
    return torch.cat([parts[rank] for rank in there])


def _warn_of_what_cannot_be_dealt(trainer: Any, loader: Any) -> None:
    if isinstance(loader, _loaders.DataLoaderDispatcher):
        warnings.warn(
            "[GossipTrainer] the rows of lost workers are left out of this evaluation, because an "
            "iterable data set is dealt by rank 0; evaluate a data set that has a length",
            stacklevel=4,
        )
    if trainer.args.eval_use_gather_object:
        warnings.warn(
            "[GossipTrainer] other rows stand in for those of lost workers, got "
            "eval_use_gather_object=True; leave it out, or evaluate after a new start",
            stacklevel=4,
        )
