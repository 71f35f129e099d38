"""Several workers: what gossiping does to the parameters, buffers and optimizer states."""

import itertools
from typing import Any

import gossip_ranks
import pytest
import torch
from gossip_scenarios_basic import LR, Low, Normed, buffers, numbers
from gossip_support import batch, loss_of, mlp, train
from torch import nn
from torch.optim import SGD, RMSprop

import gossamer

HOSTS = {2: [2], 3: [1, 1, 1], 4: [2, 2], 5: [2, 2, 1]}
SCENARIOS = {
    2: "start_values big_batch worker_mean topologies overflow own_step averaged forked no_close",
    3: "start_values big_batch worker_mean topologies averaged own_step added_group loaded",
    4: "start_values groups_and_ddp topologies overflow unused_on_one averaged",
    5: "start_values worker_mean topologies averaged last_step_late",
}
NEAR = 1e-6


class Runs:
    """Each number of workers is started once, when it is needed first."""

    def __init__(self) -> None:
        self._runs: dict[int, list[gossip_ranks.Rank]] = {}

    def of(self, workers: int) -> list[gossip_ranks.Rank]:
        if workers not in self._runs:
            scenarios = SCENARIOS[workers].split()
            self._runs[workers] = gossip_ranks.run(scenarios, HOSTS[workers])
        return self._runs[workers]

    def results(self, workers: int, scenario: str) -> list[Any]:
        return gossip_ranks.results(self.of(workers), scenario)


@pytest.fixture(scope="module")
def runs() -> Runs:
    return Runs()


def with_scenario(name: str) -> list[int]:
    return [workers for workers, names in SCENARIOS.items() if name in names.split()]


