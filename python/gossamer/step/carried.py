"""What a worker goes on from beside the model and the optimizer."""

from __future__ import annotations

from collections.abc import Mapping
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
    homes = {name: (engine.home(i), p) for i, (name, p, _) in enumerate(trained.named)}
    return Carried(
        {
            name: home
            for name, (home, parameter) in homes.items()
            if home.dtype != parameter.dtype.to_real()
        },
        {
            (vector, name): engine.pattern_state(i, k)
            for vector, k in row.kept_state.items()
            for i, name in enumerate(homes)
        },
        engine.agreed_losses,
    )


def masters_of(engine: _core.Engine, trained: Trained) -> dict[int, torch.Tensor]:
    """By id of the parameter the wider copies of this engine, by reference."""
    homes = ((p, engine.home(i)) for i, p in enumerate(trained.tensors))
    return {id(p): home for p, home in homes if home.dtype != p.dtype.to_real()}


def take_masters(
    engine: _core.Engine, trained: Trained, masters: Mapping[int, torch.Tensor]
) -> None:
    """Puts them into another engine, for parameters that are as they were."""
    for i, parameter in enumerate(trained.tensors):
        former, home = masters.get(id(parameter)), engine.home(i)
        if former is not None and (former.dtype, former.shape) == (home.dtype, home.shape):
            engine.set_home(i, former)


def carry(engine: _core.Engine, trained: Trained, row: _core.Pattern, carried: Carried) -> None:
    """Puts it into another engine."""
    for i, (name, _, _) in enumerate(trained.named):
        if name in carried.mixed:
            engine.set_home(i, carried.mixed[name])
        for vector, k in row.kept_state.items():
            if (vector, name) in carried.state:
                engine.pattern_state(i, k).copy_(carried.state[vector, name])
