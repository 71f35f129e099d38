"""Gradients of shards, which plain tensors of the same memory stand for.

See Note [Stand-ins] in gossamer/torch/tensors/gradient_options.h. What spreads parameters over
ranks gives a shard its gradient by itself, once it is reduced over them, and calls the shard's
post-accumulate hooks then.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle
from torch.utils.weak import WeakIdKeyDictionary

from gossamer import _core
from gossamer.tensors import shards

_known = WeakIdKeyDictionary()
"""By parameter: an engine that follows another one finds the same."""


def stand_in(parameter: torch.Tensor) -> torch.Tensor:
    """A leaf over what is here of a parameter of which ranks hold shards; a plain one itself."""
    if not shards.is_sharded(parameter):
        return parameter
    if parameter not in _known:
        _known[parameter] = shards.local_of(parameter).requires_grad_(parameter.requires_grad)
    return _known[parameter]


class StandIns:
    """Those of some parameters, whose gradients are averaged by ``engine``."""

    def __init__(self, parameters: Iterable[torch.Tensor], engine: _core.Engine) -> None:
        every = [(i, p, stand_in(p)) for i, p in enumerate(parameters)]
        sharded = [each for each in every if each[1] is not each[2]]
        self._pairs = [(parameter, other) for _, parameter, other in sharded]
        handles = [
            _watch(i, parameter, other, weakref.ref(engine)) for i, parameter, other in sharded
        ]
        weakref.finalize(self, _remove, handles)

    def take(self) -> None:
        """Their gradients are those of the parameters."""
        for parameter, other in self._pairs:
            other.requires_grad_(parameter.requires_grad)
            _take(parameter, other)

    def give(self) -> None:
        """A parameter that had no gradient takes that of its stand-in."""
        for parameter, other in self._pairs:
            if parameter.grad is None and other.grad is not None:
                parameter.grad = shards.like(parameter, other.grad)


def stand_ins_of(parameters: Sequence[torch.Tensor], engine: _core.Engine) -> StandIns | None:
    """None where all of them get their gradients from autograd itself."""
    return StandIns(parameters, engine) if any(map(shards.is_sharded, parameters)) else None


def _watch(
    i: int, parameter: torch.Tensor, other: torch.Tensor, engine: weakref.ref[_core.Engine]
) -> RemovableHandle:
    def arrived(leaf: torch.Tensor) -> None:
        _take(leaf, other)
        if (alive := engine()) is not None:
            alive.gradient_arrived(i)

    return parameter.register_post_accumulate_grad_hook(arrived)


def _remove(handles: list[RemovableHandle]) -> None:
    for handle in handles:
        handle.remove()


def _take(parameter: torch.Tensor, other: torch.Tensor) -> None:
    """The same tensor for as long as it is the gradient: it is known by that."""
    gradient: Any = parameter.grad
    with torch.no_grad():
        local = gradient.to_local() if shards.is_sharded(gradient) else gradient
    if other.grad is not local:
        other.grad = local
