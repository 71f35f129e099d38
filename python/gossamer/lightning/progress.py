"""How far ``fit`` is: what a worker that comes back is told, and how it goes on from there.

Note [Back in fit]: what is told was true in an earlier step than the one to begin with. All workers
have equally many batches in an epoch, so the place of any step is known: its epoch, and its number
there. The loops are put there as if they had run until then. The loader of that epoch passes over
the batches that are done, before it loads them. Schedulers are stepped as Lightning would have.
What callbacks know is told once it has done its first step: see gossamer/lightning/callbacks.py.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader

from gossamer.gossip import Gossip
from gossamer.step import loop_state, plain_state


class Place(NamedTuple):
    """After so many optimizer steps of an epoch."""

    epoch: int
    steps: int


class Progress:
    """Of a Trainer in ``fit``, for ``Gossip.hand_over``."""

    def __init__(self, trainer: Any, gossip: Gossip) -> None:
        self._trainer = trainer
        self._gossip = gossip
        self._received: dict[str, Any] = {}
        self._passed_over = 0  # batches of the epoch that it comes back into

    def state_dict(self) -> dict[str, Any]:
        """In the middle of a step: what comes after the optimizer's is still to be done."""
        trainer = self._trainer
        loop = trainer.fit_loop.epoch_loop
        batches = trainer.num_training_batches
        schedulers = [config.scheduler.state_dict() for config in trainer.lr_scheduler_configs]
        return {
            "epoch": trainer.fit_loop.epoch_progress.current.processed,
            "batch": loop.batch_progress.current.ready,
            "batches": None if math.isinf(batches) else int(batches),
            "optimizer steps": _steps_of_optimizer(loop).ready,
            "steps": self._gossip.steps_done,
            "logged steps": loop._batches_that_stepped,
            "schedulers": [each if plain_state.is_plain(each) else None for each in schedulers],
            "settings": [_settings(optimizer) for optimizer in trainer.optimizers],
        }

    def load_state_dict(self, given: Mapping[str, Any]) -> None:
        self._received = dict(given)

    @property
    def came_back(self) -> bool:
        return bool(self._received)

    def go_on(self) -> None:
        """Puts the Trainer where the others are. RuntimeError where that is not known."""
        trainer, given = self._trainer, self._received
        self._check()
        missed = self._gossip.steps_done - given["steps"]
        every = trainer.accumulate_grad_batches
        in_epoch = math.ceil(given["batches"] / every)
        before = Place(given["epoch"], math.ceil(given["batch"] / every))
        epoch, done = divmod(before.epoch * in_epoch + before.steps + missed, in_epoch)
        self._passed_over = done * every
        loop = trainer.fit_loop.epoch_loop
        _put(trainer.fit_loop.epoch_progress, epoch)
        _put_total(loop.batch_progress, epoch * given["batches"] + self._passed_over)
        optimizer_steps = _steps_of_optimizer(loop)
        optimizer_steps.ready = given["optimizer steps"] + missed
        optimizer_steps.completed = optimizer_steps.ready
        loop._batches_that_stepped = given["logged steps"] + 1 + missed
        self._put_schedulers(before, in_epoch, missed)
        trainer.num_sanity_val_steps = 0
        trainer._checkpoint_connector._loaded_checkpoint = {}  # of ckpt_path: it is further already
        self._begin_epoch_later(loop)

    def loader(self, loader: object) -> object:
        """That passes over what is done, the first time."""
        for name in ("batch_sampler", "sampler"):
            sampler = getattr(loader, name, None)
            if isinstance(loader, DataLoader) and sampler is not None:
                object.__setattr__(loader, name, _Later(self, sampler))  # it is made already
                break
        return loader

    @property
    def passed_over(self) -> int:
        return self._passed_over

    def _begin_epoch_later(self, loop: Any) -> None:
        begin = loop.on_run_start

        def begin_later(fetcher: Any) -> None:
            begin(fetcher)  # makes the loader's iterator
            done, self._passed_over = self._passed_over, 0
            _put_current(loop.batch_progress, done)
            fetcher.fetched += done
            loop.on_run_start = begin

        loop.on_run_start = begin_later

    def _check(self) -> None:
        trainer, given = self._trainer, self._received
        reasons = {
            "a loader without a length": given["batches"] is None,
            "automatic_optimization=False": not trainer.lightning_module.automatic_optimization,
            "several optimizers": len(trainer.optimizers) > 1,
            "a scheduler whose state is more than numbers": None in given["schedulers"],
        }
        got = [reason for reason, is_so in reasons.items() if is_so]
        if got:
            raise RuntimeError(
                "[GossipStrategy] a worker comes back where one optimizer steps once for so many "
                f"batches of an epoch of known length, got {', '.join(got)}; start the job with "
                "--restarts 0"
            )

    def _put_schedulers(self, before: Place, in_epoch: int, missed: int) -> None:
        trainer, given = self._trainer, self._received
        configs = trainer.lr_scheduler_configs
        for config, state in zip(configs, given["schedulers"], strict=True):
            config.scheduler.load_state_dict(state)
        for optimizer, settings in zip(trainer.optimizers, given["settings"], strict=True):
            loop_state.put_settings(optimizer, settings)
        every = trainer.accumulate_grad_batches
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of schedulers that step before their optimizer
            # The others had yet to step them in the step that it was.
            for place in _from(before, in_epoch, missed + 1):
                batch = min(place.steps * every, given["batches"])
                for config in configs:
                    by_step = config.interval == "step"
                    number = batch if by_step else place.epoch + 1
                    is_end = by_step or place.steps == in_epoch
                    if is_end and not config.reduce_on_plateau and number % config.frequency == 0:
                        config.scheduler.step()


class _Later:
    """A sampler that begins later, as long as something is to be passed over."""

    def __init__(self, progress: Progress, sampler: Any) -> None:
        self._progress = progress
        self._sampler = sampler

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self._sampler), self._progress.passed_over, None)

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sampler, name)


def _from(place: Place, in_epoch: int, count: int) -> Iterator[Place]:
    """So many, this one first."""
    for _ in range(count):
        yield place
        is_last = place.steps == in_epoch
        place = Place(place.epoch + 1, 1) if is_last else Place(place.epoch, place.steps + 1)


def _steps_of_optimizer(loop: Any) -> Any:
    return loop.automatic_optimization.optim_progress.optimizer.step.total


def _put(progress: Any, done: int) -> None:
    _put_total(progress, done)
    _put_current(progress, done)


def _put_total(progress: Any, done: int) -> None:
    for name in vars(progress.total):
        setattr(progress.total, name, done)


def _put_current(progress: Any, done: int) -> None:
    for name in vars(progress.current):
        setattr(progress.current, name, done)


def _settings(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    return [
        {
            name: value
            for name, value in group.items()
            if name != "params" and plain_state.is_plain(value)
        }
        for group in optimizer.param_groups
    ]
