"""Which optimizers the engine steps itself, and how it reads their groups and keeps their state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from gossamer import _core
from gossamer.optim import AccumAdam, AccumAdamW

Group = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """A row of the engine's optimizer table that does what a torch optimizer does.

    ``title`` is that optimizer. ``state`` names the entries of ``optimizer.state[p]`` that hold its
    state vectors, in the table's order; ``counts`` says whether torch keeps the number of updates
    there as ``step``.
    """

    name: str
    title: str
    state: tuple[str, ...]
    counts: bool
    hyper: Callable[[Group], _core.Hyper]


def _base(group: Group) -> _core.Hyper:
    hyper = _core.Hyper()
    hyper.lr = float(group["lr"])
    hyper.weight_decay = float(group["weight_decay"])
    hyper.grad_scale = -1.0 if group.get("maximize") else 1.0
    return hyper


def _sgd(group: Group) -> _core.Hyper:
    hyper = _base(group)
    hyper.momentum = float(group["momentum"])
    hyper.dampening = float(group["dampening"])
    hyper.nesterov = bool(group["nesterov"])
    return hyper


def _adam(group: Group) -> _core.Hyper:
    hyper = _base(group)
    hyper.beta1, hyper.beta2 = (float(beta) for beta in group["betas"])
    hyper.eps = float(group["eps"])
    return hyper


def _accum_adam(group: Group) -> _core.Hyper:
    hyper = _adam(group)
    hyper.accumulate = int(group["accumulate"])
    return hyper


_ADAM_STATE = ("exp_avg", "exp_avg_sq")
_ACCUM_STATE = (*_ADAM_STATE, "accumulated")
_SGD = Rule("sgd", "SGD without momentum", (), False, _base)
_MOMENTUM = Rule("momentum", "SGD with momentum", ("momentum_buffer",), False, _sgd)
_ADAM = Rule("adam", "Adam", _ADAM_STATE, True, _adam)
_ADAMW = Rule("adamw", "AdamW", _ADAM_STATE, True, _adam)
_ACCUM_ADAM = Rule("accum_adam", "AccumAdam", _ACCUM_STATE, True, _accum_adam)
_ACCUM_ADAMW = Rule("accum_adamw", "AccumAdamW", _ACCUM_STATE, True, _accum_adam)
TITLES = {
    rule.name: rule.title for rule in (_SGD, _MOMENTUM, _ADAM, _ADAMW, _ACCUM_ADAM, _ACCUM_ADAMW)
}
"""What the rows are called in Python."""


def fused_kind(optimizer: torch.optim.Optimizer) -> Rule | None:
    """The rule for an optimizer of this class with these options, whatever its parameters are.

    Only the classes themselves count: a subclass may step in another way.
    """
    groups = optimizer.param_groups
    if any(group.get("amsgrad") or group.get("differentiable") for group in groups):
        return None
    kind = type(optimizer)
    if kind is torch.optim.SGD:
        return _MOMENTUM if any(group["momentum"] != 0 for group in groups) else _SGD
    if kind in (torch.optim.Adam, torch.optim.AdamW):
        decoupled = {bool(group.get("decoupled_weight_decay")) for group in groups}
        if len(decoupled) > 1:
            return None
        return _ADAMW if kind is torch.optim.AdamW or True in decoupled else _ADAM
    if kind is AccumAdamW:
        return _ACCUM_ADAMW
    return _ACCUM_ADAM if kind is AccumAdam else None


def rule_for(optimizer: torch.optim.Optimizer) -> Rule | None:
    """The rule for this optimizer; None if it has to step by itself."""
    every = (p for group in optimizer.param_groups for p in group["params"])
    parameters = (p for p in every if p.requires_grad)
    return fused_kind(optimizer) if all(map(_core.can_be_fused, parameters)) else None


def is_torchs(rule: Rule, parameters: Iterable[torch.Tensor]) -> bool:
    """Whether torch's own step does the same to these parameters but for roundings: not where the
    optimizer is one of ours, nor where they have masters, see Note [Masters]."""
    wide = (torch.float32, torch.float64)
    return rule not in (_ACCUM_ADAM, _ACCUM_ADAMW) and all(p.dtype in wide for p in parameters)


class FusedState:
    """Lets the engine work on the optimizer's own state.

    ``state[p]`` appears with the first update of ``p``, as in torch, and its tensors are those that
    the engine uses: what is put there in their place is used from the next step on. They are
    float32 where ``p`` is of half precision: what torch's load_state_dict has cast to the dtype of
    ``p`` is replaced by a float32 copy. With
    ``mixes_momentum`` it appears with the first step of all: from then on others' momentum is in
    it, which no update starts over.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        rule: Rule,
        engine: _core.Engine,
        parameters: list[torch.Tensor],
        *,
        mixes_momentum: bool,
    ) -> None:
        self._optimizer = optimizer
        self._rule = rule
        self._engine = engine
        self._parameters = parameters
        self._mixes_momentum = mixes_momentum
        self._counts = torch.zeros(len(parameters), dtype=torch.float32, device="cpu")
        self.adopt()

    def adopt(self) -> None:
        """Takes what the optimizer's state holds, and starts anew where it holds nothing."""
        self._shown: dict[int, _Entry] = {}
        self._begins_all = False
        for i, parameter in enumerate(self._parameters):
            entry = self._optimizer.state.get(parameter)
            updates = 0
            self._engine.reset_state(i)
            if entry and all(entry.get(key) is not None for key in self._rule.state):
                for k, key in enumerate(self._rule.state):
                    self._engine.set_state(i, k, entry[key])
                updates = int(entry["step"]) if self._rule.counts else bool(self._rule.state)
            self._engine.set_updates(i, int(updates))
        self.show()

    def check(self) -> None:
        """Takes over what has been put in place of the optimizer's state, or was removed."""
        if not self._rule.state:
            return
        state = self._optimizer.state
        for i, parameter in enumerate(self._parameters):
            entry, shown = state.get(parameter), self._shown.get(i)
            if shown is None:
                is_same = not entry
            else:
                is_same = entry is not None and all(
                    entry.get(key) is value for key, value in shown.items()
                )
            if not is_same:
                self.adopt()
                return

    def release(self) -> None:
        """Casts the state to the parameters' dtype, with which the optimizer steps by itself."""
        for parameter in self._parameters:
            entry = self._optimizer.state.get(parameter) or {}
            for key in self._rule.state:
                value = entry.get(key)
                if isinstance(value, torch.Tensor) and value.dtype != parameter.dtype:
                    entry[key] = value.to(parameter.dtype)

    def after_step(self) -> None:
        """Shows what the step has updated, or mixed."""
        self._begins_all = self._mixes_momentum
        self.show()

    def show(self) -> None:
        """Puts entries into ``optimizer.state`` for what has been updated first."""
        if not self._rule.state or len(self._shown) == len(self._parameters):
            return
        self._engine.copy_updates(self._counts)
        for i, count in enumerate(self._counts.tolist()):
            if i in self._shown or (count == 0 and not self._begins_all):
                continue
            if count == 0 and not self._rule.counts:
                self._engine.set_updates(i, 1)
            self._show(i)

    def _show(self, i: int) -> None:
        entry = self._optimizer.state[self._parameters[i]]
        if self._rule.counts:
            number = entry.get("step")
            if not _is_number(number):
                number = entry["step"] = torch.zeros((), dtype=torch.float32, device="cpu")
            self._engine.show_updates(i, number)
        for k, key in enumerate(self._rule.state):
            value = self._engine.state(i, k)
            if not _is_same_memory(entry.get(key), value):
                entry[key] = value
        keys = (*self._rule.state, *(("step",) if self._rule.counts else ()))
        self._shown[i] = {key: entry[key] for key in keys}


_Entry = dict[str, torch.Tensor]


def _is_number(value: object) -> bool:
    """Whether the engine can count in it."""
    return (
        isinstance(value, torch.Tensor)
        and value.dtype == torch.float32
        and value.device.type == "cpu"
        and value.numel() == 1
    )


def _is_same_memory(mine: object, value: torch.Tensor) -> bool:
    return isinstance(mine, torch.Tensor) and mine.data_ptr() == value.data_ptr()
