"""Mixing alone, for methods of one's own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist

from gossamer import _core
from gossamer.base import words
from gossamer.base.closing import AtExit, Closing
from gossamer.session import session
from gossamer.session import settings as arguments
from gossamer.session.settings import NO_OPTIMIZER, Settings
from gossamer.session.team import Team
from gossamer.step import means
from gossamer.tensors import parameters, plain, shards
from gossamer.workers.world import find_seat, meet


class Mixer(Closing):
    """Mixes tensors with those of neighbouring workers: x ← W x, in place, when you say so.

    What a method of your own is made from, see docs/methods/own.md; ``Gossip`` mixes what an
    optimizer steps.

    Args:
        tensors: dense ones of floating-point or complex numbers, of any shapes, as many and as
            large on every worker. What they hold stays each worker's own.
        topology: a name of ``gossamer topology --list``, a file of matrices (NAME.json), or a
            schedule. W must be doubly stochastic.
        group: the process group, or the mesh of one dimension; by default all ranks.
        broadcast: start with rank 0's values.
        stagger: a bucket of the tensors follows the schedule one round after the bucket before it,
            which loads the links equally; by default all are in the same round.
        seed, codec, bucket_bytes, timeout_s, transport, tls: as in ``Gossip``.

    Collective: every rank of the group must make it, with equal arguments, and mix equally often.
    Raises ValueError on every rank where they differ, TransportError for a rank that does not come.

    Example::

        values = torch.tensor([float(rank)])
        mixer = gossamer.Mixer(values, topology="complete")
        mixer.mix()  # values are now the mean of all ranks
        mixer.close()
    """

    @words.checked("Mixer")
    def __init__(
        self,
        tensors: torch.Tensor | Iterable[torch.Tensor],
        *,
        topology: str | _core.Schedule = "alternating_exponential_ring",
        group: dist.ProcessGroup | dist.device_mesh.DeviceMesh | None = None,
        broadcast: bool = False,
        stagger: bool = False,
        seed: int = 0,
        codec: str = "fp32",
        bucket_bytes: int | None = None,
        timeout_s: float = 1800.0,
        transport: str = "auto",
        tls: bool = False,
    ) -> None:
        settings = Settings.of({**NO_OPTIMIZER, **locals()})
        named = _named([tensors] if isinstance(tensors, torch.Tensor) else list(tensors))
        seat = find_seat(group)
        about, problem = "", None
        try:
            about = "\n".join(_about(named, settings, broadcast))
        except Exception as error:
            problem = error
        world = meet(seat, about, problem, timeout_s)
        begun = session.begin(world, settings, None)
        total = sum(tensor.numel() * tensor.element_size() for _, tensor, _ in named)
        engine = _core.Engine(
            begun.transport,
            named,
            begun.engine_options(None),
            bucket_bytes=begun.bucket_bytes(total),
        )
        self._team = Team(begun, engine)
        self._closed = False
        with self._team.within("Mixer()"):
            if broadcast:
                engine.start()
            else:
                engine.start_at(0)
        self._at_exit = AtExit(self)

    def mix(self, loss: float | torch.Tensor = math.nan) -> None:
        """x ← W x with W of the next round, over all workers; waits for the neighbours.

        Values may be changed at any time between two calls. ``loss`` is for schedules that follow
        it (``adaptive_average`` of ``make_schedule``). Collective.

        Example::

            mixer = gossamer.Mixer([torch.ones(3), torch.zeros(2, 2)])
            for _ in range(4):
                mixer.mix()
        """
        schedule = self._team.session.schedule
        if schedule.loss_driven and math.isnan(float(loss)):
            raise ValueError(
                f"[Mixer] the topology {schedule.name!r} follows the loss, got none; call mix(loss)"
            )
        with self._team.within("mix()"):
            self._team.engine.step([_core.Hyper()], skip=True, loss=float(loss))

    def mean(
        self, tensors: torch.Tensor | Iterable[torch.Tensor]
    ) -> torch.Tensor | list[torch.Tensor]:
        """The mean over all workers of one tensor, or of each in a list, as in ``Gossip.mean``.

        Example::

            values = torch.ones(3)
            mean = gossamer.Mixer(values).mean(values)
        """
        return means.mean(self._team, tensors)

    def stats(self) -> dict[str, Any]:
        """Of this worker so far: ``steps`` mixed, and ``edges``: by peer the payload bytes ``sent``
        and ``received``.

        Example::

            mixer = gossamer.Mixer(torch.ones(3))
            mixer.mix()
            print(mixer.stats()["edges"])
        """
        engine = self._team.engine
        edges = {peer: {"sent": s, "received": r} for peer, s, r in engine.edges()}
        return {"steps": engine.steps_done, "edges": edges}

    def close(self) -> None:
        """Ends mixing; neighbours that still mix fail. May be called again."""
        if self._closed:
            return
        self._closed = True
        self._at_exit.cancel()
        self._team.close()
        transport = self._team.session.transport
        if transport is not None:
            transport.stop()


def _named(tensors: list[torch.Tensor]) -> list[parameters.Named]:
    return [(f"tensor {i}", tensor, 0) for i, tensor in enumerate(tensors)]


def _about(named: list[parameters.Named], settings: Settings, broadcast: bool) -> list[str]:
    """What has to be the same on all ranks, a line each; raises for what cannot be mixed."""
    settings.check()
    if not named:
        raise ValueError("[Mixer] tensors must be at least one, got none; give what to mix")
    for i, (_, tensor, _) in enumerate(named):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(
                f"[Mixer] tensors must be tensors, got {type(tensor).__name__} at place {i}; "
                "wrap numbers in torch.tensor(...)"
            )
    shards.refuse([tensor for _, tensor, _ in named], "Mixer")
    parameters.check_overlaps(named)
    lines = [f"a Mixer with broadcast {broadcast}", *arguments.describe(settings)]
    for name, tensor, _ in named:
        lines += plain.describe(name, tensor)
    return lines
