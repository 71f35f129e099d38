"""Scenarios of update="backward", each beside the same with update="step"."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from gossip_scenarios_basic import gossiping, numbers
from gossip_support import batch, mlp
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, AdamW
from torch.utils.checkpoint import checkpoint

from gossamer import Gossip

MAKERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "momentum": lambda p: SGD(p, lr=0.05, momentum=0.9),
    "adamw": lambda p: AdamW(p, lr=0.01, weight_decay=0.1),
}
PATTERNS = {"cwa": "ring", "atc": "complete"}  # with a topology each
STEPS = 6


class Plain(nn.Module):
    """Some layers, each a few buckets of 256 bytes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embed = nn.Parameter(torch.randn(12, 9))
        self.first = nn.Linear(5, 9)
        self.second = nn.Linear(9, 9)
        self.last = nn.Linear(9, 12)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.second(torch.tanh(self.first(x))))

    def forward(self, x: torch.Tensor, step: int) -> torch.Tensor:
        return self.last(self.features(x)) @ self.embed


class Tied(Plain):
    """The embedding is the output layer as well, and a layer is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.last.weight = self.embed

    def forward(self, x: torch.Tensor, step: int) -> torch.Tensor:
        y = self.second(self.features(x) + self.embed[:4])
        return torch.cat([functional.linear(y, self.embed), y], 1)


class Unused(Plain):
    """The last layer has a gradient in every second step only, on some ranks."""

    def forward(self, x: torch.Tensor, step: int) -> torch.Tensor:
        y = self.features(x)
        return self.last(y) if step % 2 else y @ self.embed.T


class Frozen(Plain):
    """A frozen layer in the middle, which gradients pass through, and that thaws."""

    def forward(self, x: torch.Tensor, step: int) -> torch.Tensor:
        self.second.requires_grad_(step >= STEPS // 2)
        return super().forward(x, step)


class Checkpointed(Plain):
    """The middle is computed again in the backward."""

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(super().features, x, use_reentrant=False)


MODELS = {m.__name__.lower(): m for m in (Plain, Tied, Unused, Frozen, Checkpointed)}


def run(
    model: nn.Module, make: Callable[[Any], torch.optim.Optimizer], rank: int, **options: Any
) -> tuple[nn.Module, list[int]]:
    """The model after some steps, and by step how many buckets the backward stepped."""
    optimizer = make(model.parameters())
    early = []
    topology = PATTERNS[options["pattern"]]
    with gossiping(model, optimizer, topology=topology, bucket_bytes=256, **options) as gossip:
        for step in range(STEPS):
            optimizer.zero_grad()
            optimizer.param_groups[0]["lr"] *= 0.9
            model(batch(step, rank), step).square().mean().backward()
            optimizer.step()
            early.append(gossip._run.team.engine.early_buckets)
    return model, early


def backward_and_step(rank: int, size: int) -> Any:
    """By case: whether both ways end with the same bits, and the early buckets by step."""
    found = {}
    for name, make_model in MODELS.items():
        for pattern in PATTERNS:
            for optimizer, make in MAKERS.items():
                one, early = run(make_model(), make, rank, update="backward", pattern=pattern)
                other, none = run(make_model(), make, rank, update="step", pattern=pattern)
                assert none == [0] * STEPS
                found[f"{name} {pattern} {optimizer}"] = {
                    "same": numbers(one) == numbers(other),
                    "early": early,
                }
    return found


def consensus_in_between(rank: int, size: int) -> Any:
    """averaged() and values that were loaded between steps, both ways; and its refusal."""
    ends, refused = [], ""
    for update in ("backward", "step"):
        model = mlp()
        optimizer = AdamW(model.parameters(), lr=0.01)
        with gossiping(model, optimizer, update=update, bucket_bytes=256) as gossip:
            for step in range(STEPS):
                if step == 2:
                    with gossip.averaged():
                        assert all(p.isfinite().all() for p in model.parameters())
                if step == 4:
                    state = {k: v * 0.5 for k, v in model.state_dict().items()}
                    model.load_state_dict(state)
                optimizer.zero_grad()
                model(batch(step, rank)).square().mean().backward()
                if step == 3 and update == "backward":
                    try:
                        gossip.disagreement()
                    except ValueError as error:
                        refused = str(error)
                optimizer.step()
            ends.append(numbers(model))
    return {"same": ends[0] == ends[1], "refused": refused}


def backward_and_ddp(rank: int, size: int) -> Any:
    """The message that both do not fit."""
    model = DistributedDataParallel(mlp())
    try:
        Gossip(model, SGD(model.parameters(), lr=0.1), update="backward")
    except ValueError as error:
        return str(error)
    return ""


def backward_not_finite(rank: int, size: int) -> Any:
    """Rank 1 has a gradient that is not finite in step 2: how its step ends, how the others' do."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    gossip = Gossip(
        model, optimizer, update="backward", bucket_bytes=256, topology="complete", timeout_s=5
    )
    said = ""
    for step in range(3):
        optimizer.zero_grad()
        x = batch(step, rank)
        if rank == 1 and step == 1:
            x[0, 0] = float("nan")
        model(x).square().mean().backward()
        try:
            optimizer.step()
        except RuntimeError as error:
            said = f"{type(error).__name__}: {error}"
            break
    gossip.close()
    return said


def averaged_by_others(rank: int, size: int) -> Any:
    """By who averages the gradients: the error when a peer has some that are not finite."""
    alone = [dist.new_group([member]) for member in range(size)][rank]
    said = {}
    for who in ("ddp", "script"):
        inner = mlp()
        model = (
            DistributedDataParallel(inner, gradient_as_bucket_view=True) if who == "ddp" else inner
        )
        optimizer = SGD(model.parameters(), lr=0.1)
        with Gossip(model, optimizer, group=alone):
            x = batch(0, rank)
            if rank == 1:
                x[0, 0] = float("nan")
            model(x).square().mean().backward()
            if who == "script":
                for p in model.parameters():
                    dist.all_reduce(p.grad)
            try:
                optimizer.step()
            except RuntimeError as error:
                said[who] = str(error)
    return said


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function
    for function in (
        backward_and_step,
        consensus_in_between,
        backward_and_ddp,
        averaged_by_others,
        backward_not_finite,
    )
}
