"""Objects of the training loop, such as a scheduler, whose state a worker that comes back is given.

Note [Behind]: the state is that of an earlier step than the one to begin with. A scheduler that is
stepped with the optimizer is stepped until it is there: one that is as far ahead of the steps as it
was when it was handed over. Any other object keeps the state that came.
A new scheduler has changed its optimizer's settings, from which many schedulers go on: so these
come with it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from gossamer.step import plain_state
from gossamer.step.run import Run


def hand_over(run: Run, objects: Mapping[str, Any]) -> None:
    """See Gossip.hand_over."""
    for name, found in objects.items():
        if not (hasattr(found, "state_dict") and hasattr(found, "load_state_dict")):
            raise TypeError(
                "[Gossip] hand_over() is for objects with state_dict and load_state_dict, got "
                f"{type(found).__name__} as {name}"
            )
        _packed({name: found.state_dict()})  # what cannot travel is said here
    ahead = {
        name: found.last_epoch - run.team.engine.steps_done
        for name, found in objects.items()
        if isinstance(found, LRScheduler)
    }

    def state() -> dict[str, Any]:
        states = {name: each.state_dict() for name, each in objects.items()}
        settings = {name: _settings(each) for name, each in objects.items()}
        return {
            "steps": run.team.engine.steps_done,
            "ahead": ahead,
            "states": _packed(states),
            "settings": _packed(settings),
        }

    received = run.handed_over.add(state)
    if received is None:
        return
    states = _unpacked(received["states"])
    if states.keys() != objects.keys():
        raise ValueError(
            f"[Gossip] hand_over() has to get the same names on every rank, got {list(objects)} "
            f"here and {list(states)} on the rank that gave its state"
        )
    settings = _unpacked(received["settings"])
    ahead.update(received["ahead"])
    for name, found in objects.items():
        found.load_state_dict(states[name])
        if isinstance(found, LRScheduler):
            put_settings(found.optimizer, settings[name])
            steps = (received["steps"], run.team.engine.steps_done)
            _catch_up(found, *(ahead[name] + each for each in steps))


def _settings(found: Any) -> list[dict[str, Any]]:
    """Of each group of a scheduler's optimizer, the rate among them."""
    if not isinstance(found, LRScheduler):
        return []
    return [{k: v for k, v in g.items() if k != "params"} for g in found.optimizer.param_groups]


def put_settings(optimizer: torch.optim.Optimizer, settings: list[dict[str, Any]]) -> None:
    """By group."""
    for group, values in zip(optimizer.param_groups, settings, strict=True):
        for name, value in values.items():
            if isinstance(group.get(name), torch.Tensor):
                group[name].fill_(value)
            else:
                group[name] = value


def _packed(states: Mapping[str, Any]) -> dict[str, Any]:
    packed = {}
    for name, state in states.items():
        try:
            packed[name] = plain_state.to_json(state)
        except TypeError as error:
            raise ValueError(
                "[Gossip] hand_over() takes tensors, numbers, texts, lists and dictionaries of "
                f"them; the state of {name} has something else: {error}"
            ) from error
    return packed


def _unpacked(packed: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain_state.from_json(state) for name, state in packed.items()}


def _catch_up(scheduler: LRScheduler, given: int, now: int) -> None:
    """See Note [Behind]. Where the scheduler should be, at the other worker, which may have been
    about to step it, and here."""
    if isinstance(scheduler, ReduceLROnPlateau) or given - scheduler.last_epoch not in (0, 1):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of schedulers that step before their optimizer
        while scheduler.last_epoch < now:
            scheduler.step()
