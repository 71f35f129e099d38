"""Ways to train a job on many workers, each from the package that offers it."""

import importlib
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

if TYPE_CHECKING:
    from gossamer import Schedule

Step = Callable[[], None]
Optimizers: TypeAlias = Optimizer | list[Optimizer]


@dataclass(frozen=True)
class Job:
    """What is trained. `loss` gets the model as the method wrapped it; `schedule`, if there is one,
    steps after every step of the optimizer. A model may have several optimizers, as a list.
    `layers`: what FSDP shards one by one. Gradients are clipped to a norm of `clip_norm`, unless
    that is 0."""

    model: nn.Module
    loss: Callable[[nn.Module], torch.Tensor]
    optimizer: Callable[[Sequence[torch.Tensor]], Optimizers]
    schedule: Callable[[Optimizer], LRScheduler] | None = None
    layers: Sequence[nn.Module] = ()
    clip_norm: float = 0.0


@dataclass
class Contender:
    """One that trains. `averaged`: the job's model with the mean of all workers' parameters, for a
    while. `mean_error`: how far the mean over the workers may be from the exact one, relative to
    it, and, where `is_synchronous`, a worker from the others."""

    step: Step
    close: Callable[[], None]
    is_synchronous: bool = False
    mean_error: float = 1e-5
    averaged: Callable[[], AbstractContextManager[object]] = nullcontext


Make = Callable[[Job], Contender]


@dataclass(frozen=True)
class Mixing:
    """What of Gossamer's plans and matrices a contender uses. `recursion_error`: how far parameters
    may be from x ← W x - lr g, relative to the mean; None: that is not what it computes.
    `link_rates`: by host, for a topology that follows them. `rounds` of it make up a step's; all
    workers average in every `average_every`-th step, unless that is 0."""

    topology: str
    rounds: int = 1
    average_every: int = 0
    averages_gradients: bool = False
    bytes_per_element: float = 4.0
    recursion_error: float | None = 1e-5
    link_rates: tuple[float, ...] = ()

    def schedule(self, workers_per_host: Sequence[int]) -> "Schedule":
        from gossamer import make_schedule

        return make_schedule(
            self.topology,
            list(workers_per_host),
            link_rates=self.link_rates,
            rounds_per_step=self.rounds,
            global_average_every=self.average_every,
        )


@dataclass(frozen=True)
class Entry:
    """A row of the table. Without `mixing` the limit of a step follows from the bytes measured. Who
    `skips_late` is measured by the workers that are not late."""

    make: Make
    mixing: Mixing | None = None
    skips_late: bool = False


def nothing() -> None:
    """Closes what needs no close."""


def train(job: Job, model: nn.Module, optimizer: Optimizers) -> Step:
    """A step of a loop as anybody writes it."""
    optimizers = optimizer if isinstance(optimizer, list) else [optimizer]
    schedules = [job.schedule(each) for each in optimizers] if job.schedule else []

    def step() -> None:
        for each in optimizers:
            each.zero_grad()
        job.loss(model).backward()
        if job.clip_norm:
            nn.utils.clip_grad_norm_(model.parameters(), job.clip_norm)
        for each in optimizers:
            each.step()
        for schedule in schedules:
            schedule.step()

    return step


def optimizer_of(job: Job) -> Optimizers:
    """Over all parameters of the job's model."""
    return job.optimizer(list(job.model.parameters()))


def alone(job: Job) -> Contender:
    """Nobody talks."""
    return Contender(train(job, job.model, optimizer_of(job)), nothing, mean_error=float("inf"))


def ddp(hook: str = "", bucket_mb: float | None = None) -> Entry:
    """PyTorch's, with one of its communication hooks. Who names a size of buckets, be it the
    default's, gets no small first one, whose all-reduce is hidden by the rest of the backward."""

    def make(job: Job) -> Contender:
        wrapped = DistributedDataParallel(job.model, bucket_cap_mb=bucket_mb)
        hooks = "torch.distributed.algorithms.ddp_comm_hooks."
        if hook == "bf16":
            default_hooks = importlib.import_module(hooks + "default_hooks")
            compress = default_hooks.bf16_compress_hook
            # DDP refuses this hook, by its name, without NCCL; Gloo can do what it asks for.
            wrapped.register_comm_hook(None, lambda state, bucket: compress(state, bucket))
        if hook == "powersgd":
            power = importlib.import_module(hooks + "powerSGD_hook")
            state = power.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
            wrapped.register_comm_hook(state, power.powerSGD_hook)
        step = train(job, wrapped, optimizer_of(job))
        return Contender(step, nothing, is_synchronous=True, mean_error=1e-2 if hook else 1e-5)

    return Entry(make)


def decent_dp(topology: str, bucket_mb: float = 25) -> Entry:
    """Decent-DP 0.2.3, whose backward steps."""

    def make(job: Job) -> Contender:
        os.environ.setdefault("LOGURU_LEVEL", "ERROR")
        package = importlib.import_module("decent_dp.ddp")
        heard: list[str] = []
        importlib.import_module("loguru").logger.add(heard.append, format="{message}")
        try:
            wrapped = package.DecentralizedDataParallel(
                job.model,
                lambda named: job.optimizer([parameter for _, parameter in named]),
                job.schedule,
                topology=topology,
                bucket_size_in_mb=bucket_mb,
            )
        except (ValueError, AssertionError) as error:
            words = heard[-1] if heard else str(error)
            raise ValueError(" ".join(words.split())) from error

        def step() -> None:
            loss = job.loss(wrapped)
            wrapped.zero_grad()
            loss.backward()

        @contextmanager
        def averaged():
            wrapped.global_avg()
            yield
            wrapped.revert_global_avg()

        return Contender(step, nothing, averaged=averaged)

    return Entry(make)


def gossamer(
    topology: str,
    *,
    rounds: int = 1,
    average_every: int = 0,
    mean_error: float = 1e-5,
    recursion_error: float | None = 1e-5,
    bytes_per_element: float = 4.0,
    link_rates: tuple[float, ...] = (),
    **keywords: object,
) -> Entry:
    """Ours; `keywords` go to Gossip. With `link_rates`, several `rounds` or averages over all hosts
    have the same number of workers."""
    averages_gradients = keywords.get("pattern") == "allreduce"

    def make(job: Job) -> Contender:
        from gossamer import Gossip

        optimizer = optimizer_of(job)
        local_size = int(os.environ["LOCAL_WORLD_SIZE"])
        each = [local_size] * (dist.get_world_size() // local_size)
        has_own = link_rates or rounds > 1 or average_every > 0
        graph = mixing.schedule(each) if has_own else topology
        gossip = Gossip(job.model, optimizer, topology=graph, **keywords)
        step = train(job, job.model, optimizer)
        return Contender(step, gossip.close, averages_gradients, mean_error, gossip.averaged)

    skips_late = keywords.get("late") == "skip"
    error = None if averages_gradients or skips_late else recursion_error
    mixing = Mixing(
        topology, rounds, average_every, averages_gradients, bytes_per_element, error, link_rates
    )
    return Entry(make, mixing, skips_late)


def named(words: str, mean_error: float = 1e-5) -> Entry:
    """Ours, by the words that the command line takes; the limit follows from the bytes measured."""

    def make(job: Job) -> Contender:
        from gossamer import Gossip, Method

        optimizer = optimizer_of(job)
        gossip = Gossip(job.model, optimizer, topology=Method(words))
        step = train(job, job.model, optimizer)
        return Contender(step, gossip.close, mean_error=mean_error, averaged=gossip.averaged)

    return Entry(make)
