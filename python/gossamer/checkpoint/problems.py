"""What keeps one rank from saving or loading, told to all of them before anybody goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import torch

from gossamer._core import IoError
from gossamer.tensors import shards


@contextlib.contextmanager
def as_problem(problems: list[Exception], rank: int, what: str) -> Iterator[None]:
    """Keeps an exception for the others to hear of; says who could not do what."""
    try:
        yield
    except Exception as error:
        problems.append(_said_by(rank, what, error))


@contextlib.contextmanager
def together(
    parameters: Iterable[torch.Tensor], copies: shards.Copies, what: str
) -> Iterator[None]:
    """Raises on all ranks that hold shards of these, or copies, where the block raises on one of
    them. Collective over them."""
    tensors = list(parameters)
    try:
        yield
    except Exception:
        shards.anywhere(True, tensors, copies)
        raise
    if shards.anywhere(False, tensors, copies):
        raise IoError(
            f"[Gossip] ranks that hold other shards or copies of the model could not {what}, so "
            "that nobody does; they say why, mend it there and try again on all ranks"
        )


def _said_by(rank: int, what: str, error: Exception) -> Exception:
    text = str(error)
    if text.startswith("[Gossip]") or not isinstance(error, OSError | ValueError):
        return error
    kind = IoError if isinstance(error, OSError) else ValueError
    if isinstance(error, OSError) and not isinstance(error, IoError):
        text += "; look at the folder's rights, its disk and whether this host sees it"
    return kind(f"[Gossip] rank {rank} could not {what}: {text}")
