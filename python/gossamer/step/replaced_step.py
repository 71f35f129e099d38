"""Another step in place of an optimizer's own, and back."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

_REPLACED = ("step", "_step_supports_amp_scaling")


def knows_scaler(optimizer: torch.optim.Optimizer) -> bool:
    """Whether its own step scales gradients and skips updates as a GradScaler asks for."""
    return bool(getattr(optimizer, "_step_supports_amp_scaling", False))


def note_call(optimizer: torch.optim.Optimizer) -> None:
    """Tells learning-rate schedulers that the optimizer has stepped."""
    optimizer._opt_called = True


_hooked = torch.optim.Optimizer.profile_hook_step(
    lambda _, step, *args, **kwargs: step(*args, **kwargs)
)


def with_step_hooks(
    optimizer: torch.optim.Optimizer, step: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Calls ``step`` as torch calls an optimizer's: with the optimizer's hooks around it."""
    return _hooked(optimizer, step, *args, **kwargs)


def scaling(optimizer: torch.optim.Optimizer) -> tuple[float, bool]:
    """What a GradScaler asks for: a factor for the gradients, and whether to skip the update."""
    found_inf = getattr(optimizer, "found_inf", None)
    grad_scale = getattr(optimizer, "grad_scale", None)
    skip = found_inf is not None and bool(found_inf)
    return (1.0 if grad_scale is None else 1.0 / float(grad_scale)), skip


def has_scaler(optimizer: torch.optim.Optimizer) -> bool:
    """Whether a GradScaler has asked for anything in this step."""
    return getattr(optimizer, "found_inf", None) is not None


def scale_gradients(tensors: Iterable[torch.Tensor], scale: float) -> None:
    """In place."""
    if scale == 1:
        return
    with torch.no_grad():
        for parameter in tensors:
            if parameter.grad is not None:
                parameter.grad.mul_(scale)


@contextlib.contextmanager
def without_scaler(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """For a step that knows no GradScaler: hides what that has left with the optimizer."""
    attributes = vars(optimizer)
    left = [name for name in ("grad_scale", "found_inf") if name in attributes]
    there = {name: attributes.pop(name) for name in left}
    try:
        yield
    finally:
        attributes.update(there)


class ReplacedStep:
    """Makes ``optimizer.step(...)`` call ``step(own_step, ...)``.

    As a method, which learning-rate schedulers wrap once more, or leave alone if it carries their
    mark and notes what they note.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, step: Callable[..., Any]) -> None:
        self._optimizer = optimizer
        attributes = vars(optimizer)
        self._before = {name: attributes[name] for name in _REPLACED if name in attributes}
        own_step = optimizer.step

        def replaced(_: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
            return step(own_step, *args, **kwargs)

        replaced.__doc__ = own_step.__doc__
        replaced._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
        self._mine = types.MethodType(replaced, optimizer)
        optimizer.step = self._mine
        optimizer._step_supports_amp_scaling = True

    def undo(self) -> None:
        """The optimizer's own step again, unless somebody has wrapped ours meanwhile."""
        attributes = vars(self._optimizer)
        if attributes.get("step") is not self._mine:
            self._before["step"] = attributes["step"]
        for name in _REPLACED:
            attributes.pop(name, None)
        attributes.update(self._before)
