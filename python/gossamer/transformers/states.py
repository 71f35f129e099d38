"""What a TrainerState and the callbacks hold that a worker can tell another one."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch

_callbacks: Any = importlib.import_module("transformers.trainer_callback")
# Of a TrainerState: what is not the same for all workers, or is known already.
_OWN = {
    *("epoch", "global_step", "stateful_callbacks"),
    *("is_local_process_zero", "is_world_process_zero", "is_hyper_param_search"),
}

# Of a Trainer: after how many steps it has logged the loss, and the sum of those that it logged.
_LOGGED = ("_globalstep_last_logged", "_total_loss_scalar")


class RunningLoss:
    """The Trainer's sum of losses since it has logged. The mean over the workers that it logs is
    over as many steps on each of them, so one that has come back takes another one's sum."""

    def __init__(self) -> None:
        self._sum: torch.Tensor | None = None
        self._others = 0.0

    def known(self) -> float:
        """Up to the end of the step before, as a worker tells it at the end of a step."""
        return 0.0 if self._sum is None else float(self._sum)

    def put(self, others: float) -> None:
        """What another one has told: it is added to that of this worker's first step."""
        self._others = others

    @contextlib.contextmanager
    def within(self, total: torch.Tensor) -> Iterator[None]:
        """Around what may log ``total``, which then is 0 again."""
        total += self._others
        self._others = 0.0
        yield
        self._sum = total.detach().clone()


def known(trainer: Any) -> dict[str, Any]:
    state = dataclasses.asdict(trainer.state)
    return {
        "state": _plain({k: v for k, v in state.items() if k not in _OWN}),
        "callbacks": [_plain(each.state()["attributes"]) for each in _with_state(trainer)],
        "logged": {name: getattr(trainer, name) for name in _LOGGED},
    }


def put(trainer: Any, told: Mapping[str, Any]) -> None:
    """What ``known`` said elsewhere."""
    vars(trainer.state).update(told["state"])
    for callback, attributes in zip(_with_state(trainer), told["callbacks"], strict=True):
        vars(callback).update(attributes)
    vars(trainer).update(told["logged"])


def _with_state(trainer: Any) -> list[Any]:
    found = trainer.callback_handler.callbacks
    return [each for each in found if isinstance(each, _callbacks.ExportableState)]


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those that JSON can say."""

    def can_say(value: Any) -> bool:
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            return False
        return True

    return {name: value for name, value in values.items() if can_say(value)}
