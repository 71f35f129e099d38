"""Who is compared: each makes a model that trains, and a function that does one step of it."""

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass

import torch
from models import MODELS, loss_of
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LR = 3e-4
Step = Callable[[tuple[torch.Tensor, torch.Tensor]], float]


@dataclass
class Contender:
    step: Step
    model: nn.Module
    close: Callable[[], None]


Make = Callable[[str, str], Contender]  # of a model and an optimizer, by name
OPTIMIZERS = ("adamw", "rmsprop", "muon")


def _adamw(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=LR, weight_decay=0.01, fused=True)


def _optimizers(model: nn.Module, name: str) -> list[torch.optim.Optimizer]:
    """AdamW has a fused pass in Gossamer; RMSprop and Muon take their own step there."""
    parameters = list(model.parameters())
    if name == "adamw":
        return [_adamw(parameters)]
    if name == "rmsprop":
        return [torch.optim.RMSprop(parameters, lr=0.1 * LR)]
    matrices = [p for n, p in model.named_parameters() if "blocks" in n and p.ndim == 2]
    taken = {id(p) for p in matrices}
    # One iteration of its five: what a step costs beside them is what is compared.
    return [
        torch.optim.Muon(matrices, lr=10 * LR, weight_decay=0.01, ns_steps=1),
        _adamw([p for p in parameters if id(p) not in taken]),
    ]


def _plain_step(model: nn.Module, optimizers: list[torch.optim.Optimizer]) -> Step:
    def step(batch: tuple[torch.Tensor, torch.Tensor]) -> float:
        model.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss.item()

    return step


def _new_model(kind: str) -> nn.Module:
    torch.manual_seed(0)
    return MODELS[kind][0]()


def ddp(kind: str, optimizer: str) -> Contender:
    model = DistributedDataParallel(_new_model(kind))
    step = _plain_step(model, _optimizers(model.module, optimizer))
    return Contender(step, model.module, lambda: None)


def alone(kind: str, optimizer: str) -> Contender:
    """No communication at all: what the step costs at least."""
    model = _new_model(kind)
    return Contender(_plain_step(model, _optimizers(model, optimizer)), model, lambda: None)


def gossamer(topology: str, pattern: str = "cwa", codec: str = "fp32", lost: str = "error") -> Make:
    def make(kind: str, optimizer: str) -> Contender:
        from gossamer import Gossip

        model = _new_model(kind)
        optimizers = _optimizers(model, optimizer)
        options = {"topology": topology, "pattern": pattern, "codec": codec, "lost": lost}
        gossips = [Gossip(model, one, **options) for one in optimizers]

        def close() -> None:
            for gossip in gossips:
                gossip.close()

        return Contender(_plain_step(model, optimizers), model, close)

    return make


def decent_dp(topology: str) -> Make:
    def make(kind: str, optimizer: str) -> Contender:
        if optimizer != "adamw":
            raise ValueError(f"decent-dp is compared with adamw only, not with {optimizer}")
        os.environ.setdefault("LOGURU_LEVEL", "ERROR")
        package = importlib.import_module("decent_dp.ddp")

        def adamw(parameters: list[tuple[str, nn.Parameter]]) -> torch.optim.Optimizer:
            return _adamw([parameter for _, parameter in parameters])

        model = package.DecentralizedDataParallel(_new_model(kind), adamw, topology=topology)

        def step(batch: tuple[torch.Tensor, torch.Tensor]) -> float:
            loss = loss_of(model, batch)
            model.zero_grad()
            loss.backward()
            return loss.item()

        return Contender(step, model, lambda: None)

    return make


CONTENDERS: dict[str, Make] = {
    "alone": alone,
    "ddp": ddp,
    "gossamer": gossamer("alternating_exponential_ring"),
    "gossamer bf16": gossamer("alternating_exponential_ring", codec="bf16"),
    "gossamer int8": gossamer("alternating_exponential_ring", codec="int8"),
    "gossamer ring": gossamer("ring"),
    "gossamer ring go_on": gossamer("ring", lost="go_on"),
    "gossamer complete": gossamer("complete"),
    "gossamer allreduce": gossamer("complete", "allreduce"),
    "gossamer allreduce go_on": gossamer("complete", "allreduce", lost="go_on"),
    "decent-dp ring": decent_dp("ring"),
    "decent-dp complete": decent_dp("complete"),
}
