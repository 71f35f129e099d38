"""The mean over all workers in place of the local model for a while."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import nn

from gossamer import _core, parameters, plain
from gossamer.roll_call import agree, within

if TYPE_CHECKING:
    from gossamer.gossip import Gossip


Also: TypeAlias = "nn.Module | torch.Tensor | Iterable[Also]"
"""Modules and tensors, nested in lists as they like."""


def beside(model: nn.Module, buffers: bool, also: Also) -> list[tuple[str, torch.Tensor]]:
    """What is averaged besides the trained parameters: the model's ``buffers`` and the tensors of
    ``also``, by name; each once, and none of the model's parameters."""
    own = {id(parameter) for parameter in model.parameters()}
    named = [*(model.named_buffers() if buffers else ()), *_named("also", also)]
    found = {id(tensor): (name, tensor) for name, tensor in named if id(tensor) not in own}
    return list(found.values())


def _named(name: str, also: Also) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(also, torch.Tensor):
        yield name, also
    elif isinstance(also, nn.Module):
        for key, tensor in (*also.named_parameters(), *also.named_buffers()):
            yield f"{name}.{key}", tensor
    elif isinstance(also, Iterable):
        for i, each in enumerate(also):
            yield from _named(f"{name}[{i}]", each)
    else:
        raise TypeError(
            "[Gossip] averaged(also=...) takes modules and tensors, got "
            f"{type(also).__name__}; give it the module of the moving average, as ema.module"
        )


@contextmanager
def agreed(gossip: Gossip, also: Also) -> Iterator[None]:
    """See Gossip.averaged."""
    refuse_inside(gossip._block, "averaged()")
    named: list[tuple[str, torch.Tensor]] = []

    def describe() -> list[str]:
        named.extend(beside(gossip._model, gossip._settings.buffers == "averaged", also))
        lines = (f"tensor {line}" for each in named for line in plain.describe_mean(*each))
        return [*parameters.describe_mixed(gossip._named), *lines]

    agree(gossip, "averaged()", describe)
    pieces = [piece for each in named for _, piece in plain.with_mean(*each)]
    gossip._block = "averaged()"
    try:
        with averaged(gossip._engine, pieces) as apart:
            yield
        gossip._metrics.check(gossip, disagreement=apart)
    finally:
        gossip._block = ""
        gossip._resume()


def disagreement(gossip: Gossip) -> float:
    """See Gossip.disagreement."""
    refuse_inside(gossip._block, "disagreement()")
    with within(gossip, "disagreement()"):
        agree(gossip, "disagreement()")
        value = gossip._engine.load_average()
        gossip._engine.restore_local()
    gossip._metrics.check(gossip, disagreement=value)
    gossip._resume()
    return value


@contextmanager
def averaged(engine: _core.Engine, buffers: Sequence[torch.Tensor]) -> Iterator[float]:
    """Parameters and floating-point ``buffers`` are the means; afterwards what they were. Gives the
    disagreement of the parameters. Collective."""
    local = [buffer.clone() for buffer in buffers]
    apart = engine.load_average()
    try:
        if local:
            engine.average(buffers)
        yield apart
    finally:
        engine.restore_local()
        with torch.no_grad():
            for buffer, value in zip(buffers, local, strict=True):
                buffer.copy_(value)


def refuse_step_inside(block: str) -> None:
    """Raises RuntimeError for a step whose parameters would not last."""
    if block == "averaged()":
        raise RuntimeError(
            "[Gossip] optimizer.step() inside averaged(): the local parameters come back at "
            "its end, so the step would be lost; train outside of it"
        )


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
