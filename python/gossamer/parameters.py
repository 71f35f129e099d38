"""The parameters of a model in the order of an optimizer, and what can be wrong with them."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

Named = tuple[str, torch.Tensor, int]
"""The model's name of a parameter, the parameter, the index of its group in the optimizer."""


def named_parameters(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Named]:
    """The optimizer's parameters in its order.

    Raises ValueError for one that is not the model's, and for two that share their memory.
    """
    names = {id(p): name.replace("_orig_mod.", "") for name, p in model.named_parameters()}
    found: list[Named] = []
    by_address: dict[int, str] = {}
    for index, group in enumerate(optimizer.param_groups):
        for parameter in group["params"]:
            if id(parameter) not in names:
                raise ValueError(
                    f"[Gossip] parameter {len(found)} of the optimizer (shape "
                    f"{tuple(parameter.shape)}) is not a parameter of the model; make the "
                    "optimizer from model.parameters() of the same model, after moving or "
                    "converting it"
                )
            name = names[id(parameter)]
            found.append((name, parameter, index))
            if parameter.is_sparse or parameter.numel() == 0:
                continue
            other = by_address.setdefault(parameter.data_ptr(), name)
            if other != name:
                raise ValueError(
                    f"[Gossip] parameters '{other}' and '{name}' share memory; to tie them, use "
                    "one nn.Parameter in both places"
                )
    return found


def describe(model: nn.Module, named: Iterable[Named]) -> list[str]:
    """A line for each tensor that every rank must have alike, with name, shape and dtype."""
    lines = [f"parameter {_text(name, p)} in group {group}" for name, p, group in named]
    mixed = {id(parameter) for _, parameter, _ in named}
    lines += [
        f"frozen parameter {_text(name, p)}"
        for name, p in model.named_parameters()
        if id(p) not in mixed
    ]
    return lines + [f"buffer {_text(name, b)}" for name, b in model.named_buffers()]


def _text(name: str, tensor: torch.Tensor) -> str:
    name = name.replace("_orig_mod.", "")
    return f"'{name}' {list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


def refuse_non_finite(named: Iterable[Named], rank: int, step: int) -> None:
    """Raises RuntimeError with the name of the first gradient that is not finite."""
    for name, parameter, _ in named:
        grad = parameter.grad
        if grad is None:
            continue
        values = grad.coalesce().values() if grad.is_sparse else grad
        finite = torch.isfinite(values)
        if not bool(finite.all()):
            raise RuntimeError(
                f"[Gossip] the gradient of parameter '{name}' on worker {rank} in step {step} must "
                f"be finite, got {values[~finite][0].item()}; lower the learning rate, clip, or "
                "look for the division by zero"
            )


class LoadMark:
    """A hook for load_state_dict: set once that has been called.

    It knows nobody: a copy of the model carries a mark of its own that nobody reads.
    """

    def __init__(self) -> None:
        self.is_set = False

    def __call__(self, *_: object) -> None:
        self.is_set = True


def check_arguments(
    optimizer: torch.optim.Optimizer, buffers: str, pattern: str, *, in_ddp: bool
) -> None:
    """Raises ValueError for what no Gossip can be made with."""
    if in_ddp:
        raise ValueError(
            "[Gossip] the model is wrapped in DistributedDataParallel, which would average "
            "every gradient as well; pass the bare model, or give the group to gossip in "
            "beside DDP's"
        )
    for name, value, valid in (
        ("buffers", buffers, ("averaged", "local")),
        ("pattern", pattern, ("cwa", "atc", "allreduce")),
    ):
        if value not in valid:
            raise ValueError(f"[Gossip] {name} must be one of {valid}, got {value!r}")
    if getattr(optimizer, "_gossip", None) is not None:
        raise ValueError(
            "[Gossip] this optimizer already gossips; close() the first Gossip, or make "
            "another optimizer"
        )
