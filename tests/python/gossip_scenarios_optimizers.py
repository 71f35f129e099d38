"""What two workers of the tests of several optimizers do; the oracles are in the tests."""

import copy
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from gossip_scenarios_basic import gossiping, numbers
from gossip_scenarios_ends import attempt_to
from gossip_scenarios_save import everything, folder
from gossip_support import batch, difference, loss_of, mlp, same_state
from torch import nn
from torch.nn.functional import softplus
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, AdamW, Muon
from torch.optim.lr_scheduler import StepLR

from gossamer import Gossip

STEPS = 50
ROUNDS = 12
LR = 0.1
Pair = list[torch.optim.Optimizer]
DOUBLE = torch.float64


def halves(model: nn.Module, kind: str = "sgd") -> Pair:
    """One optimizer for matrices, and AdamW for vectors."""
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    first = Muon(matrices, lr=0.02) if kind == "muon" else SGD(matrices, lr=0.05, momentum=0.9)
    return [first, AdamW(vectors, lr=0.01)]


def gan(seed: int = 0) -> nn.ModuleDict:
    torch.manual_seed(seed)
    critic = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
    return nn.ModuleDict({"d": critic, "g": mlp(seed=seed)}).double()


def players(model: nn.ModuleDict) -> Pair:
    """The discriminator's and the generator's."""
    first = AdamW(model["d"].parameters(), lr=0.02, betas=(0.5, 0.9))
    return [first, SGD(model["g"].parameters(), lr=0.05, momentum=0.5)]


def loss_in_turn(model: nn.ModuleDict, turn: str, step: int, rank: int) -> torch.Tensor:
    """The discriminator's, or the generator's, which gives the discriminator gradients as well."""
    fake = model["g"](batch(step, rank).double())
    if turn == "g":
        return softplus(-model["d"](fake)).mean()
    real = batch(1000 + step, rank, inputs=3).double()
    return softplus(-model["d"](real)).mean() + softplus(model["d"](fake.detach())).mean()


def play(
    model: nn.ModuleDict,
    optimizers: Pair,
    rank: int,
    turns: str,
    *,
    toggles: bool = False,
    after: Callable[[], Any] = lambda: None,
) -> list[Any]:
    """Steps in turn, as "ddg"; what ``after`` says after each of them."""
    said = []
    by_turn = dict(zip("dg", optimizers, strict=True))
    for step, turn in enumerate(turns):
        if toggles:
            model["d"].requires_grad_(turn == "d")
        by_turn[turn].zero_grad()
        loss_in_turn(model, turn, step, rank).backward()
        by_turn[turn].step()
        said.append(after())
    return said


# The same numbers as something else.


def train_halves(
    model: nn.Module,
    optimizers: Pair,
    steps: range,
    rank: int,
    *,
    clip: float = 0.0,
    forward: nn.Module | None = None,
) -> int:
    """How often it clipped."""
    clipped = 0
    dtype = next(model.parameters()).dtype
    for step in steps:
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss_of(forward or model, batch(step, rank).to(dtype)).backward()
        if clip:
            clipped += bool(nn.utils.clip_grad_norm_(model.parameters(), clip) > clip)
        for optimizer in optimizers:
            optimizer.step()
    return clipped


def two_halves(rank: int, size: int) -> Any:
    """By pattern and dtype: the parameters at the end, and how often they were mixed."""
    found = {}
    for pattern in ("atc", "cwa"):
        for dtype in (torch.float32, DOUBLE):
            model = mlp(seed=rank).to(dtype)
            optimizers = halves(model)
            options = {"topology": "complete", "pattern": pattern, "bucket_bytes": 64}
            with gossiping(model, optimizers, **options) as gossip:
                train_halves(model, optimizers, range(STEPS), rank)
                name = f"{pattern} {str(dtype).removeprefix('torch.')}"
                found[name] = {"parameters": numbers(model), "steps": gossip.stats()["steps"]}
    return found


def halves_as_ddp(rank: int, size: int) -> Any:
    """By pattern, class and dtype: how far DDP is away; how often gradients were averaged."""
    found = {}
    for pattern in ("allreduce", "gradient_gossip"):
        for kind, dtype in (("muon", torch.float32), ("sgd", DOUBLE)):
            ours = mlp(seed=rank).to(dtype)
            optimizers = halves(ours, kind)
            with gossiping(ours, optimizers, topology="complete", pattern=pattern) as gossip:
                reference = copy.deepcopy(ours)  # rank 0's values
                clipped = train_halves(ours, optimizers, range(STEPS), rank, clip=0.5)
                passes = gossip._run.team.engine.gradient_passes
            others = halves(reference, kind)
            ddp = DistributedDataParallel(reference)
            train_halves(reference, others, range(STEPS), rank, clip=0.5, forward=ddp)
            near = 1e-4 if dtype == torch.float32 else 1e-10
            found[f"{pattern} {kind}"] = {
                "difference": difference(ours, reference),
                "states": [
                    same_state(*both, near) for both in zip(optimizers, others, strict=True)
                ],
                "clipped": clipped,
                "passes": passes,
            }
    return found


