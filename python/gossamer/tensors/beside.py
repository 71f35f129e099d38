"""What is mixed beside the parameters: entries of the optimizers' state, and tensors by hand.

Note [State that is mixed]: an optimizer whose state is mixed takes its own step, so that its state
is what it says. An entry that is not there before the first step is mixed from the second on: until
then it is made of parameters that all have alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn

from gossamer.tensors import parameters, plain, shards
from gossamer.tensors.names import Named, own_name
from gossamer.tensors.optimizers import Optimizers

Thing: TypeAlias = "str | torch.Tensor | nn.Module"
MixState: TypeAlias = "Thing | Iterable[Thing] | Mapping[Thing, int] | None"

Beside = tuple[str, torch.Tensor, int]
"""A name, a tensor, and from how many steps to how many it is mixed."""

_PATTERNS = ("cwa", "atc", "gradient_gossip")  # which mix parameters, and keep nothing of them
_HOW = 'give names of state, modules and tensors, as mix_state=("z", ema), or {ema: 8}'


@dataclass(frozen=True, eq=False)
class Wanted:
    """What was asked for: ``names`` of state with their periods, and ``given`` tensors."""

    names: Mapping[str, int]
    given: Sequence[Beside]

    def __bool__(self) -> bool:
        return bool(self.names or self.given)

    def describe(self) -> list[str]:
        """A line each, which all ranks must have alike."""
        lines = [f"mix_state '{name}' every {every}" for name, every in self.names.items()]
        for name, tensor, every in self.given:
            lines += [f"mix_state {line} every {every}" for line in plain.describe(name, tensor)]
        return lines

    def check(self, pattern: str, update: str, late: str, named: Sequence[Named]) -> None:
        """Raises ValueError for what cannot be mixed beside these parameters."""
        if not self:
            return
        if pattern not in _PATTERNS:
            raise ValueError(
                f"[Gossip] mix_state is mixed by patterns {', '.join(_PATTERNS)}, got pattern "
                f"{pattern!r}; use one of them, or leave mix_state out"
            )
        if update == "backward" and self.names:
            raise ValueError(
                "[Gossip] update='backward' steps the optimizer itself, which takes its own step "
                f"where mix_state names its state, got {', '.join(map(repr, self.names))}; use "
                "update='step'"
            )
        slow = max([*self.names.values(), *(every for _, _, every in self.given)])
        if late == "skip" and slow > 1:
            raise ValueError(
                "[Gossip] late='skip' goes with mix_state that is mixed in every step, got one of "
                f"every {slow} steps; mix it in every step, or use late='wait'"
            )
        owners = {id(parameter): name for name, parameter, _ in named}
        for name, tensor, _ in self.given:
            if id(tensor) in owners:
                raise ValueError(
                    f"[Gossip] {name} is parameter '{owners[id(tensor)]}' of the model, which is "
                    "mixed already; leave it out of mix_state"
                )
            _check(name, tensor, named)
        parameters.check_overlaps([*named, *((name, tensor, 0) for name, tensor, _ in self.given)])

    def state(self, named: Sequence[Named], optimizers: Optimizers) -> list[Beside]:
        """What of the named state is there now."""
        there = [
            (title(key, name), value, every)
            for key, every in self.names.items()
            for name, parameter, _ in named
            if isinstance(value := optimizers.state_of(parameter).get(key), torch.Tensor)
        ]
        for name, tensor, _ in there:
            _check(name, tensor, named)
        return there


def title(key: str, parameter: str) -> str:
    """What an entry of the state of a parameter is called."""
    return f"{key} of {parameter}"


def wanted(given: MixState) -> Wanted:
    """What Gossip was given. Raises TypeError and ValueError for what cannot be mixed."""
    names: dict[str, int] = {}
    tensors: list[Beside] = []
    for thing, every in _periods(given):
        if not isinstance(every, int) or isinstance(every, bool) or every < 1:
            raise ValueError(
                f"[Gossip] mix_state is mixed in every so many-th step, got {every!r} steps; give "
                "a whole number from 1 up"
            )
        if isinstance(thing, str):
            names[thing] = every
        else:
            label = f"mix_state[{len(tensors)}]" if isinstance(thing, torch.Tensor) else "mix_state"
            tensors += [(name, tensor, every) for name, tensor in _tensors(label, thing)]
    once = {id(tensor): (name, tensor, every) for name, tensor, every in reversed(tensors)}
    return Wanted(names, _with_own_names([*reversed(once.values())]))


def _periods(given: MixState) -> Iterable[tuple[Any, Any]]:
    if given is None:
        return []
    if isinstance(given, Mapping):
        return list(given.items())
    if isinstance(given, str | torch.Tensor | nn.Module):
        return [(given, 1)]
    if not isinstance(given, Iterable):
        raise TypeError(f"[Gossip] mix_state cannot be {type(given).__name__}; {_HOW}")
    return [(thing, 1) for thing in given]


def _tensors(label: str, thing: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Those of floating-point numbers: a module counts its updates, too."""
    if isinstance(thing, torch.Tensor):
        _check_dtype(label, thing)
        yield label, thing
    elif isinstance(thing, nn.Module):
        for key, tensor in (*thing.named_parameters(), *thing.named_buffers()):
            if tensor.is_floating_point() or tensor.is_complex():
                yield f"{label}.{own_name(key)}", tensor
    else:
        raise TypeError(f"[Gossip] mix_state has a {type(thing).__name__}; {_HOW}")


