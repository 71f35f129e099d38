"""What the checks of the first steps have in common; suspicions.py has the table of them."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch
from torch.optim import Optimizer

from gossamer.session.session import Session
from gossamer.tensors import parameters, shards
from gossamer.tensors.trained import Trained

T = TypeVar("T")
_ELEMENTS = 64


class Check:
    """One thing that would silently be something else. It speaks once, and is dropped when done.

    ``is_done`` is set once there is nothing more to see; ``silences`` names checks that would only
    say the same in other words.
    """

    is_done = False
    silences: tuple[type[Check], ...] = ()

    def before_step(self, trained: Trained, step: int) -> str:
        """Looks before step number ``step``, counted from 1; what there is to say, or nothing."""
        return ""

    def before_own_step(self, trained: Trained, optimizer: Optimizer, step: int) -> None:
        """Looks before the own step of an optimizer that the engine does not step."""

    def after_own_step(self, trained: Trained, optimizer: Optimizer, step: int) -> str:
        """Looks after it, before the mix."""
        return ""

    def outside(self, call: Callable[[], T]) -> T:
        """Calls the closure of an own step, which is not the optimizer's doing."""
        return call()

    def at_end(self, trained: Trained) -> str:
        """Looks in averaged() and close()."""
        return ""

    def drop(self) -> None:
        """Takes away what it has set."""


def after_first(session: Session, trained: Trained) -> None:
    """What there is to say after the first step, whatever it was."""
    world = session.world
    parameters.warn_without_gradients(trained.tensors, world.rank)
    settings = session.settings
    is_asked_for = settings.chose_pattern or settings.pattern != "cwa"
    if is_asked_for or world.rank > 0 or world.size == 1:
        return
    print(
        '[Gossip] pattern "cwa" at the learning rate of DDP is behind it after equally many steps: '
        'try 2 and 3 times the rate, or pattern="allreduce", codec="bf16", which keeps the loss; '
        'pattern="cwa" is quiet',
        file=sys.stderr,
        flush=True,
    )


def after_second(session: Session, trained: Trained) -> None:
    """State that was not there in the first step is mixed now, if it is there at all."""
    missing = trained.seats.missing()
    if missing:
        kept = sorted({str(key) for _, entry in trained.optimizers.states() for key in entry})
        warn(
            session.world.rank,
            f"mix_state has {names_of(missing)}, which {trained.optimizers.word} does not keep "
            f"after two steps, got {names_of(kept) or 'no state'}; it is mixed once it is there, "
            "so look for a slip in the name",
        )


def warn(rank: int, text: str) -> None:
    """On rank 0 only: what is to be said is of the script, which all ranks run."""
    if rank == 0:
        warnings.warn(f"[Gossip] {text}", stacklevel=2)


def spread(items: Sequence[T], count: int) -> list[T]:
    """At most ``count`` of them, the first and the last one among these, evenly."""
    if len(items) <= count:
        return list(items)
    return [items[i * (len(items) - 1) // (count - 1)] for i in range(count)]


def can_be_sampled(tensor: torch.Tensor) -> bool:
    """Whether ``sample`` has something to read."""
    if tensor.is_sparse or tensor.is_meta or not tensor.is_floating_point():
        return False
    return shards.local_of(tensor).numel() > 0


def sample(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of some of its elements, in double precision, always of the same ones."""
    with torch.no_grad():
        flat = shards.local_of(tensor.detach()).reshape(-1)
        return flat[:: max(1, flat.numel() // _ELEMENTS)][:_ELEMENTS].double()


def trainable(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Those of them that are trained and can be sampled."""
    return [p for p in tensors if p.requires_grad and can_be_sampled(p)]


def alive(is_wanted: Callable[[type], bool]) -> list[Any]:
    """All objects of this process whose class is wanted; takes some .1 s."""
    known: dict[type, bool] = {}

    def is_one(kind: type) -> bool:
        if kind not in known:
            known[kind] = is_wanted(kind)
        return known[kind]

    return [each for each in gc.get_objects() if is_one(type(each))]


def names_of(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"'{name}'" for name in names[:3]) + more