# In turn.


def steps_of(gossip: Gossip) -> int:
    """The mixes so far."""
    return int(gossip.stats()["steps"])


def in_turn(rank: int, size: int) -> Any:
    """By pattern, and with freezing in turn: parameters, and mixes done after each step."""
    found = {}
    for pattern in ("atc", "allreduce", "gradient_gossip"):
        for toggles in (False, True):
            model = gan(rank)
            optimizers = players(model)
            with gossiping(model, optimizers, topology="complete", pattern=pattern) as gossip:
                steps = play(
                    *(model, optimizers, rank, "ddg" * ROUNDS),
                    toggles=toggles,
                    after=partial(steps_of, gossip),
                )
                name = f"{pattern} toggles" if toggles else pattern
                found[name] = {"parameters": numbers(model), "steps": steps}
    return found


def waiting_gradients(rank: int, size: int) -> Any:
    """The generator's gradient is there while the discriminator does a backward and a step."""
    found = {}
    for pattern in ("allreduce", "gradient_gossip"):
        model = gan()
        d, g = players(model)
        with gossiping(model, [d, g], topology="complete", pattern=pattern) as gossip:
            engine = gossip._run.team.engine
            loss_in_turn(model, "g", 0, rank).backward()
            first = [p.grad.clone() for p in model["g"].parameters()]
            d.zero_grad()
            loss_in_turn(model, "d", 1, rank).backward()
            d.step()
            passes = engine.gradient_passes
            kept = all(
                torch.equal(p.grad, was)
                for p, was in zip(model["g"].parameters(), first, strict=True)
            )
            d.zero_grad()
            g.step()
            found[pattern] = {
                "kept": kept,
                "passes": [passes, engine.gradient_passes],
                "gradient": torch.cat([each.flatten() for each in first]).tolist(),
            }
    return found


def by_hand(rank: int, size: int) -> Any:
    """Mixes before all have stepped: numbers of mixes, and how far the workers are apart."""
    model = gan()
    d, g = players(model)
    found: dict[str, Any] = {}
    with gossiping(model, [d, g], topology="complete", pattern="atc") as gossip:
        gossip.step()
        steps = [gossip.stats()["steps"]]
        play(model, [d, g], rank, "d")
        found["apart before"] = gossip.disagreement()
        steps.append(gossip.stats()["steps"])
        with gossip.averaged():
            found["averaged"] = attempt_to(gossip.step)
        gossip.step()
        found["apart"] = gossip.disagreement()
        gossip.step()
        steps.append(gossip.stats()["steps"])
        play(model, [d, g], rank, "g")
        steps.append(gossip.stats()["steps"])
        play(model, [d, g], rank, "d")
        found["steps"] = [*steps, gossip.stats()["steps"]]
    model = mlp()
    optimizer = SGD(model.parameters(), lr=LR)
    with gossiping(model, [optimizer], topology="complete") as gossip:
        loss_of(model, batch(0, rank)).backward()
        optimizer.step()
        gossip.step()
        found["one"] = [gossip.stats()["steps"], gossip.is_fused]
    return found


def averaged_once(rank: int, size: int) -> Any:
    """A mix by hand between two steps with the gradients of one backward."""
    found = {}
    for pattern in ("allreduce", "gradient_gossip"):
        model = mlp().double()
        optimizers = halves(model)
        with gossiping(model, optimizers, topology="ring", pattern=pattern) as gossip:
            loss_of(model, batch(0, rank).double()).backward()
            optimizers[0].step()
            gossip.step()
            optimizers[1].step()
            found[pattern] = gossip._run.team.engine.gradient_passes
    return found


def scaled(rank: int, size: int) -> Any:
    """The vectors' gradients of rank 1 overflow in step 1. By step: x, g (unscaled), the next x."""
    model = mlp()
    optimizers = [SGD(each, lr=LR) for each in (model[0].parameters(), model[2].parameters())]
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
    steps = []
    with gossiping(model, optimizers, topology="complete", pattern="atc") as gossip:
        for step in range(3):
            for optimizer in optimizers:
                optimizer.zero_grad()
            scaler.scale(loss_of(model, batch(step, rank))).backward()
            if rank == 1 and step == 1:
                model[2].bias.grad[0] = float("inf")
            grads = [p.grad / scaler.get_scale() for p in model.parameters()]
            if rank == 1 and step == 1:
                grads[2:] = [torch.zeros_like(each) for each in grads[2:]]
            before = numbers(model)
            for optimizer in optimizers:
                scaler.step(optimizer)
            scaler.update()
            flat = torch.cat([each.flatten() for each in grads]).tolist()
            steps.append({"x": before, "g": flat, "next": numbers(model)})
        return {"steps": steps, "scale": scaler.get_scale(), "mixes": gossip.stats()["steps"]}


