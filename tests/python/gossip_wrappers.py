"""Optimizers as Accelerate and Lightning wrap them: what their wrappers do, in few lines.

The packages may not be installed where the tests run. Only the names of module and class, the
attribute ``optimizer`` and what ``step`` calls count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class AcceleratedOptimizer(torch.optim.Optimizer):
    """Steps its optimizer where gradients are in step, with the step it found if it scales."""

    __module__ = "accelerate.optimizer"

    def __init__(
        self, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler | None = None
    ) -> None:
        self.optimizer = optimizer
        self.scaler = scaler
        self.sync_gradients = True
        self._found = optimizer.step

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return self.optimizer.param_groups

    @property
    def state(self) -> Any:
        return self.optimizer.state

    def zero_grad(self, set_to_none: bool = True) -> None:
        if self.sync_gradients:
            self.optimizer.zero_grad(set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if self.sync_gradients:
            (self.optimizer.step if self.scaler is None else self._found)(closure)


class LightningOptimizer:
    """Takes over what its optimizer has at first, and lets the trainer step that."""

    __module__ = "lightning.pytorch.core.optimizer"

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        own = {k: v for k, v in vars(optimizer).items() if k != "step"}
        vars(self).update(own)
        bases = (type(self), type(optimizer))
        self.__class__ = type("Lightning" + type(optimizer).__name__, bases, {})

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        return self._optimizer

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        return self._optimizer.step(closure)


def accelerated(
    optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler | None = None
) -> AcceleratedOptimizer:
    """As ``accelerator.prepare(optimizer)`` gives it, with fp16 and without."""
    return AcceleratedOptimizer(optimizer, scaler)
