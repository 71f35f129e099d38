"""What the workers of a job say when they end because one of them does not answer any more.

Each of them would print a traceback of the same call, and the cause would stand in its last line.
So where nobody catches such an error, the lowest rank that is left says the cause, and the others
one short line each. Whoever has an excepthook of his own is left alone.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

_TRACEBACK = "GOSSAMER_TRACEBACK"

_Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]

_errors: WeakKeyDictionary[BaseException, tuple[int, int]] = WeakKeyDictionary()


def expect(error: Exception, rank: int, first: int) -> None:
    """This worker ends by the error, unless somebody catches it: ``first`` was the first to end."""
    _errors[error] = (rank, first)
    usual: _Hook = sys.excepthook
    if _is_usual(usual):
        sys.excepthook = _after(usual)


def _is_usual(hook: _Hook) -> bool:
    """Whether it is Python's, or that which ``init_process_group`` puts around Python's."""
    if hook is sys.__excepthook__:
        return True
    if not inspect.isfunction(hook) or hook.__module__ != "torch.distributed.distributed_c10d":
        return False
    inner = inspect.getclosurevars(hook).nonlocals.get("old_hook")
    return inner is not None and _is_usual(inner)


def _after(usual: _Hook) -> _Hook:
    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if error not in _errors or os.environ.get(_TRACEBACK, "0") not in ("", "0"):
            usual(kind, error, traceback)
        else:
            print(said(error, *_errors[error]), file=sys.stderr, flush=True)

    return hook


def said(error: BaseException, rank: int, first: int) -> str:
    """Of one rank, in a line."""
    cause = f"worker {first} does not answer any more"
    speaker = 0 if first != 0 else 1
    if rank == speaker:
        return (
            f"[Gossip] {cause}, so that all others end: {error}; or use lost='go_on', with which "
            f"they would train on; {_TRACEBACK}=1 shows where the script was"
        )
    return (
        f"[Gossip] rank {rank}: ended, because {cause}; rank {speaker} says more, and "
        f"{_TRACEBACK}=1 shows where the script was"
    )
