"""The mean over all workers in place of the local model for a while."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import nn

from gossamer import _core
from gossamer.session.team import AVERAGED, Team
from gossamer.tensors import parameters, plain
from gossamer.tensors.trained import Trained

Also: TypeAlias = "nn.Module | torch.Tensor | Iterable[Also]"
"""Modules and tensors, nested in lists as they like."""


def beside(trained: Trained, buffers: bool, also: Also) -> list[tuple[str, torch.Tensor]]:
    """What is averaged besides what the engine mixes: the model's ``buffers``, the tensors of
    ``also`` and state that is to be mixed from the next step on, by name; each once."""
    new = trained.seats.new()
    own = {id(parameter) for parameter in trained.model.parameters()}
    own |= {id(tensor) for _, tensor, _ in trained.seats.found}
    buffers_of = trained.model.named_buffers() if buffers else ()
    named = [*buffers_of, *_named("also", also), *((name, tensor) for name, tensor, _ in new)]
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
def agreed(team: Team, trained: Trained, buffers: bool, also: Also) -> Iterator[float]:
    """See Gossip.averaged; gives the disagreement."""
    team.refuse_inside(AVERAGED)
    named: list[tuple[str, torch.Tensor]] = []

    def describe() -> list[str]:
        named.extend(beside(trained, buffers, also))
        lines = (f"tensor {line}" for each in named for line in plain.describe_mean(*each))
        return [*parameters.describe_mixed(trained.named), *lines]

    team.agree(AVERAGED, describe)
    pieces = [piece for each in named for _, piece in plain.with_mean(*each)]
    with team.inside(AVERAGED), averaged(team.engine, pieces) as apart:
        yield apart


def disagreement(team: Team) -> float:
    """See Gossip.disagreement."""
    team.refuse_inside("disagreement()")
    with team.within("disagreement()"):
        team.agree("disagreement()")
        value = team.engine.load_average()
        team.engine.restore_local()
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
