"""State that is mixed beside the parameters: two workers, beside the same in one process."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gossip_ranks
import numpy as np
import pytest
import torch
from gossip_scenarios_save import everything
from gossip_scenarios_state import (
    DECAY,
    SCENARIOS,
    STEPS,
    WIDE,
    AdamWScheduleFree,
    moving_average,
    schedule_free,
    train_free,
)
from gossip_support import flat_numbers, gap, mlp
from safetensors.torch import load_file
from torch import nn
from torch.optim import SGD, Adam

from gossamer import Gossip

NEAR = 1e-12
LR = 0.1


@pytest.fixture(scope="module")
def ranks(folder: Path) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(list(SCENARIOS), [1, 1])


# Schedule-free.


def by_hand(pattern: str) -> list[list[list[float]]]:
    """y and z of both workers: the mean, and under cwa what each has added since to its own."""
    models = [mlp(seed=0).double() for _ in range(2)]
    optimizers = [schedule_free(model) for model in models]

    def both(k: int) -> list[list[torch.Tensor]]:
        """All parameters and their z, of one worker."""
        y = [p.detach() for p in models[k].parameters()]
        return [y, [optimizers[k].state[p].get("z", p.detach()) for p in models[k].parameters()]]

    for step in range(STEPS):
        starts = [[[t.clone() for t in part] for part in both(k)] for k in range(2)]
        for rank in range(2):
            train_free(models[rank], optimizers[rank], range(step, step + 1), rank)
        parts = [both(k) for k in range(2)]
        for part in range(1 if step == 0 else 2):  # z is there after the first step
            for i in range(len(parts[0][part])):
                now = [parts[k][part][i].clone() for k in range(2)]
                was = [starts[k][part][i] for k in range(2)]
                for k in range(2):
                    change = 0 if pattern == "atc" else now[k] - was[k]
                    mean = sum(now) / 2 if pattern == "atc" else sum(was) / 2
                    parts[k][part][i].copy_(mean + change)
    return [[flat_numbers(part) for part in both(k)] for k in range(2)]


@pytest.mark.parametrize("pattern", ["atc", "cwa"])
def test_both_sequences_are_the_recursion(ranks: list[gossip_ranks.Rank], pattern: str) -> None:
    expected = by_hand(pattern)
    mean = np.mean(np.array(expected), axis=0)
    for rank, each in enumerate(gossip_ranks.results(ranks, "state_recursion")):
        found = each[pattern]
        assert gap([found["y"], found["z"]], expected[rank]) < NEAR
        assert gap(found["mean"], mean) < NEAR
        assert found["again"] == [found["y"], found["z"]]
    if pattern == "cwa":
        assert gap(expected[0], expected[1]) > 1e-3


def test_with_gossip_of_gradients_all_have_the_same(ranks: list[gossip_ranks.Rank]) -> None:
    """On the complete graph."""
    one, other = (
        each["gradient_gossip"] for each in gossip_ranks.results(ranks, "state_recursion")
    )
    ddp = gossip_ranks.results(ranks, "state_as_ddp")[0]
    assert gap(one["y"], other["y"]) < NEAR
    assert gap(one["z"], other["z"]) < NEAR
    assert gap(one["z"], ddp["mixed z"]) < NEAR


def test_with_z_it_is_ddp_and_without_z_drifts_apart(ranks: list[gossip_ranks.Rank]) -> None:
    both = gossip_ranks.results(ranks, "state_as_ddp")
    for found in both:
        assert gap(found["mixed"], found["ddp"]) < NEAR
    assert gap(both[0]["mixed z"], both[1]["mixed z"]) < NEAR
    assert gap(both[0]["unmixed z"], both[1]["unmixed z"]) > 0.05


def test_state_may_be_a_new_tensor_in_every_step(ranks: list[gossip_ranks.Rank]) -> None:
    for replacing, in_place in gossip_ranks.results(ranks, "state_replaced"):
        assert replacing == in_place
        assert replacing[2] == 10


def test_one_of_two_optimizers_may_have_it(ranks: list[gossip_ranks.Rank]) -> None:
    one, other = gossip_ranks.results(ranks, "state_among_others")
    assert gap(one["y"], other["y"]) < NEAR
    assert gap(one["z"], other["z"]) < NEAR
    assert one["steps"] == 10


def test_shards_are_as_plain_workers(folder: Path) -> None:
    for found in gossip_ranks.results(
        gossip_ranks.run(["state_in_shards"], [2, 2]), "state_in_shards"
    ):
        assert max(found["apart"]) < 1e-6
        assert found["resumed"] == [True, True]


# A moving average.


@pytest.mark.parametrize("every", [0, 1, 4])
@pytest.mark.parametrize("kind", ["fused", "own", "gradients", "both"])
def test_the_mean_of_the_averages_is_that_of_the_mean(
    ranks: list[gossip_ranks.Rank], kind: str, every: int
) -> None:
    both = [each[f"{kind} {every}"] for each in gossip_ranks.results(ranks, "state_averages")]
    expected = np.array(flat_numbers([p.detach() for p in mlp(hidden=WIDE).double().parameters()]))
    for step in range(16):
        mean = np.mean([each["path"][step] for each in both], axis=0)
        expected = DECAY * expected + (1 - DECAY) * mean
    for each in both:
        assert gap(each["mean"][: len(expected)], expected) < NEAR
        assert gap(each["mean"], np.mean([each["local"] for each in both], axis=0)) < NEAR
        assert each["restored"]
        assert each["fused"] == (kind in ("fused", "gradients"))


@pytest.mark.parametrize("kind", ["fused", "own"])
def test_it_travels_at_its_period(ranks: list[gossip_ranks.Rank], kind: str) -> None:
    for rank, found in enumerate(gossip_ranks.results(ranks, "state_averages")):
        none, always, fourth = (found[f"{kind} {every}"] for every in (0, 1, 4))
        # After 16 steps 17 payloads have left, or 4; rank 0's first of all are everybody's start.
        always_sent, fourth_sent = (each["sent"] - none["sent"] for each in (always, fourth))
        start = always_sent / 18 if rank == 0 else 0
        assert (always_sent - start) / (fourth_sent - start) == pytest.approx(17 / 4, rel=0.03)
        assert always["apart"] == none["apart"] == fourth["apart"]  # of the parameters alone


def test_mixing_brings_the_averages_together(ranks: list[gossip_ranks.Rank]) -> None:
    both = gossip_ranks.results(ranks, "state_averages")
    apart = {
        every: gap(both[0][f"own {every}"]["local"], both[1][f"own {every}"]["local"])
        for every in (0, 1, 4)
    }
    assert apart[1] < 0.7 * apart[0]
    assert apart[4] < 0.9 * apart[0]


# Checkpoints.


def test_a_killed_run_goes_on_with_equal_bits(folder: Path, ranks: list[gossip_ranks.Rank]) -> None:
    expected = gossip_ranks.results(ranks, "state_straight")
    for name in ("state_killed", "state_killed_half"):
        assert [rank.code for rank in gossip_ranks.run([name], [1, 1])] == [-9, -9]
    found = gossip_ranks.results(gossip_ranks.run(["state_resumed"], [1, 1]), "state_resumed")
    assert found == expected
    for dtype in (0, 1):
        assert found[0][dtype] != found[1][dtype]


def test_another_number_of_workers_starts_from_the_means(
    folder: Path, ranks: list[gossip_ranks.Rank]
) -> None:
    gossip_ranks.results(ranks, "state_straight")
    model = mlp(seed=3).double()
    optimizer = AdamWScheduleFree(model.parameters(), lr=0.01)
    optimizer.train()
    ema = moving_average(model)
    with Gossip(model, optimizer, mix_state=["z", ema]) as gossip:
        gossip.load(folder / f"straight-{torch.float64}")
        assert gossip.stats()["steps"] == 7
        assert all("z" in optimizer.state[p] for p in model.parameters())
        assert gap(flat_numbers([*ema.parameters()]), flat_numbers([*model.parameters()])) > 1e-4


def test_another_number_of_workers_starts_from_the_mean_of_the_masters(
    folder: Path, ranks: list[gossip_ranks.Rank]
) -> None:
    gossip_ranks.results(ranks, "state_straight")
    (saved,) = (folder / f"straight-{torch.bfloat16}").glob("step-*")
    files = [load_file(saved / f"worker-0000{rank}.safetensors") for rank in range(2)]
    model = mlp(seed=3).to(torch.bfloat16)
    optimizer = AdamWScheduleFree(model.parameters(), lr=0.01)
    with Gossip(model, optimizer, mix_state="z") as gossip:
        gossip.load(saved.parent)
        engine = gossip._run.team.engine
        apart, names = [], [name for name, _ in model.named_parameters()]
        for i, name in enumerate([*names, *(f"z of {name}" for name in names)]):
            one, other = (file[f"mixed/{name}"].double() for file in files)
            assert gap(engine.home(i), (one + other) / 2) < 1e-7
            apart.append(gap(one, other))
    assert max(apart) > 1e-4


def test_what_the_checkpoint_lacks_is_said(
    folder: Path, ranks: list[gossip_ranks.Rank], tmp_path: Path
) -> None:
    model = mlp().double()
    optimizer = schedule_free(model)
    with Gossip(model, optimizer, mix_state="z") as gossip:
        train_free(model, optimizer, range(2), 0)
        gossip.save(tmp_path)
        before = everything(model, optimizer)
    with Gossip(model, optimizer, mix_state=["z", moving_average(model)]) as gossip:
        with pytest.raises(ValueError, match=r"the checkpoint has no beside/mix_state\.module\.0"):
            gossip.load(tmp_path)
        assert everything(model, optimizer) == before


# Refusals.

Options = dict[str, Any]


def gossip_with(mix_state: Any, **options: Any) -> Callable[[nn.Module], Gossip]:
    return lambda model: Gossip(
        model, SGD(model.parameters(), lr=LR), mix_state=mix_state, **options
    )


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (
            gossip_with("z", pattern="allreduce"),
            ValueError,
            "mix_state is mixed by patterns cwa, atc, gradient_gossip, got pattern 'allreduce'",
        ),
        (gossip_with("z", pattern="exact_diffusion", topology="ring"), ValueError, "got pattern"),
        (
            gossip_with("z", update="backward"),
            ValueError,
            "update='backward' steps the optimizer itself, which takes its own step where "
            "mix_state names its state, got 'z'; use update='step'",
        ),
        (
            gossip_with({"z": 2}, late="skip"),
            ValueError,
            "late='skip' goes with mix_state that is mixed in every step, got one of every 2",
        ),
        (gossip_with({"z": 0}), ValueError, "in every so many-th step, got 0 steps; give a whole"),
        (gossip_with({"z": 1.5}), ValueError, "got 1.5 steps"),
        (gossip_with(3), TypeError, "mix_state cannot be int; give names of state, modules and"),
        (gossip_with([3]), TypeError, "mix_state has a int"),
        (gossip_with(torch.arange(3)), TypeError, "got mix_state[0] of torch.int64"),
        (
            lambda model: gossip_with(model[0].weight)(model),
            ValueError,
            "mix_state[0] is parameter '0.weight' of the model, which is mixed already; leave it",
        ),
        (
            lambda model: gossip_with([model[0].weight.detach()[:1]])(model),
            ValueError,
            "parameters '0.weight' and 'mix_state[0]' share memory",
        ),
        (gossip_with(torch.zeros(3, device="meta")), ValueError, "got mix_state[0] on meta and"),
    ],
)
def test_what_cannot_be_mixed_is_refused(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        make(mlp())
    assert "[Gossip] " in str(caught.value)
    assert said in str(caught.value)


def test_state_that_is_no_floating_point_is_refused_before_the_second_step() -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=LR)
    with Gossip(model, optimizer, mix_state="count"):
        for p in model.parameters():
            optimizer.state[p]["count"] = torch.tensor([3])
        with pytest.raises(TypeError, match=r"got count of 0\.weight of torch\.int64"):
            train_free(model, optimizer, range(1), 0)


def test_state_that_is_not_there_is_said() -> None:
    model = mlp()
    optimizer = Adam(model.parameters(), lr=LR)
    with (
        Gossip(model, optimizer, mix_state=["zz", "exp_avg"]),
        pytest.warns(UserWarning, match="mix_state has 'zz', which Adam does not keep.*exp_avg"),
    ):
        train_free(model, optimizer, range(3), 0)


def test_alone_nothing_changes() -> None:
    model = mlp().double()
    twin = copy.deepcopy(model)
    optimizer, other = schedule_free(model), schedule_free(twin)
    ema = moving_average(model)
    with Gossip(model, optimizer, mix_state={"z": 2, ema: 3}):
        train_free(model, optimizer, range(5), 0)
    train_free(twin, other, range(5), 0)
    assert everything(model, optimizer) == everything(twin, other)
