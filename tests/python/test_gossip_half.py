"""Parameters of half precision: their float32 masters, which are mixed, stepped and saved."""

from pathlib import Path
from typing import Any

import gossip_ranks
import pytest
import torch
from gossip_scenarios_half import MAKE, low_mlp, masters, train_low
from torch import nn
from torch.optim import SGD, AdamW

from gossamer import Gossip

SCENARIOS = (
    *("half_training", "half_mixing", "half_looks"),
    *("half_resumed", "half_frozen", "half_allreduce"),
)


@pytest.fixture(scope="module")
def four(folder: Path) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(list(SCENARIOS), [1, 1, 1, 1])


# Training.


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_the_loss_is_that_of_float32(four: list[gossip_ranks.Rank], kind: str) -> None:
    found = gossip_ranks.results(four, "half_training")[0]
    single, low = found["adamw float32"], found[f"adamw {kind}"]
    assert low["is_fused"]
    assert low["loss"] == pytest.approx(single["loss"], rel=0.01)
    assert single["apart"] / 2 < low["apart"] < 2 * single["apart"]


@pytest.mark.parametrize("start", ["ulp", "below"])
def test_workers_come_as_near_as_in_float32(four: list[gossip_ranks.Rank], start: str) -> None:
    found = gossip_ranks.results(four, "half_mixing")[0]
    (single_before, single), (before, low) = (
        found[f"torch.{dtype} {start}"] for dtype in ("float32", "bfloat16")
    )
    assert before == pytest.approx(single_before, rel=0.1)
    assert low < before / 10
    assert single / 2 < low < 2 * single


# What others see and change.


def test_looks_at_the_mean_leave_all_bits(four: list[gossip_ranks.Rank]) -> None:
    found = gossip_ranks.results(four, "half_looks")
    for kind in ("adamw", "own adamw"):
        assert all(rank[kind]["same"] for rank in found)
        assert all(rank[kind]["mean"] == found[0][kind]["mean"] for rank in found)
        parts = zip(*(rank[kind]["masters"] for rank in found), strict=True)
        mean = torch.cat([torch.tensor(part).mean(0).flatten() for part in parts])
        shown = torch.tensor(found[0][kind]["mean"])
        # Half a unit in the last place, and the rounding of the mean itself.
        assert bool(((shown - mean).abs() <= mean.abs() * (2**-8 + 1e-6)).all())


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adamw", "rmsprop"])
def test_a_resumed_run_has_equal_bits(four: list[gossip_ranks.Rank], kind: str) -> None:
    for rank in gossip_ranks.results(four, "half_resumed"):
        whole, resumed = rank[kind]
        assert whole == resumed
        wide = "torch.bfloat16" if kind == "rmsprop" else "torch.float32"
        assert {dtype for dtype, values in whole["state"] if isinstance(values, list)} <= {wide}


def test_masters_outlive_a_freeze_and_not_a_load(four: list[gossip_ranks.Rank]) -> None:
    for rank in gossip_ranks.results(four, "half_frozen"):
        assert max(rank["apart"]) < 1e-7
        assert rank["exact"]


@pytest.mark.parametrize("kind", ["adamw", "own momentum"])
def test_averaged_gradients_leave_all_workers_equal(
    four: list[gossip_ranks.Rank], kind: str
) -> None:
    found = [rank[kind] for rank in gossip_ranks.results(four, "half_allreduce")]
    assert all(each == found[0] for each in found)


# A worker alone.


def stepped(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for p in model.parameters():
        p.grad = p.detach().clone()
    optimizer.step()


def test_updates_below_the_last_place_add_up() -> None:
    model = low_mlp()
    begun = [p.detach().float() for p in model.parameters()]
    optimizer = SGD(model.parameters(), lr=2.0**-12)
    with Gossip(model, optimizer) as gossip:
        for _ in range(50):
            for p in model.parameters():
                p.grad = torch.ones_like(p)
            optimizer.step()
        for master, x, p in zip(masters(gossip), begun, model.parameters(), strict=True):
            assert torch.allclose(master, x - 50 * 2.0**-12, rtol=1e-6, atol=1e-6)
            assert bool(((p.detach() - master).abs() <= 2.0**-7 * master.abs()).all())


def test_edits_move_the_master_and_new_values_replace_it() -> None:
    model = low_mlp()
    optimizer = SGD(model.parameters(), lr=2.0**-10)
    with Gossip(model, optimizer) as gossip:
        stepped(model, optimizer)
        optimizer.param_groups[0]["lr"] = 0.0
        before, shown = masters(gossip)[0], model[0].weight.detach().clone()
        with torch.no_grad():
            model[0].weight.mul_(1.0625)
            model[2].weight[0] = 0.0
            model[2].weight[1] = 5.0
        change = model[0].weight.detach().float() - shown.float()
        stepped(model, optimizer)
        assert torch.equal(masters(gossip)[0], before + change)
        assert model[2].weight[0].eq(0).all()
        assert model[2].weight[1].eq(5).all()


@pytest.mark.parametrize("kind", ["momentum", "adamw"])
def test_a_loaded_optimizer_state_is_float32_again(kind: str) -> None:
    """Torch casts it to the parameters' dtype."""
    model = low_mlp()
    optimizer = MAKE[kind](model)
    with Gossip(model, optimizer):
        train_low(model, optimizer, range(2), 0)
        saved = optimizer.state_dict()
        assert wide_of(optimizer) == {torch.float32}
        optimizer.load_state_dict(saved)
        assert wide_of(optimizer) == {torch.float32}
        train_low(model, optimizer, range(2, 4), 0)
    assert wide_of(optimizer) == {torch.bfloat16}
    train_low(model, optimizer, range(4, 5), 0)  # by itself


def wide_of(optimizer: torch.optim.Optimizer) -> set[Any]:
    entries = optimizer.state.values()
    return {v.dtype for entry in entries for key, v in entry.items() if key != "step"}


def test_update_in_the_backward_has_the_same_bits() -> None:
    ends = []
    for update in ("step", "backward"):
        model = low_mlp()
        optimizer = AdamW(model.parameters(), lr=0.01)
        with Gossip(model, optimizer, update=update) as gossip:
            train_low(model, optimizer, range(6), 0)
            ends.append([*masters(gossip), *(p.detach().clone() for p in model.parameters())])
    assert all(map(torch.equal, *ends))


def test_a_checkpoint_has_the_masters(tmp_path: Path) -> None:
    model = low_mlp()
    optimizer = SGD(model.parameters(), lr=2.0**-10)
    with Gossip(model, optimizer) as gossip:
        stepped(model, optimizer)
        before = masters(gossip)
        gossip.save(tmp_path)
        stepped(model, optimizer)
        gossip.load(tmp_path)
        assert all(map(torch.equal, masters(gossip), before))
