"""A model and its optimizer as they were read: what is mixed, and how the optimizer steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from gossamer.tensors import parameters, shards
from gossamer.tensors.fused import Rule, fused_kind, rule_for

_mixed = WeakIdKeyDictionary()


def is_mixed(parameter: torch.Tensor) -> bool:
    """Whether it is, or was, in any Gossip of this process."""
    return parameter in _mixed


@dataclass(frozen=True, eq=False)
class Trained:
    """What was found at one moment; a later one is read anew.

    ``named``: the trainable parameters in the optimizer's order. ``kind``: the rule for an
    optimizer of this class; ``rule``: that with which the engine steps these parameters, None where
    the optimizer steps them itself. ``tree``: the model's modules, None where they change by
    themselves.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    named: Sequence[parameters.Named]
    kind: Rule | None
    rule: Rule | None
    tree: parameters.Tree | None

    @cached_property
    def tensors(self) -> list[torch.Tensor]:
        """Those that are mixed, without names."""
        return [parameter for _, parameter, _ in self.named]

    @property
    def bytes(self) -> int:
        """Of what is mixed, on all ranks that have shards of it together."""
        return sum(p.numel() * p.element_size() for p in self.tensors)

    def is_changed(self) -> bool:
        """Whether the optimizer is of another kind now, or the model has other parts."""
        is_same = fused_kind(self.optimizer) == self.kind
        return not (is_same and (self.tree is None or self.tree.is_same()))

    def everything(self) -> list[parameters.Named]:
        """All parameters that the optimizer has now, frozen ones as well."""
        return parameters.named_parameters(self.model, self.optimizer)

    def describe(self) -> list[str]:
        """A line for each tensor that every rank must have alike, with name, shape and dtype."""
        return parameters.describe(self.model, self.named)


def read(model: nn.Module, optimizer: torch.optim.Optimizer) -> Trained:
    """Raises ValueError for parameters that cannot be mixed."""
    everything = parameters.named_parameters(model, optimizer)
    named = parameters.trainable(everything)
    for _, parameter, _ in named:
        _mixed[parameter] = True
    is_sharded = any(shards.is_sharded(parameter) for _, parameter, _ in named)
    return Trained(
        model=model,
        optimizer=optimizer,
        named=named,
        kind=fused_kind(optimizer),
        rule=None if is_sharded else rule_for(optimizer),  # see Note [Shards]
        # FSDP replaces parameters and puts them back in every step.
        tree=None if is_sharded else parameters.Tree(model),
    )
