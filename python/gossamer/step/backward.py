"""What a Gossip does while the backward pass goes on: it averages, checks or steps.

With ``update="backward"`` the engine steps a bucket when its last gradient arrives, see
Note [Buckets in the backward] in gossamer/torch/tensors/tensor_engine.h; here is what that does not
fit with.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from gossamer import _core
from gossamer.session.session import Session
from gossamer.step.replica import Replica
from gossamer.tensors.stand_ins import stand_in, stand_ins_of
from gossamer.tensors.trained import Trained

_LATE_STEPS = 3
"""After so many steps without an early bucket there is a warning."""


def check_arguments(update: str, pattern: str, trained: Trained, ddp: nn.Module | None) -> None:
    """Raises ValueError for what update="backward" does not fit with."""
    if update not in ("step", "backward"):
        raise ValueError(f"[Gossip] update must be one of ('step', 'backward'), got {update!r}")
    if update == "step":
        return
    if pattern == "allreduce":
        raise ValueError(
            '[Gossip] update="backward" is for gossip, got pattern="allreduce", which averages in '
            'the backward already; use update="step"'
        )
    if ddp is not None:
        raise ValueError(
            '[Gossip] update="backward" would step before DistributedDataParallel has averaged the '
            'gradients inside its group; use update="step"'
        )
    if trained.optimizers.single is None:
        raise ValueError(
            f'[Gossip] update="backward" is for one optimizer, got {trained.optimizers.word}, '
            'which take their own steps; use update="step"'
        )
    if trained.rule is None:
        raise ValueError(
            '[Gossip] update="backward" steps the optimizer itself, got one that takes its own '
            'step; use update="step", or an optimizer of the list with dense real '
            "parameters in CPU memory"
        )
    if _is_compiled_whole(trained.model):
        _warn("the whole model is compiled, so that all gradients come at the end of the backward")


def check_step(optimizer: torch.optim.Optimizer, closure: object) -> None:
    """Raises RuntimeError where update="backward" cannot be what the caller means."""
    if closure is not None:
        raise RuntimeError(
            '[Gossip] update="backward" takes no closure: it steps in the backward before '
            'optimizer.step(); use update="step"'
        )
    scaler = (getattr(optimizer, "grad_scale", None), getattr(optimizer, "found_inf", None))
    if scaler != (None, None):
        raise RuntimeError(
            '[Gossip] update="backward" has stepped with scaled gradients before GradScaler could '
            'unscale them or skip the step; use update="step", or bfloat16 without a GradScaler'
        )


def average_gradients(
    engine: _core.Engine,
    trained: Trained,
    session: Session,
    *,
    bucket_bytes: int,
    at_end: bool,
) -> None:
    """Has every backward average the gradients of what may be trained; only ``at_end`` where
    somebody changes gradients behind autograd's back, as DDP does."""
    named = [(name, each) for name, each, _ in trained.everything() if _may_be_trained(each)]
    replica = Replica(engine, trained)
    settings = session.settings
    others = stand_ins_of([parameter for _, parameter in named], engine)
    engine.average_gradients(
        [(name, stand_in(parameter)) for name, parameter in named],
        bucket_bytes,
        settings.codec,
        at_end=at_end,
        rounds=None if settings.pattern == "allreduce" else session.schedule,
        stagger=settings.stagger,
        take=others.take if others else None,
        give=others.give if others else None,
        replica=replica.tensors,
        took=replica.took,
    )


def step_in_backward(
    engine: _core.Engine, reference: Callable[[], Callable[[], list[_core.Hyper] | None] | None]
) -> None:
    """Has the backward step with the groups that are given before it; ``reference`` is weak."""

    def before_backward() -> list[_core.Hyper] | None:
        groups = reference()
        return None if groups is None else groups()

    engine.watch_gradients(before_backward)


def _may_be_trained(parameter: torch.Tensor) -> bool:
    """Now or once it is thawed."""
    is_plain = parameter.layout == torch.strided and not is_traceable_wrapper_subclass(parameter)
    is_number = parameter.is_floating_point() or parameter.is_complex()
    return parameter.requires_grad or (parameter.is_cpu and is_plain and is_number)


def average_missed(engine: _core.Engine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Before a step with these arguments: averages gradients that no backward has averaged.

    With a closure, whenever that has made gradients: returns the arguments to step with.
    """
    closure = args[0] if args else kwargs.get("closure")
    if not callable(closure):
        engine.average_missed()
        return args, kwargs

    @functools.wraps(closure)
    def averaging(*inner: Any, **named: Any) -> Any:
        loss = closure(*inner, **named)
        engine.average_missed()
        return loss

    if args:
        return (averaging, *args[1:]), kwargs
    return args, {**kwargs, "closure": averaging}


class LateWatch:
    """Warns once where no bucket steps before the end of the backward."""

    def __init__(self) -> None:
        self._late = 0

    def note(self, early_buckets: int) -> None:
        """After a step, with the number of buckets that the backward stepped."""
        if early_buckets > 0:
            self._late = -1
        elif self._late >= 0:
            self._late += 1
        if self._late == _LATE_STEPS:
            self._late = -1
            _warn(
                f"in the first {_LATE_STEPS} steps no bucket had all its gradients before the end "
                "of the backward"
            )


def _is_compiled_whole(model: Any) -> bool:
    return hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None


def _warn(why: str) -> None:
    warnings.warn(
        f'[Gossip] update="backward" works but gains nothing: {why}; use update="step"',
        stacklevel=4,
    )
