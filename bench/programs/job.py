"""What a program is given: its place among the workers, its contender, its learning rate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import gossamer

CONTENDERS: dict[str, dict[str, Any] | None] = {
    "ddp": None,
    "cwa": {},
    "gradient_gossip int8": {"pattern": "gradient_gossip", "codec": "int8"},
    "allreduce int8": {"pattern": "allreduce", "codec": "int8"},
    "allreduce bf16": {"pattern": "allreduce", "codec": "bf16"},
}
"""Arguments of gossamer.Gossip; None: DistributedDataParallel, or what the program does itself."""


@dataclass
class Job:
    """``rate`` multiplies the learning rates that the program has for DDP."""

    contender: str
    rate: float
    seed: int
    rank: int
    size: int
    steps: int | None = None  # instead of the program's own
    gossips: list[gossamer.Gossip] = field(default_factory=list)

    @property
    def is_ddp(self) -> bool:
        return CONTENDERS[self.contender] is None

    @property
    def options(self) -> dict[str, Any]:
        return CONTENDERS[self.contender] or {}

    def gossip(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> gossamer.Gossip:
        made = gossamer.Gossip(model, optimizer, **self.options)
        self.gossips.append(made)
        return made

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """What stands for ``gossip.averaged()`` of each Gossip; nothing under DDP."""
        with ExitStack() as stack:
            for each in self.gossips:
                stack.enter_context(each.averaged())
            yield

    def step_numbers(self, own: int) -> range:
        return range(self.steps or own)

    def own_batches(self) -> torch.Generator:
        """For what this worker draws."""
        return torch.Generator().manual_seed(1000 * self.seed + self.rank)

    def test_batches(self) -> torch.Generator:
        """For what this worker draws to test with, the same in all runs."""
        return torch.Generator().manual_seed(10**6 + self.rank)

    def mean(self, value: torch.Tensor | float) -> float:
        """Over all workers."""
        total = torch.as_tensor(value, dtype=torch.float64).detach().clone()
        dist.all_reduce(total)
        return float(total) / self.size


def changed_lines(program: Path) -> dict[str, int]:
    """Lines that only one of both has: they end in ``# ddp`` or ``# gossip``; ``# changed``: a line
    that is another one in each."""
    count = Counter(re.findall(r"# (ddp|gossip|changed)$", program.read_text(), re.MULTILINE))
    return {"removed": count["ddp"] + count["changed"], "added": count["gossip"] + count["changed"]}
