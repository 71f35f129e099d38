"""The mean over all workers in place of the local model for a while."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from gossamer import _core


@contextmanager
def averaged(engine: _core.Engine, buffers: Sequence[torch.Tensor]) -> Iterator[None]:
    """Parameters and floating-point ``buffers`` are the means; afterwards what they were.
    Collective."""
    local = [buffer.clone() for buffer in buffers]
    engine.load_average()
    try:
        if local:
            engine.average(buffers)
        yield
    finally:
        engine.restore_local()
        with torch.no_grad():
            for buffer, value in zip(buffers, local, strict=True):
                buffer.copy_(value)


def refuse_inside(block: str, what: str) -> None:
    """Raises RuntimeError for what cannot be called inside of a block of Gossip's; "": no block."""
    if block == "averaged()":
        raise RuntimeError(
            f"[Gossip] {what} inside averaged(), where all workers have the same; leave it first"
        )
    if block:
        raise RuntimeError(
            f"[Gossip] {what} inside {block}, which others may have left, so that they would not "
            "take part; call it after the block"
        )
