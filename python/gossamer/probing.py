"""probe(): how fast a job's links are and how long its workers compute, for `gossamer plan`."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from gossamer import _core
from gossamer.base import files
from gossamer.session import session
from gossamer.tensors import devices, optimizers, wrappers
from gossamer.tensors.fused import rule_for
from gossamer.workers.cards import exchange
from gossamer.workers.edges import make_transport
from gossamer.workers.world import World, find_seat, meet

Times = list[tuple[float, float, float]]

_WARM_UP = 3
_LEAST_STEPS = 8
_MOST_STEPS = 200
_ALL_REDUCES = 4


@dataclass(frozen=True)
class Probe:
    """What ``probe`` has measured, as the texts of cluster.toml and workload.toml.

    Example::

        found = gossamer.probe(lambda: train_step(x, y), model, optimizer)
        Path("cluster.toml").write_text(found.cluster)
    """

    cluster: str
    workload: str


def probe(
    step: Callable[[], object],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    out: str | os.PathLike[str] | None = None,
    group: torch.distributed.ProcessGroup | None = None,
    seconds: float = 10.0,
    bucket_bytes: int | None = None,
    transport: str = "auto",
    tls: bool = False,
    timeout_s: float = 300.0,
) -> Probe:
    """Measures the links between the workers, and their compute times, in less than a minute.

    Args:
        step: one step of the training loop: forward, backward and ``optimizer.step()``. It is
            called for about ``seconds`` on all workers at once; afterwards parameters, buffers,
            the optimizer and torch's random numbers are as before. What else it does, such as
            taking a batch from a loader, stays done.
        seconds: each transfer that measures a link takes about a tenth of it, at most 1 s.
        model: plain, or in DistributedDataParallel, whose all-reduce is left out.
        optimizer: over the model's parameters, before a Gossip is made of it.
        out: folder for cluster.toml and workload.toml, which rank 0 writes.
        group, transport, tls, timeout_s, bucket_bytes: as in Gossip.

    Returns the same on every rank. Collective. Raises ValueError for a ``step`` that gives no
    gradient or does not step, IoError where rank 0 cannot write, TransportError for a rank that
    does not come or leaves.

    Example::

        found = gossamer.probe(lambda: train_step(x, y), model, optimizer, out="probed")
        print(found.cluster)
    """
    plain, ddp = wrappers.unwrapped(model)
    seat = find_seat(group)
    own = optimizers.unwrapped(optimizer)
    problem = _problem(own)
    total = sum(p.numel() * p.element_size() for p in plain.parameters() if p.requires_grad)
    world = meet(seat, f"probe of {total} bytes", problem, timeout_s)
    timer = _Timer(step, plain, own, ddp)
    channel = make_transport(
        world, [r for r in range(world.size) if r != world.rank], timeout_s, transport, tls=tls
    )
    rule = rule_for(own)
    try:
        cluster, workload = _core.probe(
            channel,
            list(world.workers_per_host),
            lambda mean: timer.run(mean, seconds),
            lambda elements: _allreduce_s(elements, world),
            buckets=_buckets(total, world, bucket_bytes),
            optimizer=rule.name if rule else "adamw",
            seconds=seconds,
            timeout_s=timeout_s,
            device=lambda: _device_link(plain),
        )
    finally:
        if channel is not None:
            channel.stop()
    found = Probe(cluster, workload)
    if out is not None:
        _write(world, found, Path(out), timeout_s)
    return found


def _problem(optimizer: torch.optim.Optimizer) -> Exception | None:
    if hasattr(optimizer, "_gossip"):
        return ValueError(
            "[probe] the optimizer already belongs to a Gossip, whose steps mix; call probe() "
            "before Gossip is made"
        )
    return None


def _buckets(total_bytes: int, world: World, asked: int | None) -> list[int]:
    size = session.suitable_bucket_bytes(total_bytes, len(world.workers_per_host), asked)
    elements, count = total_bytes // 4, max(1, -(-total_bytes // size))
    return [elements // count + (k < elements % count) for k in range(count)]


def _device_link(model: nn.Module) -> tuple[float, float]:
    """Bytes per second, the slower way, and seconds of latency."""
    device = devices.device_of(model)
    if device is None:
        return math.inf, 0.0
    out, back, latency_s = _core.measure_device_link(str(device))
    return min(out, back), latency_s


def _allreduce_s(elements: int, world: World) -> float:
    """The quickest of some: something else may hold one up, but nothing makes it faster."""
    tensor = torch.zeros(elements, dtype=torch.float32)
    taken = []
    for _ in range(_ALL_REDUCES):
        torch.distributed.barrier(group=world.group)
        begin = time.perf_counter()
        torch.distributed.all_reduce(tensor, group=world.group)
        taken.append(time.perf_counter() - begin)
    return min(taken[1:])


def _write(world: World, found: Probe, folder: Path, timeout_s: float) -> None:
    problem: Exception | None = None
    if world.rank == 0:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files.write_whole(folder / "cluster.toml", found.cluster)
            files.write_whole(folder / "workload.toml", found.workload)
        except OSError as error:
            problem = _core.IoError(
                f"[probe] cannot write to the folder {folder}, got {error.strerror or error}; give "
                "another one as out="
            )
    exchange(world, "probe", {}, problem, timeout_s)


class _Timer:
    """Calls the user's step and looks at the clock within it."""

    def __init__(
        self,
        step: Callable[[], object],
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        ddp: nn.parallel.DistributedDataParallel | None,
    ) -> None:
        self._step = step
        self._model = model
        self._optimizer = optimizer
        self._ddp = ddp
        self._device = devices.device_of(model)
        self._first_gradient = 0.0
        self._update = [0.0, 0.0]

    def run(self, mean: Callable[[float], float], seconds: float) -> Times:
        """The times of steps that all workers do at once, about ``seconds`` in all."""
        with self._hooked(), _as_before(self._model, self._optimizer, self._device):
            for _ in range(_WARM_UP):
                self._timed()
            rough_s = mean(sum(self._timed()))
            count = min(max(int(seconds / rough_s), _LEAST_STEPS), _MOST_STEPS)
            mean(0.0)
            return [self._timed() for _ in range(count)]

    def _timed(self) -> tuple[float, float, float]:
        self._first_gradient, self._update = 0.0, [0.0, 0.0]
        begin = self._now()
        with self._ddp.no_sync() if self._ddp is not None else contextlib.nullcontext():
            self._step()
        end = self._now()
        for what, moment in (
            ("gives no gradient to the model", self._first_gradient),
            ("does not call optimizer.step()", self._update[1]),
        ):
            if moment == 0.0:
                raise ValueError(
                    f"[probe] the step {what}; give a function that does forward, backward and "
                    "optimizer.step()"
                )
        update_s = self._update[1] - self._update[0]
        forward_s = self._first_gradient - begin
        return forward_s, end - begin - forward_s - update_s, update_s

    def _now(self) -> float:
        if self._device is not None:
            torch.accelerator.synchronize(self._device)
        return time.perf_counter()

    @contextlib.contextmanager
    def _hooked(self) -> Iterator[None]:
        def gradient(_: torch.Tensor) -> None:
            if self._first_gradient == 0.0:
                self._first_gradient = self._now()

        def before(*_: object) -> None:
            self._update[0] = self._now()

        def after(*_: object) -> None:
            self._update[1] = self._now()

        hooks = [
            parameter.register_post_accumulate_grad_hook(gradient)
            for parameter in self._model.parameters()
            if parameter.requires_grad
        ]
        hooks += [
            self._optimizer.register_step_pre_hook(before),
            self._optimizer.register_step_post_hook(after),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


@contextlib.contextmanager
def _as_before(
    model: nn.Module, optimizer: torch.optim.Optimizer, device: torch.device | None
) -> Iterator[None]:
    """Whatever is trained inside is as before afterwards."""
    tensors = [*model.parameters(), *model.buffers()]
    values = [tensor.detach().clone() for tensor in tensors]
    gradients = [p.grad.detach().clone() if p.grad is not None else None for p in tensors]
    state = copy.deepcopy(optimizer.state_dict())
    on_cuda = [device.index or 0] if device is not None and device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices=on_cuda):
            yield
    finally:
        with torch.no_grad():
            for tensor, value, gradient in zip(tensors, values, gradients, strict=True):
                tensor.copy_(value)
                tensor.grad = gradient
        optimizer.load_state_dict(state)
