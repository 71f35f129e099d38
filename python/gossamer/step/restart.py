"""Going on with other parameters or values than those that were sent last."""

from __future__ import annotations

import torch

from gossamer.session import patterns
from gossamer.session.team import Team
from gossamer.step import meeting
from gossamer.tensors import trained
from gossamer.tensors.trained import Trained

_RESTART = "a start with other parameters or values"


def read_anew(team: Team, before: Trained, *, is_loaded: bool) -> Trained:
    """The model and the optimizer as they are now, on all workers alike; ``is_loaded`` from a
    checkpoint, which all have come to already.

    What travels is dropped. Only parameters that are new, or thawed, start with rank 0's values;
    what was frozen since takes the mean of all workers, so that it is equal everywhere from then
    on. Collective; asks nobody but the other workers.
    """
    engine, settings = team.engine, team.session.settings
    if not is_loaded:
        team.agree(_RESTART)  # before anybody waits for what has to arrive yet
    with team.within(_RESTART):
        engine.quiesce()
    found: list[Trained] = []

    def about_now() -> list[str]:
        is_plain = settings.is_plain(team.session.world.size)
        now = trained.read(before.model, before.optimizers, before.wanted, is_plain=is_plain)
        patterns.check_optimizers(settings.pattern, now.rule, now.optimizers)
        found.append(now)
        return meeting.about(settings, now)

    team.agree(_RESTART, about_now, compares_steps=False)
    (now,) = found
    mixed = {id(parameter) for parameter in before.tensors}
    with team.within(_RESTART):
        engine.broadcast([p for p in now.tensors if id(p) not in mixed])
        engine.average([p for p in now.model.parameters() if _is_frozen_now(p, mixed)])
        engine.barrier()
    return now


def _is_frozen_now(parameter: torch.Tensor, mixed: set[int]) -> bool:
    return id(parameter) in mixed and not parameter.requires_grad
