"""What would silently be something else than gossip is said in the first steps.

Each row of the table looks for one mistake in the first few steps, in averaged() and in close(),
and warns once, with the remedy. A check only speaks of what it has seen happen, not of what might:
a parameter that changes although nobody mixes it, not one that is in no optimizer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from gossamer._core import TransportError
from gossamer.checks.first_steps import (
    Check,
    alive,
    can_be_sampled,
    names_of,
    sample,
    spread,
    trainable,
    warn,
)
from gossamer.checks.own_steps import OwnTraffic, SecondCopies
from gossamer.session.session import Session
from gossamer.tensors import plain, shards
from gossamer.tensors.trained import Trained, is_mixed
from gossamer.workers.board import Board, next_number
from gossamer.workers.world import board_of

_DDP = ("DistributedDataParallel", "FullyShardedDataParallel")


class EqualGradients(Check):
    """All workers have the same gradient: they see the same data, or somebody averages before us.

    In three steps every rank chains a digest of some elements of its gradients and leaves it in
    the group's store; later steps look for the next rank's there, and wait for nobody.
    """

    _STEPS = 3
    _LAST = 12

    def __init__(self, session: Session, trained: Trained) -> None:
        world = session.world
        self._digest = hashlib.sha256()
        self._board: Board | None = None
        self._rank, self._size = world.rank, world.size
        is_alone = world.size == 1 or world.comes_back  # the others have looked
        if is_alone or session.averages_gradients(trained.rule):
            self.is_done = True
            return
        self._board = board_of(world, session.settings.timeout_s)
        number = next_number(self._board, world.rank, world.size)
        self._place = f"gossamer/gradients/{number}"

    def before_step(self, trained: Trained, step: int) -> str:
        assert self._board is not None
        rank, size = self._rank, self._size
        if step <= self._STEPS:
            self.is_done = not self._add(trained)
        if self.is_done or step < self._STEPS:
            return ""
        try:
            if step == self._STEPS:
                self._board.set(f"{self._place}/{rank}", self._digest.hexdigest())
                return ""
            other = self._board.look(f"{self._place}/{(rank + 1) % size}")
        except TransportError:  # whose store is gone trains on
            self.is_done = True
            return ""
        self.is_done = other is not None or step >= self._LAST
        if other is None or other.decode() != self._digest.hexdigest():
            return ""
        return (
            f"workers {rank} and {(rank + 1) % size} had the same gradient, to the bit, in each of "
            f"the first {self._STEPS} steps, so that gossip changes nothing; give every worker its "
            "own batches (DistributedSampler, another seed), and let nothing else average "
            "gradients: no DistributedDataParallel inside or around the model, no hooks"
        )

    def _add(self, trained: Trained) -> bool:
        """Whether there was a gradient to add that tells something."""
        grads = [p.grad for p in spread(trained.tensors, 16) if p.grad is not None]
        samples = [sample(grad) for grad in grads if can_be_sampled(grad)]
        values = torch.cat(samples) if samples else torch.zeros(1)
        self._digest.update(plain.bytes_of(values))
        return bool(values.any()) and bool(values.isfinite().all())


class LiveWrappers(Check):
    """DistributedDataParallel or FSDP work on our parameters, over ranks that gossip.

    Given the inner module, or a wrapper around theirs, Gossip cannot see them. Theirs are found by
    their parameters among all objects, once, in the first step, where all wrappers are made.
    """

    silences = (EqualGradients,)

    def __init__(self, session: Session, trained: Trained) -> None:
        world = session.world
        self.is_done = world.size == 1 or world.comes_back
        self._ranks = set() if self.is_done else set(dist.get_process_group_ranks(world.group))

    def before_step(self, trained: Trained, step: int) -> str:
        self.is_done = True
        ranks = self._ranks
        mine = {id(p) for p in trained.tensors} | {id(m) for m in trained.model.modules()}
        wrappers = alive(lambda kind: any(k.__name__ in _DDP for k in kind.__mro__))
        for wrapper in wrappers:
            if self._averages_over(wrapper, ranks, mine):
                return (
                    f"the model is also inside a {type(wrapper).__name__}, which averages every "
                    "gradient over ranks that gossip with each other, so that this trains as DDP; "
                    "keep the model out of it: with Accelerate prepare_model(model, "
                    "evaluation_mode=True), with Fabric setup_optimizers(optimizer) alone, with "
                    "the Trainer of transformers gossamer.transformers.GossipTrainer"
                )
        return ""

    @staticmethod
    def _averages_over(wrapper: Any, ranks: set[int], mine: set[int]) -> bool:
        if not getattr(wrapper, "_lazy_init_ran", True):  # a DDP whose forward has never run
            return False
        inside = [*wrapper.parameters(), *wrapper.modules()]
        if not any(id(each) in mine for each in inside):
            return False
        groups = getattr(wrapper, "process_group", None)
        for group in groups if isinstance(groups, tuple) else (groups,):
            if group is None or len(ranks.intersection(dist.get_process_group_ranks(group))) > 1:
                return True
        return False


class UnseenSteps(Check):
    """Backwards run and parameters change, but nobody calls optimizer.step()."""

    _BACKWARDS = 3
    _CHANGES = 2

    def __init__(self, session: Session, trained: Trained) -> None:
        self._rank = session.world.rank
        tensors = [p for p in trainable(trained.tensors) if not shards.is_sharded(p)]
        self._tensors = spread(tensors, 8)
        self._seen: list[torch.Tensor | None] = [None] * len(self._tensors)
        self._backwards = [0] * len(self._tensors)
        self._changes = [0] * len(self._tensors)
        self._has_spoken = False
        self._hooks = [
            tensor.register_post_accumulate_grad_hook(self._hook(i))
            for i, tensor in enumerate(self._tensors)
        ]

    def before_step(self, trained: Trained, step: int) -> str:
        self.is_done = True  # it is called
        return ""

    def at_end(self, trained: Trained) -> str:
        for i in range(len(self._tensors)):
            self._look(i)
        return "" if self._has_spoken else self._text()

    def drop(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def _hook(self, i: int) -> Callable[[torch.Tensor], None]:
        def arrived(_: torch.Tensor) -> None:
            self._backwards[i] += 1
            self._look(i)
            if not self._has_spoken and self._text():
                self._has_spoken = True
                warn(self._rank, self._text())

        return arrived

    def _look(self, i: int) -> None:
        now = sample(self._tensors[i])
        before, self._seen[i] = self._seen[i], now
        self._changes[i] += before is not None and not torch.equal(before, now)

    def _text(self) -> str:
        backwards = max(self._backwards, default=0)
        if backwards < self._BACKWARDS or max(self._changes) < self._CHANGES:
            return ""
        return (
            f"after {backwards} backwards parameters have changed, but optimizer.step() of the "
            "optimizer that Gossip has was never called, so nothing is mixed; make Gossip before "
            "anything takes hold of optimizer.step, call step() and no other method (SAM: "
            "step(closure), or Gossip on its base optimizer), or give Gossip the optimizer that "
            "steps"
        )


class UnmixedParameters(Check):
    """Trainable parameters of the model that change, and are in no Gossip."""

    _LAST = 3

    def __init__(self, session: Session, trained: Trained) -> None:
        self._start: dict[str, torch.Tensor] | None = None

    def before_step(self, trained: Trained, step: int) -> str:
        if self._start is None:
            self._start = {name: sample(p) for name, p in self._others(trained).items()}
            self.is_done = not self._start
        if step < self._LAST:
            return ""
        self.is_done = True
        return self._changed(trained)

    def at_end(self, trained: Trained) -> str:
        return self._changed(trained)

    def _others(self, trained: Trained) -> dict[str, torch.Tensor]:
        mixed = {id(p) for p in trained.tensors}
        found = {n: p for n, p in trained.model.named_parameters() if id(p) not in mixed}
        return {n: p for n, p in found.items() if p.requires_grad and can_be_sampled(p)}

    def _changed(self, trained: Trained) -> str:
        start = self._start or {}
        changed = {
            name: p
            for name, p in self._others(trained).items()
            if name in start and not torch.equal(start[name], sample(p))
        }
        if not changed:
            return ""
        left = [name for name, p in changed.items() if not is_mixed(p)]
        if not left:
            return ""
        return (
            f"parameters {names_of(left)} of the model change, but are in no Gossip, so every "
            "worker has its own and averaged() is not their mean; give Gossip all optimizers "
            "of the model: Gossip(model, [optimizer, other])"
        )


_ROWS: tuple[Callable[[Session, Trained], Check], ...] = (
    LiveWrappers,
    EqualGradients,
    UnseenSteps,
    UnmixedParameters,
    OwnTraffic,
    SecondCopies,
)


class Suspicions:
    """The checks that are not done yet. Made on all ranks alike."""

    def __init__(self, session: Session, trained: Trained) -> None:
        self._checks = [make(session, trained) for make in _ROWS]
        self._rank = session.world.rank
        self._step = 0
        self._sort_out()

    def before_step(self, trained: Trained) -> None:
        """In every step, with its gradients there."""
        self._step += 1
        for check in list(self._checks):
            if not check.is_done:
                self._say(check, check.before_step(trained, self._step))
        self._sort_out()

    def watched(
        self, trained: Trained, optimizer: torch.optim.Optimizer, own_step: Callable[..., Any]
    ) -> Callable[..., Any]:
        """The own step of an optimizer with a look before and after."""
        if not self._checks:
            return own_step

        def step(*args: Any, **kwargs: Any) -> Any:
            for check in self._checks:
                check.before_own_step(trained, optimizer, self._step)
            if args and callable(args[0]):
                args = (self._outside(args[0]), *args[1:])
            if callable(kwargs.get("closure")):
                kwargs = {**kwargs, "closure": self._outside(kwargs["closure"])}
            result = own_step(*args, **kwargs)
            for check in list(self._checks):
                self._say(check, check.after_own_step(trained, optimizer, self._step))
            self._sort_out()
            return result

        return step

    def at_end(self, trained: Trained) -> None:
        """In averaged() and close()."""
        for check in list(self._checks):
            self._say(check, check.at_end(trained))
        self._sort_out()

    def end(self, trained: Trained) -> None:
        """For the last time; takes away what checks have set."""
        self.at_end(trained)
        for check in self._checks:
            check.drop()
        self._checks = []

    def _outside(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        for check in self._checks:
            closure = _around(check, closure)
        return closure

    def _say(self, check: Check, text: str) -> None:
        if not text:
            return
        check.is_done = True
        for other in self._checks:
            other.is_done |= isinstance(other, check.silences)
        warn(self._rank, text)

    def _sort_out(self) -> None:
        for check in self._checks:
            if check.is_done:
                check.drop()
        self._checks = [check for check in self._checks if not check.is_done]


def _around(check: Check, closure: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: check.outside(closure)
