"""All workers in one process with plain torch: what user_actions.py compares with."""

from collections.abc import Callable
from functools import partial
from typing import Any

import conftest  # noqa: F401  the package's place, before the package
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, NAdam, RMSprop

import gossamer

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": partial(SGD, lr=0.05),
    "momentum": partial(SGD, lr=0.02, momentum=0.9, weight_decay=0.01),
    "nesterov": partial(SGD, lr=0.02, momentum=0.8, nesterov=True),
    "adam": partial(Adam, lr=0.01, weight_decay=0.01),
    "adamw": partial(AdamW, lr=0.01),
    "accum_adamw": partial(gossamer.AccumAdamW, lr=0.01, accumulate=2),
    "rmsprop": partial(RMSprop, lr=0.005),
    "nadam": partial(NAdam, lr=0.005),
}


class Net(nn.Module):
    """Four layers in a row; the last one is not in the optimizer at first."""

    def __init__(self, seed: int, dtype: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.a = nn.Linear(5, 6, dtype=dtype)
        self.norm = nn.LayerNorm(6, dtype=dtype)
        self.b = nn.Linear(6, 6, bias=False, dtype=dtype)
        self.c = nn.Linear(6, 3, dtype=dtype)
        self.late = nn.Linear(3, 3, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.late(self.c(torch.tanh(self.b(torch.tanh(self.norm(self.a(x)))))))


def batch_of(seed: int, step: int, rank: int, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7919 * seed + 101 * step + rank)
    return torch.randn(4, 5, generator=generator, dtype=torch.float64).to(dtype)


def make_optimizer(kind: str, model: Net) -> torch.optim.Optimizer:
    names = [name for name, _ in model.named_parameters() if not name.startswith("late")]
    every = dict(model.named_parameters())
    half = len(names) // 2
    groups = [{"params": [every[n] for n in part]} for part in (names[:half], names[half:])]
    return OPTIMIZERS[kind](groups)


class Worker:
    """A model and its optimizer, real or of the reference."""

    def __init__(self, seed: int, kind: str, dtype: torch.dtype) -> None:
        self.model = Net(seed, dtype)
        self.optimizer = make_optimizer(kind, self.model)

    def mixed(self) -> dict[str, nn.Parameter]:
        """What travels: by name, the optimizer's parameters that require a gradient."""
        ours = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        return {
            name: p
            for name, p in self.model.named_parameters()
            if id(p) in ours and p.requires_grad
        }

    def shape(self) -> list[tuple[str, int, int]]:
        """What a Gossip must be made anew for."""
        group_of = {
            id(p): i for i, group in enumerate(self.optimizer.param_groups) for p in group["params"]
        }
        return [(name, id(p), group_of[id(p)]) for name, p in self.mixed().items()]


class Reference:
    """All workers in one process."""

    def __init__(self, workers: list[Worker], weights: torch.Tensor, pattern: str) -> None:
        self.workers, self.weights, self.pattern = workers, weights, pattern
        self.loaded = False
        self._remember()

    def _remember(self) -> None:
        self._known = self.workers[0].shape()
        self._mixed = [worker.mixed() for worker in self.workers]
        self._send()

    def _send(self) -> None:
        self.sent = [
            {name: p.detach().clone() for name, p in mixed.items()} for mixed in self._mixed
        ]

    def _start_anew(self) -> None:
        before = {name: key for name, key, _ in self._known}
        now = [worker.mixed() for worker in self.workers]
        with torch.no_grad():
            for name, p in now[0].items():
                if before.get(name) != id(p):
                    for mixed in now[1:]:
                        mixed[name].copy_(p)
            for name, key in before.items():
                every: list[Any] = [
                    dict(w.model.named_parameters()).get(name) for w in self.workers
                ]
                if every[0] is not None and id(every[0]) == key and not every[0].requires_grad:
                    mean = sum(p.double() for p in every) / len(every)
                    for p in every:
                        p.copy_(mean)
        self._remember()

    def average_gradients(self) -> None:
        for name in self.workers[0].mixed():
            parameters = [dict(w.model.named_parameters())[name] for w in self.workers]
            grads = [p.grad for p in parameters]
            if all(grad is None for grad in grads):
                continue
            rows = self.weights if self.pattern == "gradient_gossip" else None
            found = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
            for i, p in enumerate(parameters):
                row = [1 / len(grads)] * len(grads) if rows is None else rows[i].tolist()
                p.grad = sum(w * g for w, g in zip(row, found, strict=True))

    def step(self) -> None:
        if self.workers[0].shape() != self._known or self.loaded:
            self._start_anew()
            self.loaded = False
        if self.pattern in ("allreduce", "gradient_gossip"):
            self.average_gradients()
        if self.pattern == "gradient_gossip":  # it steps from the mixed parameters
            self._mix()
        for worker in self.workers:
            worker.optimizer.step()
        if self.pattern in ("cwa", "atc"):
            self._mix()
        self._send()

    def _mix(self) -> None:
        with torch.no_grad():
            for name in self._mixed[0]:
                now = [mixed[name] for mixed in self._mixed]
                base = now if self.pattern == "atc" else [sent[name] for sent in self.sent]
                stacked = torch.stack([each.detach().clone() for each in base])
                moves = torch.einsum("ij,j...->i...", self.weights.to(stacked), stacked) - stacked
                for p, move in zip(now, moves, strict=True):
                    p.add_(move)
