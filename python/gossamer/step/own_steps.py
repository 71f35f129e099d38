"""The own steps of optimizers that the engine does not step, each on the gradients of its own
parameters: those of others may be half done, or scaled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gossamer.session.session import Session
from gossamer.session.team import Team
from gossamer.step import replaced_step
from gossamer.tensors import devices, parameters
from gossamer.tensors.optimizers import Optimizers
from gossamer.tensors.trained import Trained


class OwnSteps:
    """What is to be done around them. Made while the optimizers have their own ``step``."""

    def __init__(self, optimizers: Optimizers) -> None:
        self._know_scaler = [replaced_step.knows_scaler(each) for each in optimizers.each]
        self._late_check: devices.LateCheck | None = None

    def follow(self, session: Session, trained: Trained) -> None:
        """From now on these are trained."""
        is_there = devices.device_of(trained.model) is not None
        checks = is_there and session.settings.check_gradients
        rank = session.world.rank
        self._late_check = devices.LateCheck(trained.named, rank) if checks else None

    @property
    def checks_late(self) -> bool:
        """Whether gradients are checked a step or two later, and never read on arrival."""
        return self._late_check is not None

    def take(
        self,
        which: int,
        team: Team,
        trained: Trained,
        own_step: Callable[..., Any],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Checks, scales or skips as a GradScaler asks for, and calls ``own_step``."""
        optimizer, named = trained.optimizers.each[which], trained.part(which)
        if self._late_check is not None and not replaced_step.has_scaler(optimizer):
            self._late_check.note(named, team.engine.steps_done + 1)
        if self._know_scaler[which]:  # scales and skips by itself
            return own_step(*args, **kwargs)
        scale, skip = replaced_step.scaling(optimizer)
        if skip:
            return None
        replaced_step.scale_gradients((parameter for _, parameter, _ in named), scale)
        if not args and not kwargs:  # a closure would make new ones
            self._refuse_non_finite(which, team, trained)
        with replaced_step.without_scaler(optimizer):
            return own_step(*args, **kwargs)

    def _refuse_non_finite(self, which: int, team: Team, trained: Trained) -> None:
        session, engine = team.session, team.engine
        if not session.settings.check_gradients or self._late_check is not None:
            return
        mine = set(trained.parts[which])
        doubtful = [trained.named[i] for i in engine.doubtful_gradients() if i in mine]
        parameters.refuse_non_finite(doubtful, session.world.rank, engine.steps_done + 1)
