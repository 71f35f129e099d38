"""A model and its optimizers as they were read: what is mixed, and how the optimizers step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from gossamer.tensors import beside, parameters, shards
from gossamer.tensors.fused import Rule, is_torchs, rule_for
from gossamer.tensors.optimizers import Optimizers

_mixed = WeakIdKeyDictionary()


def is_mixed(parameter: torch.Tensor) -> bool:
    """Whether it is, or was, in any Gossip of this process."""
    return parameter in _mixed


@dataclass(frozen=True, eq=False)
class Trained:
    """What was found at one moment; a later one is read anew.

    ``named``: the trainable parameters in the optimizers' order; ``parts``: the places in it that
    each optimizer has. ``kind``: the rule for an optimizer of this class; ``rule``: that with which
    the engine steps these parameters, None where optimizers step them themselves, as several always
    do; ``kept``: that by whose names the optimizer keeps its state, also where the engine leaves
    the step to it. ``tree``: the model's modules, None where they change by themselves. ``seats``:
    what of ``wanted`` is mixed beside the parameters.
    """

    model: nn.Module
    optimizers: Optimizers
    named: Sequence[parameters.Named]
    parts: Sequence[Sequence[int]]
    kind: Rule | None
    rule: Rule | None
    kept: Rule | None
    tree: parameters.Tree | None
    wanted: beside.Wanted
    seats: beside.Seats

    @cached_property
    def tensors(self) -> list[torch.Tensor]:
        """Those that are mixed, without names."""
        return [parameter for _, parameter, _ in self.named]

    def part(self, which: int) -> list[parameters.Named]:
        """Those that one of the optimizers has."""
        return [self.named[i] for i in self.parts[which]]

    @property
    def fused(self) -> torch.optim.Optimizer:
        """The optimizer that the engine steps, where there is a ``rule``."""
        assert self.optimizers.single is not None
        return self.optimizers.single

    @property
    def bytes(self) -> int:
        """Of what travels of parameters, on all ranks that have shards of it together."""
        return sum(p.numel() * max(p.element_size(), 4) for p in self.tensors)  # masters are wider

    def is_changed(self) -> bool:
        """Whether the optimizer is of another kind now, or has other state that is mixed, or the
        model has other parts."""
        is_same = self.optimizers.kind == self.kind and self.seats.is_same()
        return not (is_same and (self.tree is None or self.tree.is_same()))

    def everything(self) -> list[parameters.Named]:
        """All parameters that the optimizers have now, frozen ones as well."""
        return parameters.named_parameters(self.model, self.optimizers)

    def describe(self) -> list[str]:
        """A line for each tensor that every rank must have alike, with name, shape and dtype."""
        return [
            *parameters.describe(self.model, self.named),
            *self.wanted.describe(),
            *self.seats.describe(),
        ]


def read(
    model: nn.Module, optimizers: Optimizers, wanted: beside.Wanted, *, is_plain: bool
) -> Trained:
    """``is_plain``: torch's optimizers take their own steps, see Note [A worker alone]. Raises
    ValueError for parameters that cannot be mixed, TypeError for state that cannot."""
    everything = parameters.named_parameters(model, optimizers)
    named = parameters.trainable(everything)
    for _, parameter, _ in named:
        _mixed[parameter] = True
    is_sharded = any(shards.is_sharded(parameter) for _, parameter, _ in named)
    single, owners = optimizers.single, optimizers.owners
    # See Note [Shards] and Note [State that is mixed]
    kept = None if is_sharded or wanted.names or single is None else rule_for(single)
    leaves = kept is not None and is_plain and is_torchs(kept, (p for _, p, _ in named))
    return Trained(
        model=model,
        optimizers=optimizers,
        named=named,
        parts=[
            [i for i, (_, _, group) in enumerate(named) if owners[group] == which]
            for which in range(len(optimizers.each))
        ],
        kind=optimizers.kind,
        rule=None if leaves else kept,
        kept=kept,
        # FSDP replaces parameters and puts them back in every step.
        tree=None if is_sharded else parameters.Tree(model),
        wanted=wanted,
        seats=beside.Seats(wanted, named, optimizers),
    )
