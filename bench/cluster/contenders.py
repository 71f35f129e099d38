"""Who is compared on the emulated cluster: a model, a step, and what must hold afterwards."""

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass

import torch
from sleeping_model import SleepingModel
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LR = 1e-2
Step = Callable[[], None]


@dataclass
class Contender:
    """One that trains. `mean_error`: how far the mean over the workers may be from the exact one,
    relative to it, and, where `is_synchronous`, a worker from the others."""

    step: Step
    close: Callable[[], None]
    is_synchronous: bool = False
    mean_error: float = 1e-5


Make = Callable[[SleepingModel], Contender]


@dataclass(frozen=True)
class Mixing:
    """What of Gossamer's plans and matrices a contender uses. `recursion_error`: how far parameters
    may be from x ← W x - lr g, relative to the mean; None: that is not what it computes."""

    topology: str
    averages_gradients: bool = False
    bytes_per_element: float = 4.0
    recursion_error: float | None = 1e-5


@dataclass(frozen=True)
class Entry:
    """A row of the table. Without `mixing` the limit of a step follows from the bytes measured. Who
    `skips_late` is measured by the workers that are not late."""

    make: Make
    mixing: Mixing | None = None
    skips_late: bool = False


def _sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=LR)


def _nothing() -> None:
    pass


def _train(model: nn.Module, optimizer: torch.optim.Optimizer) -> Step:
    x = torch.zeros(1, requires_grad=True)

    def step() -> None:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    return step


def _alone(model: SleepingModel) -> Contender:
    return Contender(_train(model, _sgd(model)), _nothing, mean_error=float("inf"))


def ddp(hook: str = "", bucket_mb: int = 25) -> Entry:
    """PyTorch's, with one of its communication hooks."""

    def make(model: SleepingModel) -> Contender:
        wrapped = DistributedDataParallel(model, bucket_cap_mb=bucket_mb)
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
        step = _train(wrapped, _sgd(model))
        return Contender(step, _nothing, is_synchronous=True, mean_error=1e-2 if hook else 1e-5)

    return Entry(make)


def decent_dp(topology: str, bucket_mb: int = 25) -> Entry:
    """Decent-DP 0.2.3, whose backward steps."""

    def make(model: SleepingModel) -> Contender:
        os.environ.setdefault("LOGURU_LEVEL", "ERROR")
        package = importlib.import_module("decent_dp.ddp")
        heard: list[str] = []
        importlib.import_module("loguru").logger.add(heard.append, format="{message}")
        try:
            wrapped = package.DecentralizedDataParallel(
                model,
                lambda named: torch.optim.SGD([parameter for _, parameter in named], lr=LR),
                topology=topology,
                bucket_size_in_mb=bucket_mb,
            )
        except (ValueError, AssertionError) as error:
            words = heard[-1] if heard else str(error)
            raise ValueError(" ".join(words.split())) from error
        x = torch.zeros(1, requires_grad=True)

        def step() -> None:
            loss = wrapped(x).sum()
            wrapped.zero_grad()
            loss.backward()

        return Contender(step, _nothing)

    return Entry(make)


def gossamer(
    topology: str,
    *,
    mean_error: float = 1e-5,
    recursion_error: float | None = 1e-5,
    bytes_per_element: float = 4.0,
    **keywords: object,
) -> Entry:
    """Ours; `keywords` go to Gossip."""
    averages_gradients = keywords.get("pattern") == "allreduce"

    def make(model: SleepingModel) -> Contender:
        from gossamer import Gossip

        optimizer = _sgd(model)
        gossip = Gossip(model, optimizer, topology=topology, **keywords)
        step = _train(model, optimizer)
        return Contender(step, gossip.close, averages_gradients, mean_error)

    skips_late = keywords.get("late") == "skip"
    error = None if averages_gradients or skips_late else recursion_error
    mixing = Mixing(topology, averages_gradients, bytes_per_element, error)
    return Entry(make, mixing, skips_late)


AER = "alternating_exponential_ring"

CONTENDERS: dict[str, Entry] = {
    "alone": Entry(_alone),
    "ddp": ddp(),
    "ddp 1 MB": ddp(bucket_mb=1),
    "ddp bf16": ddp("bf16"),
    "ddp powersgd": ddp("powersgd"),
    "decent-dp ring": decent_dp("ring"),
    "decent-dp aer": decent_dp("alternating-exp-ring"),
    "decent-dp aer 1 MB": decent_dp("alternating-exp-ring", bucket_mb=1),
    "decent-dp complete": decent_dp("complete"),
    "gossamer aer": gossamer(AER),
    "gossamer aer bf16": gossamer(
        AER, codec="bf16", bytes_per_element=2, mean_error=1e-4, recursion_error=2e-2
    ),
    "gossamer aer int8": gossamer(
        AER, codec="int8", bytes_per_element=260 / 256, mean_error=1e-4, recursion_error=2e-2
    ),
    "gossamer aer 4 MB": gossamer(AER, bucket_bytes=4 << 20),
    "gossamer aer c10d": gossamer(AER, transport="c10d"),
    "gossamer ring": gossamer("ring"),
    "gossamer one-peer-ring": gossamer("one_peer_ring"),
    "gossamer one-peer-exp": gossamer("one_peer_exponential"),
    "gossamer complete": gossamer("complete"),
    "gossamer ring skip": gossamer("ring", late="skip", mean_error=float("inf")),
    "gossamer one-peer skip": gossamer("one_peer_ring", late="skip", mean_error=float("inf")),
    "gossamer allreduce": gossamer("complete", pattern="allreduce"),
}
