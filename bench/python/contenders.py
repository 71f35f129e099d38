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


def _adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.01, fused=True)


def _plain_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> Step:
    def step(batch: tuple[torch.Tensor, torch.Tensor]) -> float:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def _new_model(kind: str) -> nn.Module:
    torch.manual_seed(0)
    return MODELS[kind][0]()


def ddp(kind: str) -> Contender:
    model = DistributedDataParallel(_new_model(kind))
    return Contender(_plain_step(model, _adamw(model)), model.module, lambda: None)


def alone(kind: str) -> Contender:
    """No communication at all: what the step costs at least."""
    model = _new_model(kind)
    return Contender(_plain_step(model, _adamw(model)), model, lambda: None)


def gossamer(topology: str, pattern: str = "cwa") -> Callable[[str], Contender]:
    def make(kind: str) -> Contender:
        from gossamer import Gossip

        model = _new_model(kind)
        optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.01)
        gossip = Gossip(model, optimizer, topology=topology, pattern=pattern)
        return Contender(_plain_step(model, optimizer), model, gossip.close)

    return make


def decent_dp(topology: str) -> Callable[[str], Contender]:
    def make(kind: str) -> Contender:
        os.environ.setdefault("LOGURU_LEVEL", "ERROR")
        package = importlib.import_module("decent_dp.ddp")

        def optimizer(parameters: list[tuple[str, torch.Tensor]]) -> torch.optim.Optimizer:
            tensors = [tensor for _, tensor in parameters]
            return torch.optim.AdamW(tensors, lr=LR, weight_decay=0.01, fused=True)

        model = package.DecentralizedDataParallel(_new_model(kind), optimizer, topology=topology)

        def step(batch: tuple[torch.Tensor, torch.Tensor]) -> float:
            loss = loss_of(model, batch)
            model.zero_grad()
            loss.backward()
            return loss.item()

        return Contender(step, model, lambda: None)

    return make


CONTENDERS: dict[str, Callable[[str], Contender]] = {
    "alone": alone,
    "ddp": ddp,
    "gossamer ring": gossamer("ring"),
    "gossamer complete": gossamer("complete"),
    "gossamer allreduce": gossamer("complete", "allreduce"),
    "decent-dp ring": decent_dp("ring"),
    "decent-dp complete": decent_dp("complete"),
}
