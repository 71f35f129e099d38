"""The parameters of a model in the order of an optimizer, and what can be wrong with them."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from gossamer.tensors import devices, plain, shards
from gossamer.tensors.fused import Rule, fused_kind
from gossamer.tensors.names import Named, own_name
from gossamer.tensors.optimizers import Optimizers


def named_parameters(model: nn.Module, optimizers: Optimizers) -> list[Named]:
    """The optimizers' parameters in their order, frozen ones as well.

    Raises ValueError for one that is not the model's, stands there twice or has no values yet, for
    two trainable ones that share memory, and for a model on several devices.
    """
    shards.reshard(model)  # else it has other parameters than the optimizer
    devices.device_of(model)
    names = {id(p): own_name(name) for name, p in model.named_parameters()}
    found: list[Named] = []
    seen: dict[int, int] = {}
    owners = optimizers.owners
    for index, group in enumerate(optimizers.param_groups):
        for parameter in group["params"]:
            if id(parameter) not in names:
                whose = "the optimizer" if optimizers.single else optimizers.title(owners[index])
                raise ValueError(
                    f"[Gossip] parameter {len(found)} of {whose} (shape "
                    f"{tuple(parameter.shape)}) is not a parameter of the model; make the "
                    "optimizer from model.parameters() of the same model, after moving or "
                    "converting it"
                )
            name = names[id(parameter)]
            if id(parameter) in seen:
                raise _stands_twice(name, optimizers, seen[id(parameter)], owners[index])
            seen[id(parameter)] = owners[index]
            found.append((name, parameter, index))
            if parameter.is_meta:
                raise ValueError(
                    f"[Gossip] parameter '{name}' is on the meta device, without values; call "
                    'model.to_empty(device="cpu") and initialise or load it, then make the '
                    "optimizer and Gossip"
                )
    check_overlaps(trainable(found))
    return found


def _stands_twice(name: str, optimizers: Optimizers, first: int, second: int) -> ValueError:
    if first == second:
        return ValueError(
            f"[Gossip] parameter '{name}' stands twice in the optimizer, which would step "
            "it twice; leave out the second, as model.parameters() does"
        )
    return ValueError(
        f"[Gossip] parameter '{name}' must belong to one optimizer, got "
        f"{optimizers.title(first)} and {optimizers.title(second)}, which would both step it; "
        "leave it out of one of them"
    )


def trainable(named: Iterable[Named]) -> list[Named]:
    """Those that require a gradient now."""
    return [each for each in named if each[1].requires_grad]


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses of its first byte and behind its last one; the same twice: it has none."""
    local = shards.local_of(tensor)
    if local.layout != torch.strided or local.numel() == 0 or _is_wrapper(local):
        return 0, 0
    last = sum((size - 1) * step for size, step in zip(local.shape, local.stride(), strict=True))
    begin = local.data_ptr()
    return begin, begin + (last + 1) * local.element_size()


def _is_wrapper(tensor: torch.Tensor) -> bool:
    """Whether a subclass keeps its values elsewhere."""
    return is_traceable_wrapper_subclass(tensor)


def check_overlaps(named: Iterable[Named]) -> None:
    """Raises ValueError for parameters that overlap, which would be mixed twice."""
    ranges = [(*_extent(parameter), name) for name, parameter, _ in named]
    ranges.sort(key=lambda each: each[0])
    end, owner = 0, ""
    for first, last, name in ranges:
        if first < end and first < last:
            raise ValueError(
                f"[Gossip] parameters '{owner}' and '{name}' share memory; to tie them, use "
                "one nn.Parameter in both places"
            )
        if last > end:
            end, owner = last, name


class Tree:
    """Which parameters and modules a model consists of, to notice that they were replaced."""

    def __init__(self, model: nn.Module) -> None:
        self._parts = [
            (each, [*map(id, each._parameters.values())], [*map(id, each._modules.values())])
            for each in model.modules()
        ]

    def is_same(self) -> bool:
        """Whether each module still has the parameters and modules that it had."""
        return all(
            [*map(id, module._parameters.values())] == parameters
            and [*map(id, module._modules.values())] == modules
            for module, parameters, modules in self._parts
        )


def describe(model: nn.Module, named: Iterable[Named]) -> list[str]:
    """A line for each tensor that every rank must have alike, with name, shape and dtype."""
    named = list(named)
    lines = describe_mixed(named)
    mixed = {id(parameter) for _, parameter, _ in named}
    for name, p in model.named_parameters():
        if id(p) not in mixed:
            lines += [f"frozen parameter {line}" for line in plain.describe(own_name(name), p)]
    for name, b in model.named_buffers():
        lines += [f"buffer {line}" for line in plain.describe(own_name(name), b)]
    return lines


