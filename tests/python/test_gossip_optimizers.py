"""Several optimizers over one model: two workers, beside the same in one process."""

import copy
import json
from collections.abc import Callable
from pathlib import Path

import gossip_ranks
import numpy as np
import pytest
import torch
from gossip_scenarios_optimizers import (
    BEFORE,
    LR,
    ROUNDS,
    SCENARIOS,
    STEPS,
    gan,
    halves,
    loss_in_turn,
    players,
    train_halves,
)
from gossip_support import flat_numbers, gap, mlp
from torch import nn
from torch.optim import SGD, Adam, AdamW

from gossamer import Gossip

NEAR = 1e-12


@pytest.fixture(scope="module")
def ranks(folder: Path) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(list(SCENARIOS), [1, 1])


# Oracles: both workers in one process, with plain optimizers.


def values_of(model: nn.Module) -> list[torch.Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def set_means(models: list[nn.Module], starts: list[list[torch.Tensor]] | None = None) -> None:
    """The mean of all; with ``starts``, their mean and what each has added to its own."""
    for k, parameters in enumerate(zip(*(m.parameters() for m in models), strict=True)):
        if starts is None:
            mean = torch.stack([p.detach() for p in parameters]).mean(0)
            new = [mean] * len(models)
        else:
            mean = torch.stack([each[k] for each in starts]).mean(0)
            new = [mean + p.detach() - s[k] for p, s in zip(parameters, starts, strict=True)]
        for parameter, value in zip(parameters, new, strict=True):
            parameter.data.copy_(value)


def halves_by_hand(pattern: str, dtype: torch.dtype) -> list[list[float]]:
    models = [mlp(seed=0).to(dtype) for _ in range(2)]
    optimizers = [halves(model) for model in models]
    for step in range(STEPS):
        starts = [values_of(model) for model in models]
        for rank in range(2):
            train_halves(models[rank], optimizers[rank], range(step, step + 1), rank)
        set_means(models, starts if pattern == "cwa" else None)
    return [flat_numbers(values_of(model)) for model in models]


def turns_by_hand(turns: str, *, averages_gradients: bool) -> list[float]:
    models = [gan(0) for _ in range(2)]
    optimizers = [players(model) for model in models]
    for step, turn in enumerate(turns):
        which = "dg".index(turn)
        for rank in range(2):
            optimizers[rank][which].zero_grad()
            loss_in_turn(models[rank], turn, step, rank).backward()
        for one, other in zip(*(m[turn].parameters() for m in models), strict=True):
            if averages_gradients:
                mean = (one.grad + other.grad) / 2
                one.grad, other.grad = mean, mean.clone()
        for rank in range(2):
            optimizers[rank][which].step()
        if turn == "g" and not averages_gradients:
            set_means(models)
    return flat_numbers(values_of(models[0]))


# The same numbers as something else.


@pytest.mark.parametrize("pattern", ["atc", "cwa"])
@pytest.mark.parametrize(("dtype", "near"), [("float32", 1e-6), ("float64", NEAR)])
def test_two_halves_are_the_recursion(
    ranks: list[gossip_ranks.Rank], pattern: str, dtype: str, near: float
) -> None:
    expected = halves_by_hand(pattern, getattr(torch, dtype))
    assert gap(expected[0], flat_numbers(values_of(mlp(seed=0)))) > 0.1
    for rank, found in enumerate(gossip_ranks.results(ranks, "optimizers_two_halves")):
        assert gap(found[f"{pattern} {dtype}"]["parameters"], expected[rank]) < near
        assert found[f"{pattern} {dtype}"]["steps"] == STEPS


@pytest.mark.parametrize("pattern", ["allreduce", "gradient_gossip"])
@pytest.mark.parametrize(("kind", "near"), [("muon", 1e-5), ("sgd", NEAR)])
def test_averaged_gradients_are_ddp_with_the_same_two(
    ranks: list[gossip_ranks.Rank], pattern: str, kind: str, near: float
) -> None:
    for found in gossip_ranks.results(ranks, "optimizers_halves_as_ddp"):
        said = found[f"{pattern} {kind}"]
        assert said["difference"] < near
        assert said["states"] == [True, True]
        assert said["clipped"] > 5
        assert said["passes"] == STEPS  # one for both, and none before a step


# In turn.


@pytest.mark.parametrize("toggles", [False, True])
@pytest.mark.parametrize("pattern", ["atc", "allreduce", "gradient_gossip"])
def test_in_turn_there_is_a_mix_when_all_have_stepped(
    ranks: list[gossip_ranks.Rank], pattern: str, toggles: bool
) -> None:
    expected = turns_by_hand("ddg" * ROUNDS, averages_gradients=pattern != "atc")
    for found in gossip_ranks.results(ranks, "optimizers_in_turn"):
        said = found[f"{pattern} toggles" if toggles else pattern]
        assert said["steps"] == [k for n in range(ROUNDS) for k in (n, n, n + 1)]
        assert gap(said["parameters"], expected) < NEAR


def test_a_gradient_that_waits_is_averaged_once(ranks: list[gossip_ranks.Rank]) -> None:
    models = [gan() for _ in range(2)]
    for rank, model in enumerate(models):
        loss_in_turn(model, "g", 0, rank).backward()
    both = [flat_numbers([p.grad for p in model["g"].parameters()]) for model in models]
    for found in gossip_ranks.results(ranks, "optimizers_waiting_gradients"):
        for pattern in ("allreduce", "gradient_gossip"):
            assert found[pattern]["kept"]
            assert found[pattern]["passes"] == [2, 2]  # one per backward, none in a step
            assert gap(found[pattern]["gradient"], np.mean(both, axis=0)) < NEAR


def test_by_hand_it_mixes_what_has_stepped(ranks: list[gossip_ranks.Rank]) -> None:
    for found in gossip_ranks.results(ranks, "optimizers_by_hand"):
        # Nothing, d, by hand twice, g, then d: the last two are a round.
        assert found["steps"] == [0, 0, 1, 1, 2]
        assert found["apart before"] > 1e-3
        assert found["apart"] < NEAR
        assert found["averaged"]["type"] == "RuntimeError"
        assert "gossip.step() inside averaged()" in found["averaged"]["message"]
        assert found["one"] == [1, True]


def test_a_mix_by_hand_has_no_gradient_averaged_again(ranks: list[gossip_ranks.Rank]) -> None:
    for found in gossip_ranks.results(ranks, "optimizers_averaged_once"):
        assert found == {"allreduce": 1, "gradient_gossip": 1}


def test_a_step_that_the_scaler_skips_counts(ranks: list[gossip_ranks.Rank]) -> None:
    both = gossip_ranks.results(ranks, "optimizers_scaled")
    for step in range(3):
        stepped = [
            np.array(r["steps"][step]["x"]) - LR * np.array(r["steps"][step]["g"]) for r in both
        ]
        for rank in both:
            assert gap(rank["steps"][step]["next"], np.mean(stepped, axis=0)) < 1e-6
            assert rank["mixes"] == 3
    assert [rank["scale"] for rank in both] == [512.0, 256.0]


def test_schedulers_of_both_are_quiet(ranks: list[gossip_ranks.Rank]) -> None:
    for found in gossip_ranks.results(ranks, "optimizers_schedules"):
        assert found == [0.01, 0.0125]


# Changes, epochs.


def test_groups_and_states_may_change(ranks: list[gossip_ranks.Rank]) -> None:
    models = [mlp(seed=0).double() for _ in range(2)]
    optimizers = [halves(model) for model in models]
    for step in range(6):
        for rank in range(2):
            train_halves(models[rank], optimizers[rank], range(step, step + 1), rank)
        set_means(models)
        if step == 2:
            states = [[copy.deepcopy(o.state_dict()) for o in each] for each in optimizers]
        if step == 3:
            for each, saved in zip(optimizers, states, strict=True):
                for optimizer, state in zip(each, saved, strict=True):
                    optimizer.load_state_dict(state)
    both = gossip_ranks.results(ranks, "optimizers_edited")
    for rank, found in enumerate(both):
        assert gap(found["parameters"], flat_numbers(values_of(models[0]))) < NEAR
        assert gap(found["late alone"], [-rank, -rank]) < NEAR  # rank 0's 0, minus its gradient
        assert gap(found["late"], [-0.5, -0.5]) < NEAR
        assert found["restored"]
        assert gap(found["mean"], np.mean([each["local"] for each in both], axis=0)) < NEAR
    assert gap(both[0]["local"], both[1]["local"]) > 0.1  # one has stepped since


@pytest.mark.parametrize("name", ["whole", "part"])
def test_unequal_numbers_of_batches(ranks: list[gossip_ranks.Rank], name: str) -> None:
    one, other = gossip_ranks.results(ranks, "optimizers_unequal")
    for pattern in ("cwa", "allreduce", "gradient_gossip"):
        steps, parameters, apart = one[f"{pattern} {name}"]
        assert steps == other[f"{pattern} {name}"][0] >= 5
        if pattern == "allreduce":
            assert parameters == other[f"{pattern} {name}"][1]
        elif pattern == "cwa" and steps > 5:  # one that the first to leave had begun meanwhile
            assert apart < 1e-6  # the last steps only mixed


# Checkpoints.


def test_a_killed_run_goes_on_with_equal_bits(folder: Path, ranks: list[gossip_ranks.Rank]) -> None:
    expected = gossip_ranks.results(ranks, "optimizers_straight")
    ended = gossip_ranks.run(["optimizers_killed"], [1, 1])
    assert [rank.code for rank in ended] == [-9, -9]
    found = gossip_ranks.results(
        gossip_ranks.run(["optimizers_resumed"], [1, 1]), "optimizers_resumed"
    )
    assert found == expected
    assert found[0]["steps"] == 5  # two, one of the save, and two
    assert found[0]["found"] != found[1]["found"]


def test_another_number_of_workers_goes_on(folder: Path, ranks: list[gossip_ranks.Rank]) -> None:
    gossip_ranks.results(ranks, "optimizers_straight")
    model = gan(5)
    d, g = players(model)
    with Gossip(model, [d, g]) as gossip:
        g.step()
        gossip.load(folder / "set")
        assert gossip.stats()["steps"] == 3
        d.step()  # g has stepped before the load
        assert gossip.stats()["steps"] == 3
        assert next(iter(d.state.values()))["step"] == BEFORE.count("d")
        g.step()
        assert gossip.stats()["steps"] == 4


OTHER_SETS: dict[str, Callable[[nn.ModuleDict], list[torch.optim.Optimizer]]] = {
    "it has optimizer AdamW + SGD, got optimizer SGD + AdamW": lambda m: players(m)[::-1],
    "it has optimizer AdamW + SGD, got optimizer adamw": lambda m: [AdamW(m.parameters())],
    "it has optimizer AdamW + SGD, got optimizer AdamW + Adam": lambda m: [
        AdamW(m["d"].parameters()),
        Adam(m["g"].parameters()),
    ],
    "no group of the parameters d.0.bias, d.0.weight, d.2.weight": lambda m: [
        AdamW([*m["d"].parameters()][:3]),
        SGD([m["d"][2].bias, *m["g"].parameters()], lr=LR),
    ],
}


@pytest.mark.parametrize("said", OTHER_SETS)
def test_a_checkpoint_of_another_set_is_refused(
    folder: Path, ranks: list[gossip_ranks.Rank], said: str
) -> None:
    gossip_ranks.results(ranks, "optimizers_straight")
    model = gan(5)
    before = values_of(model)
    with Gossip(model, OTHER_SETS[said](model)) as gossip:
        with pytest.raises((ValueError, OSError)) as caught:
            gossip.load(folder / "set")
        assert said in str(caught.value)
    assert all(map(torch.equal, values_of(model), before))


def test_a_checkpoint_says_which(folder: Path, ranks: list[gossip_ranks.Rank]) -> None:
    gossip_ranks.results(ranks, "optimizers_straight")
    (manifest,) = (folder / "set").glob("step-*/manifest.json")
    content = json.loads(manifest.read_text())
    assert (content["optimizer"], content["groups"]) == ("AdamW + SGD", 2)
