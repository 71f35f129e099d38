"""What a TrainerState and the callbacks hold that a worker can tell another one."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Mapping
from typing import Any

_callbacks: Any = importlib.import_module("transformers.trainer_callback")
# Of a TrainerState: what is not the same for all workers, or is known already.
_OWN = {
    *("epoch", "global_step", "stateful_callbacks"),
    *("is_local_process_zero", "is_world_process_zero", "is_hyper_param_search"),
}


def known(trainer: Any) -> dict[str, Any]:
    state = dataclasses.asdict(trainer.state)
    return {
        "state": _plain({k: v for k, v in state.items() if k not in _OWN}),
        "callbacks": [_plain(each.state()["attributes"]) for each in _with_state(trainer)],
    }


def put(trainer: Any, told: Mapping[str, Any]) -> None:
    """What ``known`` said elsewhere."""
    vars(trainer.state).update(told["state"])
    for callback, attributes in zip(_with_state(trainer), told["callbacks"], strict=True):
        vars(callback).update(attributes)


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
