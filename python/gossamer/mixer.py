"""Mixing alone, for methods of one's own."""

from __future__ import annotations

import atexit
import functools
import math
import weakref
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist

from gossamer import _core, means, parameters, plain, setup, shards
from gossamer.fused import Rule
from gossamer.member import Closing, close_if_alive
from gossamer.roll_call import within
from gossamer.world import find_seat, meet


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
        self._settings = setup.Settings.of({**setup.NO_OPTIMIZER, **locals()})
        self._parameters = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        self._rule: Rule | None = None
        self._block = ""
        self._closed = False
        self._engine: _core.Engine
        self._transport: _core.Transport | None
        seat = find_seat(group)
        about, problem = "", None
        try:
            about = self._about(broadcast)
        except Exception as error:
            problem = error
        self._world = meet(seat, about, problem, timeout_s)
        self._schedule = setup.choose_schedule(self)
        self._transport = setup.connect(self)
        self._engine = _core.Engine(
            self._transport,
            self._named(),
            setup.engine_options(self),
            bucket_bytes=setup.bucket_bytes(self),
        )
        with within(self, "Mixer"):
            if broadcast:
                self._engine.start()
            else:
                self._engine.start_at(0)
        self._at_exit = functools.partial(close_if_alive, weakref.ref(self))
        atexit.register(self._at_exit)

    def _named(self) -> list[parameters.Named]:
        return [(f"tensor {i}", tensor, 0) for i, tensor in enumerate(self._parameters)]

    def _about(self, broadcast: bool) -> str:
        """What has to be the same on all ranks, a line each; raises for what cannot be mixed."""
        self._settings.check()
        if not self._parameters:
            raise ValueError("[Mixer] tensors must be at least one, got none; give what to mix")
        for i, tensor in enumerate(self._parameters):
            if not isinstance(tensor, torch.Tensor):
                raise TypeError(
                    f"[Mixer] tensors must be tensors, got {type(tensor).__name__} at place {i}; "
                    "wrap numbers in torch.tensor(...)"
                )
        shards.refuse(self._parameters, "Mixer")
        parameters.check_overlaps(self._named())
        lines = [f"a Mixer with broadcast {broadcast}", *setup.about_settings(self._settings)]
        for name, tensor, _ in self._named():
            lines += plain.describe(name, tensor)
        return "\n".join(lines)

    def mix(self, loss: float | torch.Tensor = math.nan) -> None:
        """x ← W x with W of the next round, over all workers; waits for the neighbours.

        Values may be changed at any time between two calls. ``loss`` is for schedules that follow
        it (``adaptive_average`` of ``make_schedule``). Collective.

        Example::

            mixer = gossamer.Mixer([torch.ones(3), torch.zeros(2, 2)])
            for _ in range(4):
                mixer.mix()
        """
        if self._schedule.loss_driven and math.isnan(float(loss)):
            raise ValueError(
                f"[Mixer] the topology {self._schedule.name!r} follows the loss, got none; call "
                "mix(loss)"
            )
        with within(self, "mix()"):
            self._engine.step([_core.Hyper()], skip=True, loss=float(loss))

    def mean(
        self, tensors: torch.Tensor | Iterable[torch.Tensor]
    ) -> torch.Tensor | list[torch.Tensor]:
        """The mean over all workers of one tensor, or of each in a list, as in ``Gossip.mean``.

        Example::

            values = torch.ones(3)
            mean = gossamer.Mixer(values).mean(values)
        """
        return means.mean(self, tensors)

    def stats(self) -> dict[str, Any]:
        """Of this worker so far: ``steps`` mixed, and ``edges``: by peer the payload bytes ``sent``
        and ``received``.

        Example::

            mixer = gossamer.Mixer(torch.ones(3))
            mixer.mix()
            print(mixer.stats()["edges"])
        """
        edges = {peer: {"sent": s, "received": r} for peer, s, r in self._engine.edges()}
        return {"steps": self._engine.steps_done, "edges": edges}

    def close(self) -> None:
        """Ends mixing; neighbours that still mix fail. May be called again."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        self._engine.close()
        if self._transport is not None:
            self._transport.stop()