def tensor(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def gap(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("workers", with_scenario("start_values"))
def test_everybody_starts_with_what_rank_0_has(runs: Runs, workers: int) -> None:
    first = Normed(seed=0)
    expected = {"parameters": numbers(first), "buffers": buffers(first)}
    assert runs.results(workers, "start_values") == [expected] * workers


@pytest.mark.parametrize("workers", with_scenario("big_batch"))
def test_complete_and_atc_is_training_on_the_big_batch(runs: Runs, workers: int) -> None:
    found = runs.results(workers, "big_batch")
    for name, make in {
        "sgd": lambda p: SGD(p, lr=LR),
        "momentum": lambda p: SGD(p, lr=LR, momentum=0.9, weight_decay=0.01),
    }.items():
        model = mlp()
        optimizer = make(model.parameters())
        for step in range(20):
            optimizer.zero_grad()
            sum(loss_of(model, batch(step, rank)) for rank in range(workers)).backward()
            for p in model.parameters():
                p.grad /= workers
            optimizer.step()
        for rank in found:
            assert gap(tensor(rank[name]["parameters"]), tensor(numbers(model))) < NEAR
            assert rank[name]["from_ddp"] < NEAR


@pytest.mark.parametrize("workers", with_scenario("big_batch"))
def test_with_adam_it_is_not(runs: Runs, workers: int) -> None:
    for rank in runs.results(workers, "big_batch"):
        assert rank["adam"]["from_ddp"] > 100 * NEAR


@pytest.mark.parametrize("workers", with_scenario("worker_mean"))
def test_the_mean_of_the_workers_takes_the_mean_step(runs: Runs, workers: int) -> None:
    found = runs.results(workers, "worker_mean")
    for step in range(len(found[0])):
        x, g, after = (tensor([rank[step][key] for rank in found]) for key in ("x", "g", "next"))
        assert gap(after.mean(0), x.mean(0) - LR * g.mean(0)) < NEAR
        assert float((after - after.mean(0)).abs().max()) > 1e-4  # and they are apart


@pytest.mark.parametrize("workers", with_scenario("worker_mean"))
def test_a_step_is_the_mix_of_the_unmixed_plus_the_own_step(runs: Runs, workers: int) -> None:
    ring = torch.eye(workers, dtype=torch.float64)
    ring = (ring + ring.roll(1, 0) + ring.roll(-1, 0)) / 3
    if workers == 2:
        ring = torch.full((2, 2), 0.5, dtype=torch.float64)
    found = runs.results(workers, "worker_mean")
    for step in range(len(found[0])):
        x, g, after = (tensor([rank[step][key] for rank in found]) for key in ("x", "g", "next"))
        assert gap(after, ring @ x - LR * g) < NEAR


@pytest.mark.parametrize("name", gossamer.topology_names())
@pytest.mark.parametrize("workers", with_scenario("topologies"))
def test_a_topology_mixes_and_keeps_the_mean(runs: Runs, workers: int, name: str) -> None:
    found = [rank[name] for rank in runs.results(workers, "topologies")]
    try:
        gossamer.make_schedule(name, HOSTS[workers])
    except ValueError as error:
        place, _, text = str(error).partition(" ")
        assert [said["error"] for said in found] == [
            f"{place} rank {rank}: {text}" for rank in range(workers)
        ]
        return
    if name == "random_directed":
        assert all("doubly stochastic" in rank["error"] for rank in found)
        return
    x = tensor([rank["x"] for rank in found])
    start = torch.arange(1.0, workers + 1, dtype=torch.float64)
    assert gap(x.mean(0), torch.full_like(x[0], float(start.mean()))) < NEAR
    assert x.min() >= 1 - NEAR
    assert x.max() <= workers + NEAR
    assert float(x.var(0).max()) < float(start.var())


@pytest.mark.parametrize("kind", ["averaged", "local"])
@pytest.mark.parametrize("workers", with_scenario("averaged"))
def test_averaged(runs: Runs, workers: int, kind: str) -> None:
    found = [rank[kind] for rank in runs.results(workers, "averaged")]
    local = tensor([rank["local"] for rank in found])
    assert all(rank["mean"] == found[0]["mean"] for rank in found)  # the same bits
    assert gap(tensor(found[0]["mean"]), local.mean(0)) < NEAR
    assert all(rank["restored"] for rank in found)
    assert all(rank["steps"] == 7 for rank in found)
    for name in ("norm.running_mean", "norm.running_var"):
        own = tensor([rank["buffers"][name] for rank in found])
        seen = tensor([rank["mean_buffers"][name] for rank in found])
        assert float((own - own.mean(0)).abs().max()) > 1e-4
        expected = own.mean(0).expand_as(own) if kind == "averaged" else own
        assert gap(seen, expected) < NEAR
    assert all(rank["mean_buffers"]["counts"] == [0, 7] for rank in found)


@pytest.mark.parametrize("workers", with_scenario("averaged"))
def test_disagreement(runs: Runs, workers: int) -> None:
    found = [rank["averaged"] for rank in runs.results(workers, "averaged")]
    trained = Normed(seed=0)
    positions = torch.cat([torch.full((p.numel(),), p.requires_grad) for p in trained.parameters()])
    x = tensor([rank["local"] for rank in found])[:, positions]
    mean = x.mean(0)
    expected = float(((x - mean).square().sum(1).mean()).sqrt() / mean.norm())
    said = [rank["disagreement"] for rank in found]
    assert said == [said[0]] * workers
    assert said[0] == pytest.approx(expected, rel=1e-5)


def alone(make: Any, workers: int, pattern: str) -> list[nn.Module]:
    """What gossiping over the complete graph with an own step has to be, in one process."""
    models = [make() for _ in range(workers)]
    optimizers = [RMSprop(model.parameters(), lr=0.01) for model in models]
    for step in range(5):
        sent = [[p.detach().float().clone() for p in model.parameters()] for model in models]
        for rank, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            train(model, optimizer, [step], rank)
        after = [[p.detach().float().clone() for p in model.parameters()] for model in models]
        travels = sent if pattern == "cwa" else after
        for own, old, model in zip(after, travels, models, strict=True):
            for i, p in enumerate(model.parameters()):
                mean = torch.stack([other[i] for other in travels]).mean(0)
                p.data.copy_(own[i] + mean - old[i])
    return models


@pytest.mark.parametrize("case", list(itertools.product(("cwa", "atc"), ("single", "low"))))
@pytest.mark.parametrize("workers", with_scenario("own_step"))
def test_an_own_step_and_the_mix(runs: Runs, workers: int, case: tuple[str, str]) -> None:
    pattern, name = case
    found = [rank[" ".join(case)] for rank in runs.results(workers, "own_step")]
    expected = alone(mlp if name == "single" else Low, workers, pattern)
    for values, model in zip(found, expected, strict=True):
        near = (
            1e-5 if name == "single" else 2**-6
        )  # bfloat16 keeps 8 bits, and rounds in every step
        assert gap(tensor(values), tensor(numbers(model))) < near


@pytest.mark.parametrize("pattern", ["cwa", "atc"])
@pytest.mark.parametrize("workers", with_scenario("overflow"))
def test_an_overflow_on_one_rank_skips_its_update_but_not_the_mix(
    runs: Runs, workers: int, pattern: str
) -> None:
    found = [rank[pattern] for rank in runs.results(workers, "overflow")]
    for step in range(3):
        x, g, after = (
            tensor([rank["steps"][step][key] for rank in found]) for key in ("x", "g", "next")
        )
        mixed = x.mean(0) - LR * g if pattern == "cwa" else (x - LR * g).mean(0).expand_as(x)
        assert gap(after, mixed) < NEAR
    assert [rank["scale"] for rank in found] == [256.0 if r == 1 else 512.0 for r in range(workers)]


def test_ddp_inside_and_gossip_between(runs: Runs) -> None:
    found = runs.results(4, "groups_and_ddp")
    local = [rank["local"] for rank in found]
    assert local[0] == local[1]
    assert local[2] == local[3]
    assert local[0] != local[2]
    assert [rank["mean"] for rank in found] == [found[0]["mean"]] * 4
    assert gap(tensor(found[0]["mean"]), (tensor(local[0]) + tensor(local[2])) / 2) < NEAR


def test_only_members_of_a_group_gossip_in_it(runs: Runs) -> None:
    found = runs.results(4, "groups_and_ddp")
    assert "not in the group" in found[2]["error"]
    assert found[2]["error"] == found[3]["error"]
    assert "not a parameter of the model" in found[0]["error"]  # of the members' own mistake


def test_a_group_added_later_starts_alike_and_leaves_the_rest_alone(runs: Runs) -> None:
    found = runs.results(3, "added_group")
    assert [rank["extra"] for rank in found] == [[0.0] * 6] * 3
    before = tensor([rank["before"] for rank in found])
    after = tensor([rank["after"] for rank in found])[:, 6:]  # after the new one
    assert float((before - before.mean(0)).abs().max()) > 1e-4
    assert gap(after, before.mean(0).expand_as(after)) < NEAR
    assert [rank["steps"] for rank in found] == [4] * 3


def test_what_is_loaded_in_mid_run_is_what_travels(runs: Runs) -> None:
    expected = torch.stack([tensor(numbers(mlp(seed=5 + rank))) for rank in range(3)]).mean(0)
    for values in runs.results(3, "loaded"):
        assert gap(tensor(values), expected) < NEAR


def test_a_parameter_that_one_rank_never_uses_is_mixed_there(runs: Runs) -> None:
    found = runs.results(4, "unused_on_one")
    assert [rank["updates"] for rank in found] == [4, 0, 4, 4]
    start = tensor(mlp(seed=0)[2].bias.tolist())
    moved = [float((tensor(rank["bias"]) - start).abs().max()) for rank in found]
    assert min(moved) > 0.01


def test_the_last_step_may_be_late(runs: Runs) -> None:
    assert runs.results(5, "last_step_late") == [{"cwa": {}, "atc": {}}] * 5


def test_leaving_without_close(runs: Runs) -> None:
    assert runs.results(2, "no_close") == ["left"] * 2


@pytest.mark.parametrize("workers", SCENARIOS)
def test_every_process_ends_well(runs: Runs, workers: int) -> None:
    assert [rank.code for rank in runs.of(workers)] == [0] * workers


def test_a_child_that_closes_its_copy_leaves_its_parent_alone(runs: Runs) -> None:
    assert runs.results(2, "forked") == [0, 0]
