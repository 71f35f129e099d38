"""What callbacks know, for a worker that has come back.

See Note [First steps] in gossamer/workers/returns.py: they decide whether all save, and what.
Lightning's own state of a saving callback leaves out what has been saved last. So of those it is
all that is numbers and texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer.lightning import package
from gossamer.step import plain_state

_CLOCK = "_last_time_checked"  # of this machine


def states(trainer: Any) -> list[Any]:
    """As JSON, of each callback; None: it has none that can travel."""
    known = [_known_to(callback) for callback in trainer.callbacks]
    return [plain_state.to_json(each) if plain_state.is_plain(each) else None for each in known]


def put(trainer: Any, given: list[Any]) -> None:
    """Where this worker has the same callbacks."""
    for callback, plain in zip(trainer.callbacks, given, strict=True):
        known = plain_state.from_json(plain)
        if _saves(callback):
            vars(callback).update(known or {})
        elif known:
            callback.load_state_dict(known)


def _known_to(callback: Any) -> Mapping[str, Any]:
    if not _saves(callback):
        return dict(callback.state_dict())
    values = {name: value for name, value in vars(callback).items() if name != _CLOCK}
    return {name: value for name, value in values.items() if plain_state.is_plain(value)}


def _saves(callback: Any) -> bool:
    return isinstance(callback, package.module("callbacks").Checkpoint)
