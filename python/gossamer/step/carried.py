"""What a worker goes on from beside the model and the optimizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch

from gossamer import _core
from gossamer.tensors.trained import Trained


class Carried(NamedTuple):
    """By name of the parameter what is mixed where that is not the parameter itself, by vector and
    name the pattern's own state, which starts at zero where it is not here, and what a schedule
    that follows the loss has been told."""

    mixed: Mapping[str, torch.Tensor] = {}
    state: Mapping[tuple[str, str], torch.Tensor] = {}
    losses: list[tuple[int, float]] = []  # noqa: RUF012  nobody changes it


def carried_by(engine: _core.Engine, trained: Trained, row: _core.Pattern) -> Carried:
    """What the engine has now, by reference."""
    return Carried(
        {name: home for name, _, home in _masters(engine, trained)},
        {
            (vector, name): engine.pattern_state(i, k)
            for vector, k in row.kept_state.items()
            for i, (name, _, _) in enumerate(trained.named)
        },
        engine.agreed_losses,
    )


def masters_of(engine: _core.Engine, trained: Trained) -> dict[int, torch.Tensor]:
    """By id of the parameter the wider copies of this engine, by reference."""
    return {id(parameter): home for _, parameter, home in _masters(engine, trained)}


def _masters(
    engine: _core.Engine, trained: Trained
) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """Name, parameter and what is mixed of it, where that is not the parameter itself."""
    for i, (name, parameter, _) in enumerate([*trained.named, *trained.seats.found]):
        home = engine.home(i)
        if home.dtype != parameter.dtype.to_real():
            yield name, parameter, home


def take_masters(
    engine: _core.Engine, trained: Trained, masters: Mapping[int, torch.Tensor]
) -> None:
    """Puts them into another engine, for parameters that are as they were."""
    for i, (_, parameter, _) in enumerate([*trained.named, *trained.seats.found]):
        former, home = masters.get(id(parameter)), engine.home(i)
        if former is not None and (former.dtype, former.shape) == (home.dtype, home.shape):
            engine.set_home(i, former)


def carry(engine: _core.Engine, trained: Trained, row: _core.Pattern, carried: Carried) -> None:
    """Puts it into another engine."""
    for i, (name, _, _) in enumerate([*trained.named, *trained.seats.found]):
        if name in carried.mixed:
            engine.set_home(i, carried.mixed[name])
    for i, (name, _, _) in enumerate(trained.named):
        for vector, k in row.kept_state.items():
            if (vector, name) in carried.state:
                engine.pattern_state(i, k).copy_(carried.state[vector, name])
