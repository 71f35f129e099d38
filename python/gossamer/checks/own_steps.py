"""Checks of optimizers that take their own step: they communicate, or keep parameters twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.optim import Optimizer

from gossamer.checks.first_steps import Check, can_be_sampled, sample, spread, trainable
from gossamer.session.session import Session
from gossamer.tensors import shards
from gossamer.tensors.trained import Trained

T = TypeVar("T")


class OwnTraffic(Check):
    """The optimizer's own step communicates over ranks that gossip with each other.

    Torch numbers what it does in each process group: the numbers tell, whoever calls it.
    """

    _STEPS = 2

    def __init__(self, session: Session, trained: Trained) -> None:
        self._world = session.world
        self._began = 0
        self._outside = 0
        self._quiet: set[int] = set()
        self._times: Counter[int] = Counter()  # that an optimizer has communicated
        self._ranks: set[int] = set()

    def before_own_step(self, trained: Trained, optimizer: Optimizer, step: int) -> None:
        if self._world.size > 1 and dist.is_initialized() and not self._ranks:
            self._ranks = set(dist.get_process_group_ranks(self._world.group))
        self._outside = 0
        self._began = self._count()

    def outside(self, call: Callable[[], T]) -> T:
        before = self._count()
        result = call()
        self._outside += self._count() - before
        return result

    def after_own_step(self, trained: Trained, optimizer: Optimizer, step: int) -> str:
        calls = self._count() - self._began - self._outside
        if calls == 0:
            self._quiet.add(id(optimizer))
            self.is_done = len(self._quiet) == len(trained.optimizers.each)
            return ""
        self._times[id(optimizer)] += 1
        if self._times[id(optimizer)] < self._STEPS:
            return ""
        return (
            f"{type(optimizer).__name__}.step() communicates by itself ({calls} operations "
            f"in step {step}) over ranks that gossip with each other; if it averages gradients or "
            "parameters this trains as all-reduce, and gossip only costs; use one that does not, "
            "or keep the process group from it"
        )

    def _count(self) -> int:
        if not self._ranks or not dist.is_initialized():
            return 0
        total = 0
        for group in list(dist.distributed_c10d._world.pg_map):
            if len(self._ranks.intersection(dist.get_process_group_ranks(group))) > 1:
                total += _number(group)
        return total


def _number(group: dist.ProcessGroup) -> int:
    """What has been done in it so far; 0 where its backend does not count."""
    try:
        return int(group._get_sequence_number_for_group())
    except RuntimeError:
        return 0


class SecondCopies(Check):
    """The optimizer keeps the parameters a second time, where no mix reaches them.

    After an own step before which the mix has changed parameters, a tensor of the optimizer that
    rounds to the parameter and has more digits is its master: the step has written it over the
    mix. One that is near the parameter, and is not what the step began from, is a sequence of its
    own. Each of several optimizers is looked at with its own parameters. Torch's own optimizers
    keep none that matters (ASGD's average is a result, not a start).
    """

    _NEAR = 0.1
    _LAST = 6

    def __init__(self, session: Session, trained: Trained) -> None:
        self._unseen = {id(each) for each in trained.optimizers.each if not _is_torchs(each)}
        self.is_done = not self._unseen or session.world.size == 1
        self._mixed = {*trained.wanted.names}
        self._begun: dict[int, torch.Tensor] = {}  # what the own step begins from
        self._left: dict[int, torch.Tensor] = {}  # what the last own step has left

    def before_own_step(self, trained: Trained, optimizer: Optimizer, step: int) -> None:
        mine = (p for group in optimizer.param_groups for p in group["params"])
        tensors = spread(trainable(mine), 16) if id(optimizer) in self._unseen else []
        self._begun = {id(p): sample(p) for p in tensors}

    def after_own_step(self, trained: Trained, optimizer: Optimizer, step: int) -> str:
        tensors = [p for p in trained.tensors if id(p) in self._begun]
        mixed = [
            p
            for p in tensors
            if id(p) in self._left and not torch.equal(self._left[id(p)], self._begun[id(p)])
        ]
        self._left.update({id(p): sample(p) for p in tensors})
        if mixed and step > 2:
            self._unseen.discard(id(optimizer))
        self.is_done = step >= self._LAST * len(trained.optimizers.each) or not self._unseen
        if not mixed:
            return ""
        return self._masters(optimizer, mixed) or self._sequences(optimizer, mixed)

    def _masters(self, optimizer: Optimizer, mixed: list[torch.Tensor]) -> str:
        kept = list(_tensors_of(optimizer))
        for parameter in mixed:
            written = self._left[id(parameter)]
            for label, tensor in kept:
                if not _could_be(tensor, parameter) or tensor.dtype == parameter.dtype:
                    continue
                values = sample(tensor)
                if torch.equal(values.to(parameter.dtype).double(), written) and not torch.equal(
                    values, written
                ):
                    return (
                        f"{type(optimizer).__name__} keeps a copy of the parameters in "
                        f"{tensor.dtype} ({label}), and its step writes that over what the mix "
                        "wrote, so that workers drift apart; keep the parameters themselves in "
                        "float32 and use autocast, or an optimizer without master copies"
                    )
        return ""

    def _sequences(self, optimizer: Optimizer, mixed: list[torch.Tensor]) -> str:
        by_key: dict[str, list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]] = {}
        for parameter in mixed:
            for key, tensor in optimizer.state.get(parameter, {}).items():
                if key in self._mixed or not isinstance(tensor, torch.Tensor):
                    continue
                if _could_be(tensor, parameter):
                    triple = (sample(tensor), self._left[id(parameter)], self._begun[id(parameter)])
                    by_key.setdefault(str(key), []).append(triple)
        for key, triples in by_key.items():
            kept, written, begun = (torch.cat(part) for part in zip(*triples, strict=True))
            is_near = bool((kept - written).norm() < self._NEAR * written.norm())
            if is_near and not torch.equal(kept, begun):
                return (
                    f"{type(optimizer).__name__} keeps the parameters a second time, in "
                    f"state['{key}'], which no mix reaches: it drifts apart among workers, and "
                    "what the optimizer makes of it is one worker's; mix it too, with "
                    f'Gossip(..., mix_state=("{key}",))'
                )
        return ""


def _is_torchs(optimizer: Optimizer) -> bool:
    return type(optimizer).__module__.startswith("torch.optim.")


def _could_be(tensor: torch.Tensor, parameter: torch.Tensor) -> bool:
    """Whether it can be a copy of the parameter in a memory of its own."""
    if tensor.shape != parameter.shape or not can_be_sampled(tensor):
        return False
    return shards.local_of(tensor).data_ptr() != shards.local_of(parameter).data_ptr()


def _tensors_of(thing: Any, label: str = "", depth: int = 5) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors in an optimizer and in the containers and optimizers in it, with where they are."""
    if isinstance(thing, torch.Tensor):
        yield label, thing
    elif depth == 0:
        return
    elif isinstance(thing, Optimizer):
        for name, value in vars(thing).items():
            yield from _tensors_of(value, f"{label}.{name}".lstrip("."), depth - 1)
    elif isinstance(thing, dict):
        for key, value in thing.items():
            if isinstance(key, torch.Tensor):
                yield label, key
                yield from _tensors_of(value, label, depth - 1)
            else:
                yield from _tensors_of(value, f"{label}['{key}']", depth - 1)
    elif isinstance(thing, list | tuple):
        for value in thing:
            yield from _tensors_of(value, label, depth - 1)
