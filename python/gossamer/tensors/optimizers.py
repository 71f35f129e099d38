"""The optimizers of a run over one model: mostly one, or several that share its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from gossamer.tensors.fused import Group, Rule, fused_kind

Entry = dict[str, Any]
"""What an optimizer keeps of one parameter."""

Given: TypeAlias = "torch.optim.Optimizer | Sequence[torch.optim.Optimizer]"


@dataclass(frozen=True, eq=False)
class Optimizers:
    """As they were given, in that order. Groups are counted through all of them."""

    each: tuple[torch.optim.Optimizer, ...]

    @property
    def single(self) -> torch.optim.Optimizer | None:
        """The only one; None where there are several."""
        return self.each[0] if len(self.each) == 1 else None

    @property
    def kind(self) -> Rule | None:
        """The rule for a single one of this class; None where it, or several, step themselves."""
        return None if self.single is None else fused_kind(self.single)

    @property
    def word(self) -> str:
        """Their classes: "AdamW", "Muon + AdamW"."""
        return " + ".join(type(optimizer).__name__ for optimizer in self.each)

    @property
    def param_groups(self) -> list[Group]:
        """Those of all, as they are now."""
        return [group for optimizer in self.each for group in optimizer.param_groups]

    @property
    def owners(self) -> list[int]:
        """The number of the optimizer that has it, for each group."""
        return [k for k, optimizer in enumerate(self.each) for _ in optimizer.param_groups]

    def title(self, which: int) -> str:
        """What one of them is called beside the others."""
        return f"optimizer {which} ({type(self.each[which]).__name__})"

    def states(self) -> Iterator[tuple[Any, Entry]]:
        """Every entry that any of them has, with the parameter it is of."""
        for optimizer in self.each:
            yield from optimizer.state.items()

    def state_of(self, parameter: torch.Tensor) -> Entry:
        """The entry of a parameter; empty without one."""
        for optimizer in self.each:
            if parameter in optimizer.state:
                return optimizer.state[parameter]
        return {}

    def replace_states(self, entries: Iterable[tuple[torch.Tensor, Entry]]) -> None:
        """These in place of all there are, each with the optimizer that has the parameter."""
        homes = {
            id(parameter): optimizer
            for optimizer in self.each
            for group in optimizer.param_groups
            for parameter in group["params"]
        }
        for optimizer in self.each:
            optimizer.state.clear()
        for parameter, entry in entries:
            homes[id(parameter)].state[parameter] = entry

    def forget_gradients(self) -> None:
        """As ``zero_grad`` of each."""
        for optimizer in self.each:
            optimizer.zero_grad(set_to_none=True)

    def check_unused(self) -> None:
        """Raises ValueError for an optimizer that has a Gossip already."""
        for which, optimizer in enumerate(self.each):
            if getattr(optimizer, "_gossip", None) is not None:
                subject = "this optimizer" if self.single else self.title(which)
                raise ValueError(
                    f"[Gossip] {subject} already gossips; close() the first Gossip, or make "
                    "another optimizer"
                )


def taken(given: Given) -> Optimizers:
    """What Gossip was given as its optimizer, without wrappers.

    Raises TypeError for what is none, ValueError for an empty list, for one that stands twice in it
    and for wrappers that would go around Gossip.
    """
    if not isinstance(given, Sequence):
        return Optimizers((unwrapped(given),))
    found = Optimizers(tuple(unwrapped(each) for each in given))
    if not found.each:
        raise ValueError(
            "[Gossip] the list of optimizers must have one at least, got none; call Gossip(model, "
            "[optimizer, other])"
        )
    for which, optimizer in enumerate(found.each):
        if any(optimizer is other for other in found.each[:which]):
            raise ValueError(
                f"[Gossip] {found.title(which)} stands twice in the list of optimizers, and would "
                "be waited for twice; leave out the second"
            )
    return found


_WRAPPERS = ("accelerate", "lightning", "lightning_fabric", "pytorch_lightning")


def unwrapped(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The optimizer inside of Accelerate's or Lightning's wrapper, which calls its ``step``.

    Raises ValueError for a wrapper that would go around Gossip, TypeError for no optimizer.
    """
    wrapped: Any = getattr(optimizer, "optimizer", None)
    makers = {kind.__module__.partition(".")[0] for kind in type(optimizer).__mro__}
    if isinstance(wrapped, torch.optim.Optimizer) and makers.intersection(_WRAPPERS):
        if getattr(optimizer, "scaler", None) is not None:
            raise ValueError(
                f"[Gossip] {type(optimizer).__name__} with a GradScaler calls the step that it "
                "found when it was made; give Gossip the optimizer itself, before "
                "accelerator.prepare(optimizer)"
            )
        return wrapped
    if type(optimizer).__name__ == "ZeroRedundancyOptimizer":
        raise ValueError(
            "[Gossip] ZeroRedundancyOptimizer keeps all workers equal, which they are not here; "
            "use the optimizer that it was made of, with fully_shard over the ranks of a host if "
            "memory is short"
        )
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"[Gossip] the second argument must be a torch.optim.Optimizer, got "
            f"{type(optimizer).__name__}; call Gossip(model, optimizer)"
        )
    return optimizer
