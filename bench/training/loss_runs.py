"""What losses.py trains: models, workers, contenders, and how one rank of a run goes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import text_ddp
import torch
import torch.distributed as dist
from measures import disagreement, trouble, validation_loss, workers_are_equal
from methods import Entry, Job, ddp, gossamer
from models import Transformer, loss_of
from sharded import gossamer_hsdp, hsdp
from text_data import load, windows
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR

Tensors = Sequence[torch.Tensor]

LENGTH = 64  # of a window, in bytes
ONE = (1.0,)
THREE = (1.0, 2.0, 4.0)
AER = "alternating_exponential_ring"

CONTENDERS: Mapping[str, Entry] = {
    "ddp": ddp(),
    "allreduce": gossamer("complete", pattern="allreduce"),
    "allreduce int8": gossamer("complete", pattern="allreduce", codec="int8"),
    "gossip with z": gossamer(AER, mix_state=("z",)),
    "gossip without z": gossamer(AER, mix_state=()),
    "gradients with z": gossamer("exponential", pattern="gradient_gossip", mix_state=("z",)),
    "hsdp": hsdp(),
    "hsdp allreduce": gossamer_hsdp("complete", pattern="allreduce", mean_error=0),
    "hsdp allreduce int8": gossamer_hsdp(
        "complete", pattern="allreduce", codec="int8", mean_error=0
    ),
    "hsdp gradients int8": gossamer_hsdp(
        "ring", pattern="gradient_gossip", codec="int8", mean_error=0
    ),
    "hsdp cwa int8": gossamer_hsdp("ring", pattern="cwa", codec="int8", mean_error=0),
}


def _text_layers(model: Any) -> Sequence[nn.Module]:
    return tuple(model.layers.layers)


def _large_layers(model: Any) -> Sequence[nn.Module]:
    return tuple(model.blocks)


def adamw(tensors: Tensors, lr: float, steps: int) -> Optimizer:
    return torch.optim.AdamW(tensors, lr=lr, betas=(0.9, 0.98))


def schedule_free(tensors: Tensors, lr: float, steps: int) -> Optimizer:
    from schedulefree import AdamWScheduleFree

    optimizer = AdamWScheduleFree(tensors, lr=lr, betas=(0.9, 0.98), warmup_steps=steps // 10)
    optimizer.train()
    return optimizer


@dataclass(frozen=True)
class Losses:
    """A comparison. `rates`: by contender, times `lr`. The first contender is the yardstick."""

    name: str
    hosts: int
    ranks: int  # of a host, which share a model where they shard it
    rates: Mapping[str, Sequence[float]]
    model: Callable[[], nn.Module]
    layers: Callable[[nn.Module], Sequence[nn.Module]]
    lr: float
    batch: int  # windows per rank and step
    steps: int = 300
    validated: int = 1700  # windows
    optimizer: Callable[[Tensors, float, int], Optimizer] = adamw
    has_schedule: bool = True

    def short(self) -> "Losses":
        """A few steps that learn something, at one rate each."""
        rates = {name: tuple(each)[:1] for name, each in self.rates.items()}
        return replace(self, batch=4, steps=6, validated=32, rates=rates)


TEXT = partial(text_ddp.Model, LENGTH)
LARGE = partial(Transformer, width=192, layers=5, heads=4, context=LENGTH)
SETTINGS = (
    Losses(
        *("text", 4, 1),
        {"ddp": ONE, "allreduce": ONE, "allreduce int8": ONE},
        *(TEXT, _text_layers),
        lr=4e-3,
        batch=16,
    ),
    Losses(
        *("text schedule-free", 4, 1),
        {
            "ddp": THREE,
            "gradients with z": (2.0, 3.0),
            "gossip with z": THREE,
            "gossip without z": THREE,
        },
        *(TEXT, _text_layers),
        lr=1.6e-2,
        batch=16,
        optimizer=schedule_free,
        has_schedule=False,
    ),
    Losses(
        *("text sharded", 2, 2),
        {"hsdp": ONE, "hsdp allreduce": ONE, "hsdp allreduce int8": ONE},
        *(TEXT, _text_layers),
        lr=4e-3,
        batch=16,
    ),
    Losses(
        *("large sharded", 2, 2),
        {
            "hsdp": THREE,
            "hsdp allreduce int8": ONE,
            "hsdp gradients int8": THREE,
            "hsdp cwa int8": THREE,
        },
        *(LARGE, _large_layers),
        lr=1e-3,
        batch=4,
    ),
)


def train(setting: Losses, contender: str, rate: float, seed: int, place: str | None) -> Any:
    """What all ranks together find; every one of them calls it. Parameters and batches are the same
    for all contenders."""
    rank, size = dist.get_rank(), dist.get_world_size()
    text, held_back = load(place)
    # As many windows for each rank: those who share a model go forward together.
    windows_each = min(setting.validated, (len(held_back) - 1) // LENGTH) // size
    held_back = held_back[: windows_each * size * LENGTH + 1]
    torch.manual_seed(seed)
    model = setting.model()
    own = torch.Generator().manual_seed(1000 * seed + rank)
    losses: list[float] = []

    def loss(wrapped: nn.Module) -> torch.Tensor:
        found = loss_of(wrapped, windows(text, setting.batch, LENGTH, own))
        losses.append(found.item())
        return found

    lr = rate * setting.lr
    made: list[Optimizer] = []

    def optimizer(tensors: Tensors) -> Optimizer:
        made.append(setting.optimizer(tensors, lr, setting.steps))
        return made[0]

    def one_cycle(optimizer: Optimizer) -> LRScheduler:
        return OneCycleLR(optimizer, lr, setting.steps, cycle_momentum=False)

    schedule = one_cycle if setting.has_schedule else None
    job = Job(model, loss, optimizer, schedule, setting.layers(model), clip_norm=1.0)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    training = CONTENDERS[contender].make(job)
    begin = validation_loss(model, held_back, LENGTH)
    for _ in range(setting.steps):
        training.step()
    evaluate = getattr(made[0], "eval", None)
    if evaluate is not None:
        evaluate()  # a schedule-free optimizer trains other parameters than it answers with
    with training.averaged():
        end = validation_loss(model, held_back, LENGTH)
    is_equal = workers_are_equal(model)
    said = trouble(losses, begin, end)
    if not said and is_equal != training.is_synchronous:
        said = f"workers have {'equal' if is_equal else 'other'} bits"
    found = {
        "loss": end,
        "begin": begin,
        "parameters": parameters,
        "windows": windows_each * size,
        "disagreement": disagreement(model),
    }
    complaints: list[Any] = [None] * size
    dist.all_gather_object(complaints, said)
    training.close()
    return {**found, "words": "; ".join(sorted(set(filter(None, complaints))))}
