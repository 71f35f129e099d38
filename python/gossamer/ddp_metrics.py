"""The lines of ``Gossip(metrics=folder)`` for a script that trains with DDP, to compare both."""

from __future__ import annotations

import os
from typing import Any

import torch

from gossamer.records.metrics import Metrics
from gossamer.workers.world import World, find_seat

_RECIPE = '[algorithm]\npattern = "ddp"\n'


class DdpMetrics:
    """Writes ``folder/metrics.rank<r>.jsonl``, a line for each step of ``optimizer``, as
    ``Gossip(metrics=folder)`` does: `gossamer report` then has the run with DDP beside others.

    Every rank makes one after its process group; nothing is exchanged. A line has ``step``,
    ``lr``, ``step_ms``, and what was logged. Raises TypeError for what is no optimizer, IoError
    where the folder cannot be written.

    Example::

        metrics = gossamer.DdpMetrics(optimizer, "runs/ddp")
        metrics.log(loss=loss.detach(), samples=len(x))  # before optimizer.step()
        metrics.log_validation(val_loss=0.5)
        metrics.close()
    """

    def __init__(self, optimizer: torch.optim.Optimizer, folder: str | os.PathLike[str]) -> None:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(
                f"[Gossip] DdpMetrics follows an optimizer of torch, got {type(optimizer).__name__}"
            )
        seat = find_seat(None)
        world = World(
            *(seat.rank, seat.size, seat.group), workers_per_host=(), rank_in_job=seat.rank
        )
        self._metrics = Metrics(folder, world, _RECIPE)
        self._optimizer = optimizer
        self._steps = 0
        self._hook = optimizer.register_step_post_hook(self._step)

    def log(self, **values: Any) -> None:
        """Adds values to the next step's line, such as ``loss=loss``: numbers, texts and tensors of
        one element. ``samples=len(x)`` counts samples; the line then has ``samples_per_s``."""
        self._metrics.log(values)

    def log_validation(self, **values: Any) -> None:
        """A line of its own, after the steps so far. The time since the last step counts for no
        step."""
        self._metrics.log(values)
        self._metrics.write_logged(self._steps)
        self._metrics.resume()

    def restart(self, steps_done: int) -> None:
        """The run goes on after so many steps, as from a checkpoint: earlier lines stay, later ones
        go."""
        self._steps = steps_done
        self._metrics.restart(steps_done)

    def close(self) -> None:
        """No more lines. May be called again."""
        self._hook.remove()
        self._metrics.close(None)

    def _step(self, *_: object) -> None:
        self._steps += 1
        self._metrics.step_alone(self._steps, float(self._optimizer.param_groups[0]["lr"]))