def describe_mixed(named: Iterable[Named]) -> list[str]:
    """The same of what is mixed alone."""
    return [f"parameter {_text(name, p)} in group {group}" for name, p, group in named]


def _text(name: str, tensor: torch.Tensor) -> str:
    name = own_name(name)
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"'{name}' {list(tensor.shape)} {dtype}{shards.place_of(tensor)}"


def refuse_non_finite(named: Iterable[Named], rank: int, step: int) -> None:
    """Raises RuntimeError with the name of the first gradient that is not finite.

    Where parameters are spread over several ranks, on all of them. Collective over these.
    """
    found = next(filter(None, (_non_finite(name, p) for name, p, _ in named)), None)
    if not shards.anywhere(found is not None, (parameter for _, parameter, _ in named)):
        return
    name, got = found or ("", "another number in a shard of another rank")
    of = f"of parameter '{name}' " if name else ""
    raise RuntimeError(
        f"[Gossip] the gradient {of}on worker {rank} in step {step} must be finite, got {got}; "
        "lower the learning rate, clip, or look for the division by zero"
    )


def _non_finite(name: str, parameter: torch.Tensor) -> tuple[str, str] | None:
    """The name and the first number of a gradient that is not finite."""
    if parameter.grad is None:
        return None
    grad = shards.local_of(parameter.grad)
    values = grad.coalesce().values() if grad.is_sparse else grad
    finite = torch.isfinite(values)
    return None if bool(finite.all()) else (name, str(values[~finite][0].item()))


def warn_without_gradients(parameters: Iterable[torch.Tensor], rank: int) -> None:
    """A UserWarning if not one of them has a gradient."""
    if all(parameter.grad is None for parameter in parameters):
        warnings.warn(
            f"[Gossip] rank {rank}: no parameter has a gradient in the first step, so it only "
            "mixed; call loss.backward() before optimizer.step() (a worker without a batch may "
            "leave it out)",
            stacklevel=2,
        )


def check_loaded_groups(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """A hook before ``load_state_dict``: raises ValueError for a state of other parameters, with
    more words than torch has for it."""
    own, given = (
        [len(each["params"]) for each in groups]
        for groups in (optimizer.param_groups, state["param_groups"])
    )
    if own != given:
        raise ValueError(
            "[Gossip] the optimizer's state_dict is another model's: its groups must have "
            f"{_counts(own)} parameters, got {_counts(given)}; load one that was saved with this "
            "model, and with the optimizer's groups made in the same way"
        )


def _counts(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "no"


def check_loaded_state(
    optimizer: torch.optim.Optimizer, rule: Rule, named: Iterable[Named]
) -> None:
    """Raises ValueError for state of another kind of optimizer, or of another model."""
    try:
        fused_kind(optimizer)
        for group in optimizer.param_groups:
            rule.hyper(group)
    except KeyError as missing:
        raise ValueError(
            "[Gossip] the optimizer's state_dict is another optimizer's, got groups without "
            f"{missing}; load one that {type(optimizer).__name__} has saved"
        ) from None
    for name, parameter, _ in named:
        entry = optimizer.state.get(parameter)
        kept = {key for key, value in (entry or {}).items() if value is not None} - {"step"}
        if kept and not kept.issuperset(rule.state):
            raise ValueError(
                "[Gossip] the optimizer's state_dict is another optimizer's: parameter "
                f"'{name}' needs {', '.join(rule.state) or 'no state'}, got "
                f"{', '.join(sorted(kept))}; load one that {type(optimizer).__name__} has saved"
            )
        for key in rule.state if kept else ():
            if entry[key].shape != parameter.shape:
                raise ValueError(
                    f"[Gossip] the optimizer's state_dict is another model's: {key} of parameter "
                    f"'{name}' must have shape {tuple(parameter.shape)}, got "
                    f"{tuple(entry[key].shape)}; load one that was saved with this model"
                )


class LoadMark:
    """A hook for load_state_dict: set once that has been called, until it is cleared.

    It knows nobody, and a copy of the model carries one that does nothing: a model that is copied
    or saved whole is loaded where this package is not installed.
    """

    def __init__(self) -> None:
        self.is_set = False

    def __call__(self, *_: object) -> None:
        self.is_set = True

    def clear(self) -> None:
        """What was loaded has been taken over."""
        self.is_set = False

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial, (operator.setitem, {})  # called as a hook, it returns None
