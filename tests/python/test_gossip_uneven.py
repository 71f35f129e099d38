"""uneven(): epochs in which workers have unequal numbers of batches."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gossip_ranks
import pytest
import torch
import torch.distributed as dist
from gossip_scenarios_uneven import BATCHES, EPOCHS_OF, OPTIMIZERS, TOPOLOGIES
from gossip_support import batch, difference, loss_of, mlp, pair, train
from torch import nn
from torch.optim import Adam
from torch.optim.lr_scheduler import StepLR

from gossamer import Gossip
from gossamer import uneven_epochs as uneven

NEAR = 1e-6
HOSTS = {3: [1, 2], 5: [2, 2, 1]}
SCENARIOS = (
    "uneven_epochs uneven_topologies uneven_moved uneven_as_one uneven_accumulated uneven_misused"
)
WORKERS = [3, 5]


class Runs:
    """Each number of workers is started once, when it is needed first."""

    def __init__(self) -> None:
        self._runs: dict[int, list[gossip_ranks.Rank]] = {}

    def results(self, workers: int, scenario: str) -> list[Any]:
        if workers not in self._runs:
            self._runs[workers] = gossip_ranks.run(SCENARIOS.split(), HOSTS[workers])
        return gossip_ranks.results(self._runs[workers], scenario)


@pytest.fixture(scope="module")
def runs() -> Runs:
    return Runs()


def tensor(values: Any) -> torch.Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


def gap(found: Any, expected: torch.Tensor) -> float:
    return float((tensor(found) - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("pattern", ["cwa", "atc", "allreduce"])
@pytest.mark.parametrize("workers", WORKERS)
def test_all_have_done_equally_many_steps(
    runs: Runs, workers: int, pattern: str, optimizer: str
) -> None:
    found = [rank[f"{pattern} {optimizer}"] for rank in runs.results(workers, "uneven_epochs")]
    assert [rank["steps"] for rank in found] == [found[0]["steps"]] * workers
    at_least = 0
    for steps, counts in zip(found[0]["steps"], BATCHES, strict=True):
        at_least += max(counts[:workers])
        # Who has left is ahead of its neighbours by a step or two when the last one leaves.
        assert at_least <= steps <= at_least + 2 * workers
        at_least = steps
    assert [rank["mean"] for rank in found] == [found[0]["mean"]] * workers  # averaged() is safe
    assert gap(found[0]["mean"], tensor([rank["local"] for rank in found]).mean(0)) < NEAR


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("workers", WORKERS)
def test_every_topology_gets_through(runs: Runs, workers: int, topology: str) -> None:
    steps = [rank[topology] for rank in runs.results(workers, "uneven_topologies")]
    assert steps == [steps[0]] * workers
    assert steps[0] >= sum(max(counts[:workers]) for counts in BATCHES[:2])


@pytest.mark.parametrize("workers", WORKERS)
def test_the_mean_moves_by_the_updates_alone(runs: Runs, workers: int) -> None:
    """Mixing without a step conserves it, and those that have left go on mixing."""
    found = runs.results(workers, "uneven_moved")
    start, updates, end = (
        tensor([rank[key] for rank in found]).mean(0) for key in ("start", "updates", "end")
    )
    assert gap(end, start + updates) < NEAR
    assert float(updates.abs().max()) > 0.01
    assert gap(found[1]["end"], tensor(found[1]["left_with"])) > 0.001


def alone(name: str, case: str, workers: int) -> nn.Module:
    """What "allreduce" has to be: one model, where a worker without a batch counts as zero."""
    model = mlp()
    optimizer = OPTIMIZERS[name](model)
    scheduler = StepLR(optimizer, 2, 0.5)
    for epoch in EPOCHS_OF[case]:
        counts = [count or case == "twice" for count in BATCHES[epoch][:workers]]
        for step in range(max(counts)):
            optimizer.zero_grad()
            for rank in (rank for rank in range(workers) if step < counts[rank]):
                (loss_of(model, batch(step, rank)) / workers).backward()
                if case in ("accumulated", "twice"):
                    (loss_of(model, batch(step + 50, rank)) / workers).backward()
            if case == "clipped":
                nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            optimizer.step()
            if case == "clipped":
                scheduler.step()
    return model


@pytest.mark.parametrize("case", EPOCHS_OF)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("workers", WORKERS)
def test_allreduce_counts_a_worker_without_a_batch_as_zero(
    runs: Runs, workers: int, optimizer: str, case: str
) -> None:
    found = [rank[f"{optimizer} {case}"] for rank in runs.results(workers, "uneven_as_one")]
    assert found == [found[0]] * workers  # the same bits, also of the optimizer's state
    expected = alone(optimizer, case, workers)
    values = torch.cat([p.detach().double().flatten() for p in expected.parameters()])
    near = NEAR if optimizer in ("sgd", "momentum") else 1e-4  # others divide by what is near zero
    assert gap(found[0]["end"], values) < near


@pytest.mark.parametrize("workers", WORKERS)
def test_gradient_accumulation_with_a_rest(runs: Runs, workers: int) -> None:
    steps = runs.results(workers, "uneven_accumulated")
    assert steps == [steps[0]] * workers
    assert steps[0] >= 9 // 2 + 8 // 2


@pytest.mark.parametrize("workers", WORKERS)
def test_collective_methods_are_refused_inside(runs: Runs, workers: int) -> None:
    for rank in runs.results(workers, "uneven_misused"):
        for name in ("averaged", "disagreement", "save", "load", "uneven"):
            assert rank[name]["type"] == "RuntimeError"
            assert f"{name}() inside uneven()" in rank[name]["message"]
        assert rank["apart"] < 1


def test_an_exception_leaves_at_once_and_the_others_are_told() -> None:
    ranks = gossip_ranks.run(["uneven_thrown"], [3])
    found = gossip_ranks.results(ranks, "uneven_thrown")
    assert found[2]["type"] == "ZeroDivisionError"
    assert found[2]["steps"] == 2
    assert [rank["type"] for rank in found[:2]] == ["TransportError"] * 2
    assert max(rank["took_s"] for rank in found) < 60


def test_a_worker_that_dies_is_noticed_by_those_that_have_left() -> None:
    ranks = gossip_ranks.run(["uneven_killed"], [3])
    assert [rank.code for rank in ranks] == [0, 0, -9]
    for rank in gossip_ranks.results(ranks[:2], "uneven_killed"):
        assert rank["type"] == "TransportError"
        assert rank["took_s"] < 60


def stores(kind: str, workers: int) -> list[dist.Store]:
    if kind == "hash":
        return [dist.HashStore()] * workers
    first = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    others = [dist.TCPStore("127.0.0.1", first.port) for _ in range(1, workers)]
    return [first, *others]


@pytest.mark.parametrize("kind", ["hash", "tcp"])
@pytest.mark.parametrize("seed", range(4))
def test_the_agreement_ends_for_all_at_the_same_step(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    batches = [rng.randrange(20) for _ in range(4)]

    def work(rank: int, store: dist.Store) -> tuple[int, uneven.Tally]:
        agreement = uneven.Agreement(store, str(seed), rank, len(batches))
        time.sleep(batches[rank] / 2000)
        steps = batches[rank]
        agreement.leave(steps)
        while agreement.may_begin(steps + 1):
            steps += 1
            time.sleep(0.0005)
        return steps, agreement.tally

    all_stores = stores(kind, len(batches))  # the first one serves until all have ended
    with ThreadPoolExecutor(len(batches)) as pool:
        found = list(pool.map(work, range(len(batches)), all_stores))
    tally = found[0][1]
    assert [each for _, each in found] == [tally] * 4, seed
    assert [steps for steps, _ in found] == [tally.target] * 4, seed
    assert tally[1:3] == (min(batches), max(batches)), seed
    assert tally.target >= max(batches), seed
    assert tally.closed_by in range(4), seed


@pytest.mark.parametrize("pattern", ["cwa", "atc", "allreduce"])
def test_a_worker_alone(pattern: str) -> None:
    model, plain = pair()
    optimizer, reference = Adam(model.parameters(), lr=0.01), Adam(plain.parameters(), lr=0.01)
    with Gossip(model, optimizer, pattern=pattern) as gossip:
        for epoch in range(2):
            with gossip.uneven():
                train(model, optimizer, range(5 * epoch, 5 * epoch + 5))
                assert gossip.disagreement() == 0  # nobody else could have left
        assert gossip.stats()["steps"] == 10
    train(plain, reference, range(10))
    assert difference(model, plain) < NEAR