def _with_own_names(tensors: list[Beside]) -> list[Beside]:
    """Two modules may call their tensors alike."""
    seen: dict[str, int] = {}
    found: list[Beside] = []
    for name, tensor, every in tensors:
        seen[name] = seen.get(name, 0) + 1
        found.append((name if seen[name] == 1 else f"{name}#{seen[name]}", tensor, every))
    return found


def _check(name: str, tensor: torch.Tensor, named: Sequence[Named]) -> None:
    _check_dtype(name, tensor)
    place = named[0][1].device if named else tensor.device
    if tensor.device != place:
        raise ValueError(
            f"[Gossip] mix_state must be where the parameters are, got {name} on {tensor.device} "
            f"and parameters on {place}; move it before"
        )


def _check_dtype(name: str, tensor: torch.Tensor) -> None:
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.layout != torch.strided:
        raise TypeError(
            f"[Gossip] mix_state must be dense and of floating-point numbers, got {name} of "
            f"{tensor.dtype} with layout {tensor.layout}; leave it out"
        )


class Seats:
    """What is mixed beside the parameters of a run, each in the tensor that the engine knows.

    An optimizer may put a new tensor in place of its state in every step: the values go into the
    tensor that is known, and that goes back into the state.
    """

    def __init__(self, wanted: Wanted, named: Sequence[Named], optimizers: Optimizers) -> None:
        self._wanted, self._named, self._optimizers = wanted, named, optimizers
        self._state = wanted.state(named, optimizers)
        self._held = {name: tensor for name, tensor, _ in self._state}
        self.found = [*self._state, *wanted.given]

    def describe(self) -> list[str]:
        """A line each, of state; a rank that lacks one is told so."""
        return [
            f"state {line} every {every}"
            for name, tensor, every in self._state
            for line in plain.describe(name, tensor)
        ]

    def take(self) -> None:
        """Puts what has been replaced back into its seat."""
        for key in self._wanted.names:
            for name, parameter, _ in self._named:
                seat, entry = self._held.get(title(key, name)), self._optimizers.state_of(parameter)
                tensor = entry.get(key)
                if seat is None or tensor is seat or not _fits(tensor, seat):
                    continue
                with torch.no_grad():
                    seat.copy_(tensor)
                entry[key] = seat

    def is_same(self) -> bool:
        """Whether all is where it was."""
        return _ids(self._now()) == _ids(self._state)

    def new(self) -> list[Beside]:
        """State that is there, and was not when this was made."""
        known = {*_ids(self._state)}
        return [each for each in self._now() if id(each[1]) not in known]

    def missing(self) -> list[str]:
        """The names of state that no parameter has."""
        return [
            key
            for key in self._wanted.names
            if not any(name.startswith(title(key, "")) for name in self._held)
        ]

    def _now(self) -> list[Beside]:
        self.take()
        return self._wanted.state(self._named, self._optimizers)


def _ids(found: Iterable[Beside]) -> list[int]:
    return [id(tensor) for _, tensor, _ in found]


def _fits(tensor: Any, seat: torch.Tensor) -> bool:
    return (
        isinstance(tensor, torch.Tensor)
        and shards.is_sharded(tensor) == shards.is_sharded(seat)
        and (tensor.shape, tensor.dtype, tensor.device) == (seat.shape, seat.dtype, seat.device)
    )
