"""What the workers of the tests of patterns do: training in double precision on data of their own.

Four workers; test_gossip_patterns.py computes the same with plain matrices.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
import torch.distributed as dist
from gossip_scenarios_basic import TIMEOUT_S, gossiping, numbers
from gossip_scenarios_ends import attempt_to
from gossip_support import batch, loss_of
from torch import nn
from torch.optim import SGD, Adam, RMSprop

import gossamer
from gossamer import Gossip
from gossamer.session import patterns
from gossamer.step.carried import Carried

STEPS = 12
SAVED_AT = 5
HOSTS = [2, 2]
Make = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
MAKERS: dict[str, Make] = {
    "sgd": lambda p: SGD(p, lr=0.2, weight_decay=0.01),
    "momentum": lambda p: SGD(p, lr=0.1, momentum=0.8, dampening=0.3),
    "nesterov": lambda p: SGD(p, lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.01),
    "adam": lambda p: Adam(p, lr=0.02),
    "rmsprop": lambda p: RMSprop(p, lr=0.02),  # takes its own step
}


class Case(NamedTuple):
    pattern: str
    optimizer: str
    topology: str = "ring"
    lazy: bool = False
    global_average_every: int = 0
    local_steps: int = 1
    pattern_options: Mapping[str, float] = {}

    def schedule(self) -> gossamer.Schedule:
        return gossamer.make_schedule(
            self.topology,
            HOSTS,
            lazy=self.lazy,
            local_steps=self.local_steps,
            global_average_every=self.global_average_every,
        )

    def make(self, model: nn.Module) -> torch.optim.Optimizer:
        return MAKERS[self.optimizer](model.parameters())


OUTER = {"outer_every": 3, "outer_momentum": 0.6, "outer_lr": 0.8}
CASES = [
    Case("exact_diffusion", "sgd", lazy=True),
    Case("exact_diffusion", "adam", "complete"),
    Case("exact_diffusion", "rmsprop", lazy=True),
    Case("extra", "sgd"),
    Case("extra", "momentum", "star"),
    Case("extra", "rmsprop"),
    Case("gradient_tracking", "sgd", "exponential"),
    Case("gradient_tracking", "momentum", "one_peer_exponential"),
    Case("gradient_tracking", "adam", "alternating_exponential_ring"),
    Case("dmsgd", "momentum"),
    Case("dmsgd", "nesterov", "one_peer_ring"),
    Case("dmsgd", "adam"),
    Case("qg_dmsgd", "momentum"),
    Case("qg_dmsgd", "nesterov", "one_peer_exponential"),
    Case("gradient_tracking_atc", "sgd", "exponential"),
    Case("gradient_tracking_atc", "adam", "one_peer_ring"),
    Case("push_sum", "momentum", "random_directed"),
    Case("push_sum", "adam", "star"),
    Case("slowmo", "momentum", global_average_every=3, pattern_options=OUTER),
    Case("slowmo", "adam", "complete", local_steps=3, pattern_options=OUTER),
    Case("noloco", "nesterov", "one_peer_ring", local_steps=3, pattern_options=OUTER),
    Case("noloco", "adam", pattern_options=OUTER),
    Case("dsgd_ac", "momentum", pattern_options={"consensus": 0.6}),
    Case("cwa_moments", "adam", pattern_options={"consensus": 0.6, "noise_share": 1.0}),
    Case("gradient_gossip", "nesterov", "one_peer_exponential"),
    Case("gradient_gossip", "adam"),
    Case("gradient_gossip", "rmsprop"),
    Case("gradient_gossip", "rmsprop", "one_peer_exponential"),
    Case("atc", "rmsprop"),
    Case("cwa", "rmsprop", "one_peer_ring"),
]
NEW = set(patterns.names()) - {case.pattern for case in CASES} - {"allreduce"}
EVERY = [*CASES, *(Case(pattern, "momentum", lazy=True) for pattern in sorted(NEW))]
KEEPING = [case for case in CASES if patterns.row_of(case.pattern).kept_state]


def small() -> nn.Linear:
    """So small that it is one bucket, which follows the schedule without a shift."""
    torch.manual_seed(4)
    return nn.Linear(5, 3).double()


def has_gradient(step: int, rank: int) -> bool:
    """Rank 1 has none in the first step, and in every fourth one."""
    return rank != 1 or step % 4 != 0


def stays(step: int, rank: int) -> bool:
    """Everybody has one in every step."""
    return True


def loss(model: nn.Module, step: int, rank: int) -> torch.Tensor:
    return loss_of(model, batch(step % 3, rank).double())


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    steps: Iterable[int],
    rank: int,
    has: Callable[[int, int], bool] = stays,
) -> None:
    for step in steps:
        optimizer.zero_grad()
        if has(step, rank):
            loss(model, step, rank).backward()
        optimizer.step()


def options(case: Case) -> Mapping[str, Any]:
    return {
        "topology": case.schedule(),
        "pattern": case.pattern,
        "pattern_options": case.pattern_options,
    }


def by_case(act: Callable[[Case], Any], cases: Iterable[Case] = CASES) -> list[Any]:
    return [act(case) for case in cases]


def trained(rank: int, size: int) -> Any:
    """By case and whether gradients are missing now and then: the parameters in the end."""

    def act(has: Callable[[int, int], bool], case: Case) -> list[float]:
        model = small()
        optimizer = case.make(model)
        with gossiping(model, optimizer, **options(case)):
            train(model, optimizer, range(STEPS), rank, has)
        return numbers(model)

    return [by_case(partial(act, has)) for has in (stays, has_gradient)]


def skipped(rank: int, size: int) -> Any:
    """By case: the end where a GradScaler skips what ``has_gradient`` says is missing."""

    def act(case: Case) -> list[float]:
        model = small()
        optimizer = case.make(model)
        with gossiping(model, optimizer, **options(case)):
            for step in range(STEPS):
                scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
                optimizer.zero_grad()
                scaler.scale(loss(model, step, rank)).backward()
                if not has_gradient(step, rank):
                    model.bias.grad[0] = float("inf")
                scaler.step(optimizer)
        return numbers(model)

    return by_case(act)


def unequal(rank: int, size: int) -> Any:
    """By case: the end after an epoch of 2, 3, 4 and 5 batches and one of 3, and all steps."""

    def act(case: Case) -> Any:
        model = small()
        optimizer = case.make(model)
        steps = []
        with gossiping(model, optimizer, **options(case)) as gossip:
            with gossip.uneven():
                train(model, optimizer, range(2 + rank), rank)
            steps.append(gossip.stats()["steps"])
            train(model, optimizer, range(steps[0], steps[0] + 3), rank)
        return {"end": numbers(model), "steps": steps[0]}

    return by_case(act)


def in_the_backward(rank: int, size: int) -> Any:
    """By case with a fused optimizer: whether it ends with the same bits as update="step"."""

    def act(case: Case) -> bool:
        ends = []
        for update in ("step", "backward"):
            model = nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 3)).double()
            torch.manual_seed(2)
            for p in model.parameters():
                nn.init.normal_(p, std=0.3)
            optimizer = case.make(model)
            with gossiping(model, optimizer, update=update, bucket_bytes=512, **options(case)):
                train(model, optimizer, range(STEPS), rank)
            ends.append(numbers(model))
        return ends[0] == ends[1]

    return by_case(act, [case for case in CASES if case.optimizer != "rmsprop"])


def restarted(rank: int, size: int) -> Any:
    """By case: the end where all load their own values into the model on the way."""

    def act(case: Case) -> list[float]:
        model = small()
        optimizer = case.make(model)
        with gossiping(model, optimizer, **options(case)):
            train(model, optimizer, range(SAVED_AT), rank)
            model.load_state_dict(model.state_dict())
            train(model, optimizer, range(SAVED_AT, STEPS), rank)
        return numbers(model)

    return by_case(act)


# Checkpoints.


def place(number: int) -> Path:
    return Path(os.environ["GOSSAMER_TEST_FOLDER"]) / str(number)


def kept(gossip: Gossip) -> dict[str, list[float]]:
    """By name: what the pattern keeps, of all parameters."""
    run = gossip._run
    vectors = run.session.row(run.trained.rule).kept_state
    count = range(len(run.trained.tensors))
    return {
        name: torch.cat([run.team.engine.pattern_state(i, k).flatten() for i in count]).tolist()
        for name, k in vectors.items()
    }


def ends_with_a_save(case: Case, folder: Path, rank: int) -> list[Any]:
    """Of a run that is saved on the way, and of one that goes on from there."""
    ends = []
    for is_first in (True, False):
        model = small()
        optimizer = case.make(model)
        with gossiping(model, optimizer, **options(case)) as gossip:
            if is_first:
                train(model, optimizer, range(SAVED_AT), rank, has_gradient)
                gossip.save(folder)
            else:
                train(model, optimizer, range(2), rank)
                gossip.load(folder)
            train(model, optimizer, range(SAVED_AT, STEPS), rank, has_gradient)
            ends.append([numbers(model), kept(gossip)])
    return ends


def saved_and_loaded(rank: int, size: int) -> Any:
    """By case, also of rows that the table has since."""
    return [ends_with_a_save(case, place(number), rank) for number, case in enumerate(EVERY)]


def forgotten(rank: int, size: int) -> Any:
    """The same of the first case, with a save that leaves out what the pattern keeps."""
    with mock.patch("gossamer.step.run.carried_by", return_value=Carried()):
        return ends_with_a_save(CASES[0], place(-1), rank)


def loaded_by_two(rank: int, size: int) -> Any:
    """After saved_and_loaded, by case: what two workers have when they have loaded what four have
    saved, and after three steps, with the last gradients."""
    pair = dist.new_group([0, 1])
    if rank > 1:
        return None

    def act(number: int, case: Case) -> Any:
        model = small()
        optimizer = case.make(model)
        topology = gossamer.make_schedule("complete", [2])
        with Gossip(
            model, optimizer, topology=topology, pattern=case.pattern, group=pair,
            pattern_options=case.pattern_options, timeout_s=TIMEOUT_S,
        ) as gossip:  # fmt: skip
            gossip.load(place(number))
            start = kept(gossip)
            train(model, optimizer, range(SAVED_AT, SAVED_AT + 3), rank)
            gradient = torch.cat([p.grad.flatten() for p in model.parameters()]).tolist()
            end = kept(gossip)
            dist.barrier(pair)
        return {"start": start, "end": end, "gradient": gradient}

    return [act(number, case) for number, case in enumerate(CASES) if case in KEEPING]


def with_another_pattern(rank: int, size: int) -> Any:
    """After saved_and_loaded: what extra keeps of what exact_diffusion has saved."""
    number = next(i for i, case in enumerate(CASES) if case.pattern == "exact_diffusion")
    model = small()
    optimizer = CASES[number].make(model)
    with gossiping(model, optimizer, topology="ring", pattern="extra") as gossip:
        gossip.load(place(number))
        return kept(gossip)


def refused(rank: int, size: int) -> Any:
    """What is said to schedules that a pattern does not go with, and where momentum goes away."""
    found: dict[str, Any] = {}
    topologies: dict[str, str | gossamer.Schedule] = {
        "changing": "alternating_exponential_ring",
        "directed": "exponential",
        "border": "ring",
        "averaged": gossamer.make_schedule("ring", HOSTS, lazy=True, global_average_every=4),
    }
    exact = partial(Gossip, pattern="exact_diffusion", timeout_s=TIMEOUT_S)
    others: dict[str, Mapping[str, Any]] = {
        "weights": {"pattern": "cwa", "topology": "random_directed"},
        "no_outer_steps": {"pattern": "noloco"},
        "no_global_averages": {"pattern": "slowmo", "pattern_options": OUTER},
    }
    for name, arguments in others.items():
        model = small()
        sgd = SGD(model.parameters(), lr=0.1)
        attempt = partial(Gossip, model, sgd, timeout_s=TIMEOUT_S)
        found[name] = attempt_to(partial(attempt, **{"topology": "ring", **arguments}))
    for name, topology in topologies.items():
        model = small()
        sgd = SGD(model.parameters(), lr=0.1)
        found[name] = attempt_to(partial(exact, model, sgd, topology=topology))
    model = small()
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    with gossiping(model, optimizer, topology="ring", pattern="dmsgd"):
        train(model, optimizer, range(2), rank)
        optimizer.param_groups[0]["momentum"] = 0.0
        found["momentum"] = attempt_to(optimizer.step)
        optimizer.param_groups[0]["momentum"] = 0.9
        train(model, optimizer, range(2, 4), rank)  # all goes on
        found["end"] = numbers(model)
    return found


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    f"patterns_{function.__name__}": function
    for function in (
        trained,
        skipped,
        unequal,
        in_the_backward,
        restarted,
        saved_and_loaded,
        forgotten,
        loaded_by_two,
        with_another_pattern,
        refused,
    )
}
