"""What a worker goes on from beside the model and the optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch

from gossamer import _core
from gossamer.tensors.trained import Trained


class Carried(NamedTuple):
    """By number of the parameter what travels where that is not the parameter itself, by name and
    number the pattern's own state, which starts at zero where it is not here, and what a schedule
    that follows the loss has been told."""

    sent: Mapping[int, torch.Tensor] = {}
    state: Mapping[tuple[str, int], torch.Tensor] = {}
    losses: list[tuple[int, float]] = []  # noqa: RUF012  nobody changes it


def carried_by(engine: _core.Engine, trained: Trained, row: _core.Pattern) -> Carried:
    """What the engine has now, by reference."""
    numbered = list(enumerate(trained.numbers))
    homes = {number: (engine.home(i), trained.tensors[i]) for i, number in numbered}
    return Carried(
        {
            number: home
            for number, (home, parameter) in homes.items()
            if home.dtype != parameter.dtype.to_real()
        },
        {
            (name, number): engine.pattern_state(i, k)
            for name, k in row.kept_state.items()
            for i, number in numbered
        },
        engine.agreed_losses,
    )


def carry(engine: _core.Engine, trained: Trained, row: _core.Pattern, carried: Carried) -> None:
    """Puts it into another engine."""
    for i, number in enumerate(trained.numbers):
        if number in carried.sent:
            engine.home(i).copy_(carried.sent[number])
        for name, k in row.kept_state.items():
            if (name, number) in carried.state:
                engine.pattern_state(i, k).copy_(carried.state[name, number])
