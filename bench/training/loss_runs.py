"""What losses.py trains: models, workers, contenders, and how one rank of a run goes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import text_ddp
import torch
import torch.distributed as dist
from measures import disagreement, validation_loss, workers_are_equal
from methods import Entry, Job, ddp, gossamer
from models import Transformer, loss_of
from sharded import gossamer_hsdp, hsdp
from text_data import load, windows
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR

LENGTH = 64  # of a window, in bytes
ONE = (1.0,)
THREE = (1.0, 2.0, 4.0)

CONTENDERS: Mapping[str, Entry] = {
    "ddp": ddp(),
    "allreduce": gossamer("complete", pattern="allreduce"),
    "allreduce int8": gossamer("complete", pattern="allreduce", codec="int8"),
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

    def short(self) -> "Losses":
        """A few steps that learn something, at one rate."""
        return replace(self, batch=4, steps=6, validated=32, rates=dict.fromkeys(self.rates, ONE))


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


def _complaint(losses: Sequence[float], begin: float, is_equal: bool, is_synchronous: bool) -> str:
    if not all(map(math.isfinite, losses)):
        return "a loss is not finite"
    if losses[-1] >= begin:
        return f"nothing was learned: the loss went from {begin:g} to {losses[-1]:g}"
    if is_equal != is_synchronous:
        return f"workers have {'equal' if is_equal else 'other'} bits"
    return ""


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
    job = Job(
        model,
        loss,
        lambda tensors: torch.optim.AdamW(tensors, lr=lr, betas=(0.9, 0.98)),
        lambda optimizer: OneCycleLR(optimizer, lr, setting.steps, cycle_momentum=False),
        setting.layers(model),
        clip_norm=1.0,
    )
    parameters = sum(parameter.numel() for parameter in model.parameters())
    training = CONTENDERS[contender].make(job)
    begin = validation_loss(model, held_back, LENGTH)
    for _ in range(setting.steps):
        training.step()
    with training.averaged():
        end = validation_loss(model, held_back, LENGTH)
    is_equal = workers_are_equal(model)
    said = _complaint([*losses, end], begin, is_equal, training.is_synchronous)
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