def schedules(rank: int, size: int) -> Any:
    """Learning-rate schedulers made before and after, with warnings as errors."""
    model = gan(rank)
    optimizers = players(model)
    before = StepLR(optimizers[0], 2, 0.5)
    with warnings.catch_warnings(), gossiping(model, optimizers, pattern="atc"):
        warnings.simplefilter("error")
        after = StepLR(optimizers[1], 1, 0.5)
        play(model, optimizers, rank, "ddg")
        before.step()
        after.step()
        play(model, optimizers, rank, "ddg")
        before.step()
        after.step()
        return [float(each.param_groups[0]["lr"]) for each in optimizers]


# Changes, epochs.


def edited(rank: int, size: int) -> Any:
    """A group more in the first optimizer, and a state loaded into each."""
    model = mlp(seed=rank).double()
    late = nn.Parameter(torch.full((2, 2), float(rank), dtype=DOUBLE))
    optimizers = halves(model)
    found: dict[str, Any] = {}
    with gossiping(model, optimizers, topology="complete", pattern="atc") as gossip:
        train_halves(model, optimizers, range(3), rank)
        states = [copy.deepcopy(each.state_dict()) for each in optimizers]
        train_halves(model, optimizers, range(3, 4), rank)
        for optimizer, state in zip(optimizers, states, strict=True):
            optimizer.load_state_dict(state)
        train_halves(model, optimizers, range(4, 6), rank)
        found["parameters"] = numbers(model)
        model.register_parameter("late", late)
        optimizers[0].add_param_group({"params": [late], "lr": 1.0})
        late.grad = torch.full((2, 2), float(rank), dtype=DOUBLE)
        optimizers[0].step()
        found["late alone"] = late[0].tolist()
        optimizers[1].step()
        found["late"] = late[0].tolist()
        optimizers[0].step()
        local = numbers(model)
        with gossip.averaged() as mean:
            found["mean"] = numbers(mean)
        found["local"] = local
        found["restored"] = numbers(model) == local
    return found


def unequal(rank: int, size: int) -> Any:
    """Rank 1 has fewer batches, or leaves within a step. By pattern: steps, parameters."""
    found = {}
    for pattern in ("cwa", "allreduce", "gradient_gossip"):
        for name, turns in (("whole", "ddg" * 2), ("part", "ddg" * 2 + "d")):
            model = gan()
            optimizers = players(model)
            options = {"topology": "complete", "pattern": pattern}
            with gossiping(model, optimizers, **options) as gossip:
                with gossip.uneven():
                    play(model, optimizers, rank, "ddg" * 5 if rank == 0 else turns)
                apart = gossip.disagreement()
                found[f"{pattern} {name}"] = [gossip.stats()["steps"], numbers(model), apart]
    return found


# Checkpoints.

BEFORE, AFTER = "ddgddgd", "dgddgg"


@contextmanager
def on_ring(seed: int) -> Iterator[tuple[nn.Module, Pair, Gossip]]:
    model = gan(seed)
    optimizers = players(model)
    with gossiping(model, optimizers, topology="ring", pattern="cwa") as gossip:
        yield model, optimizers, gossip


def straight(rank: int, size: int) -> Any:
    """Saves when only one has stepped, and goes on."""
    with on_ring(rank) as (model, optimizers, gossip):
        play(model, optimizers, rank, BEFORE)
        gossip.save(folder("set"))
        play(model, optimizers, rank, AFTER)
        found = [everything(model, each) for each in optimizers]
        return {"steps": gossip.stats()["steps"], "found": found}


def killed(rank: int, size: int) -> Any:
    """Saves when only one has stepped, and is killed."""
    with on_ring(rank) as (model, optimizers, gossip):
        play(model, optimizers, rank, BEFORE)
        gossip.save(folder("killed"))
        dist.barrier()
        os.kill(os.getpid(), signal.SIGKILL)


def resumed(rank: int, size: int) -> Any:
    with on_ring(rank + 7) as (model, optimizers, gossip):
        gossip.load(folder("killed"))
        play(model, optimizers, rank, AFTER)
        found = [everything(model, each) for each in optimizers]
        return {"steps": gossip.stats()["steps"], "found": found}


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    "optimizers_two_halves": two_halves,
    "optimizers_halves_as_ddp": halves_as_ddp,
    "optimizers_in_turn": in_turn,
    "optimizers_waiting_gradients": waiting_gradients,
    "optimizers_by_hand": by_hand,
    "optimizers_averaged_once": averaged_once,
    "optimizers_scaled": scaled,
    "optimizers_schedules": schedules,
    "optimizers_edited": edited,
    "optimizers_unequal": unequal,
    "optimizers_straight": straight,
}
LAUNCHES: dict[str, Callable[[int, int], Any]] = {
    "optimizers_killed": killed,
    "optimizers_resumed": resumed,
}
