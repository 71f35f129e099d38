"""What the workers of the tests of half precision do; half_precision.py takes more steps."""

import copy
from collections.abc import Callable, Iterable
from typing import Any

import torch
from gossip_scenarios_basic import gossiping, numbers
from gossip_scenarios_save import folder
from gossip_support import batch, loss_of, mlp
from torch import nn
from torch.optim import SGD, AdamW, RMSprop

from gossamer import Gossip

NOISE = 0.3
ROWS = 32


class OwnAdamW(AdamW):
    """Steps by itself, because subclasses do."""


class OwnSGD(SGD):
    """Likewise."""


MAKE: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "adamw": lambda m: AdamW(m.parameters(), lr=2e-4),
    "own adamw": lambda m: OwnAdamW(m.parameters(), lr=2e-4),
    "momentum": lambda m: SGD(m.parameters(), lr=2e-3, momentum=0.9),
    "own momentum": lambda m: OwnSGD(m.parameters(), lr=2e-3, momentum=0.9),
}


def teacher() -> nn.Module:
    return mlp(seed=99, inputs=8, hidden=16, outputs=1)


def examples(of: nn.Module, seed: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and what the teacher says of them with noise."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 8, generator=generator)
    with torch.no_grad():
        return x, of(x) + NOISE * torch.randn(rows, 1, generator=generator)


def learner(dtype: torch.dtype) -> nn.Module:
    return mlp(seed=1, inputs=8, hidden=32, outputs=1).to(torch.bfloat16).to(dtype)


def held_back() -> tuple[torch.Tensor, torch.Tensor]:
    return examples(teacher(), 123, 4096)


def gradients_of(model: nn.Module, of: nn.Module, step: int, rank: int) -> None:
    """Those of a batch of its own for each step and rank."""
    x, y = examples(of, 1000 + 4 * step + rank, ROWS)
    model.zero_grad()
    dtype = next(model.parameters()).dtype
    (model(x.to(dtype)).float() - y).square().mean().backward()


@torch.no_grad()
def held_loss(model: nn.Module, held: tuple[torch.Tensor, torch.Tensor]) -> float:
    return float((copy.deepcopy(model).float()(held[0]) - held[1]).square().mean())


def learned(rank: int, name: str, steps: int, every: int = 0) -> dict[str, Any]:
    """Disagreement at the end, and the loss of the mean, in float32 and on data of its own; both
    after each ``every`` steps, too."""
    kind, _, precision = name.rpartition(" ")
    model = learner(getattr(torch, precision))
    optimizer, of, held = MAKE[kind](model), teacher(), held_back()
    with gossiping(model, optimizer, topology="ring") as gossip:

        def look() -> dict[str, float]:
            apart = gossip.disagreement()
            with gossip.averaged():
                return {"loss": held_loss(model, held), "apart": apart}

        points = []
        for step in range(steps):
            gradients_of(model, of, step, rank)
            optimizer.step()
            if every and (step + 1) % every == 0:
                points.append({"step": step + 1, **look()})
        return {**look(), "is_fused": gossip.is_fused, "points": points}


def half_training(rank: int, size: int) -> Any:
    """By optimizer and dtype."""
    names = ("adamw float32", "adamw bfloat16", "adamw float16", "momentum bfloat16")
    return {name: learned(rank, name, 300) for name in names}


def half_training_long(rank: int, size: int) -> Any:
    """The same, with own steps."""
    names = [f"{each} float32" for each in ("adamw", "momentum")]
    names += [f"{each} bfloat16" for each in ("adamw", "own adamw", "momentum", "own momentum")]
    return {name: learned(rank, name, 2000) for name in names}


def half_curves(rank: int, size: int) -> Any:
    """Those of the first optimizer, with what is between."""
    return {name: learned(rank, name, 2000, 25) for name in ("adamw float32", "adamw bfloat16")}


def low_mlp(seed: int = 0) -> nn.Module:
    return mlp(seed).bfloat16()


def masters(gossip: Gossip) -> list[torch.Tensor]:
    """What is mixed, as it is now."""
    run = gossip._run
    return [run.team.engine.home(i).clone() for i in range(len(run.trained.tensors))]


def half_mixing(rank: int, size: int) -> Any:
    """By dtype and start: the disagreement before and after steps that only mix.

    "ulp": the workers' own values differ by a unit in the last place, or not at all. "below": an
    update has moved each by less than that.
    """
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        for start in ("ulp", "below"):
            model = low_mlp().to(dtype)
            optimizer = SGD(model.parameters(), lr=1.0)
            with gossiping(model, optimizer, topology="ring") as gossip:
                for i, p in enumerate(model.parameters()):
                    torch.manual_seed(10 * rank + i)
                    part = torch.randint(0, 2, p.shape) * (2.0**-7 if start == "ulp" else 2.0**-10)
                    if start == "ulp":
                        p.data.mul_(1 + part)
                    p.grad = (p.detach().float() * (part if start == "below" else 0)).to(dtype)
                optimizer.step()
                optimizer.param_groups[0]["lr"] = 0.0
                apart = [gossip.disagreement()]
                for _ in range(6):
                    optimizer.step()
                found[f"{dtype} {start}"] = [*apart, gossip.disagreement()]
    return found


def half_looks(rank: int, size: int) -> Any:
    """By optimizer: whether looks at the mean leave all bits, and whether the mean is equal."""
    found = {}
    for kind in ("adamw", "own adamw"):
        model = low_mlp()
        optimizer = MAKE[kind](model)
        with gossiping(model, optimizer, topology="ring") as gossip:
            train_low(model, optimizer, range(5), rank)
            shown, kept = numbers(model), masters(gossip)
            gossip.disagreement()
            with gossip.averaged():
                mean = numbers(model)
            same = all(map(torch.equal, kept, masters(gossip))) and numbers(model) == shown
            found[kind] = {"same": same, "mean": mean, "masters": [m.tolist() for m in kept]}
    return found


def train_low(
    model: nn.Module, optimizer: torch.optim.Optimizer, steps: Iterable[int], rank: int
) -> None:
    for step in steps:
        optimizer.zero_grad()
        loss_of(model, batch(step, rank).bfloat16()).backward()
        optimizer.step()


LOW = {
    "sgd": lambda m: SGD(m.parameters(), lr=0.01),
    "momentum": lambda m: SGD(m.parameters(), lr=0.01, momentum=0.9),
    "adamw": lambda m: AdamW(m.parameters(), lr=0.001),
    "rmsprop": lambda m: RMSprop(m.parameters(), lr=0.01),
}


def half_resumed(rank: int, size: int) -> Any:
    """By optimizer: parameters, masters and state after nine steps, and after a resume at five."""
    found = {}
    for kind, make in LOW.items():
        ends = []
        for seed in (0, 7):
            model = low_mlp(seed)
            optimizer = make(model)
            with gossiping(model, optimizer, topology="ring", pattern="cwa") as gossip:
                if seed:
                    gossip.load(folder(f"half-{kind}"))
                else:
                    train_low(model, optimizer, range(5), rank)
                    gossip.save(folder(f"half-{kind}"))
                train_low(model, optimizer, range(5, 9), rank)
                state = [
                    [str(v.dtype), v.tolist()]
                    for entry in optimizer.state.values()
                    for v in entry.values()
                ]
                kept = [m.tolist() for m in masters(gossip)]
                ends.append({"parameters": numbers(model), "masters": kept, "state": state})
        found[kind] = ends
    return found


def half_frozen(rank: int, size: int) -> Any:
    """Whether masters of other layers go on where one is frozen, and end where values are loaded.

    The rate is 0 and masters are equal, so the mix changes nothing.
    """
    model = low_mlp()
    optimizer = SGD(model.parameters(), lr=2.0**-10)
    with gossiping(model, optimizer, topology="complete") as gossip:
        for p in model.parameters():
            p.grad = p.detach().clone()
        optimizer.step()
        optimizer.param_groups[0]["lr"] = 0.0
        before = masters(gossip)
        model[2].requires_grad_(False)
        optimizer.step()
        frozen = [float((a - b).abs().max()) for a, b in zip(before, masters(gossip), strict=False)]
        loaded = {n: value * 1.0078125 for n, value in low_mlp().state_dict().items()}
        model.load_state_dict(loaded)
        optimizer.step()
        exact = all(torch.equal(value, loaded[name]) for name, value in model.state_dict().items())
    return {"apart": frozen, "exact": exact}


def half_allreduce(rank: int, size: int) -> Any:
    """By optimizer: parameters and masters after an epoch in which the last rank has more batches,
    and a step more."""
    found = {}
    for kind in ("adamw", "own momentum"):
        model = low_mlp()
        optimizer = MAKE[kind](model)
        with gossiping(model, optimizer, pattern="allreduce") as gossip:
            with gossip.uneven():
                train_low(model, optimizer, range(3 + 2 * (rank == size - 1)), rank)
            train_low(model, optimizer, [9], rank)
            found[kind] = [numbers(model), [m.tolist() for m in masters(gossip)]]
    return found


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    "half_training": half_training,
    "half_training_long": half_training_long,
    "half_curves": half_curves,
    "half_mixing": half_mixing,
    "half_looks": half_looks,
    "half_resumed": half_resumed,
    "half_frozen": half_frozen,
    "half_allreduce": half_allreduce,
}
