"""lost="go_on" with FSDP or DDP inside hosts: a host that is lost costs itself."""

from pathlib import Path
from typing import Any

import gossip_ranks
import pytest
from gossip_scenarios_lost import LAST, STEPS
from gossip_scenarios_mesh import ADAMW, small, whole
from gossip_support import batch, gap, loss_of

KILLED = -9
RUNS = [f"{inside} {pattern}" for inside in ("fsdp", "ddp") for pattern in ("cwa", "allreduce")]


@pytest.fixture(scope="module")
def left(folder: Path) -> list[Any]:
    ranks = gossip_ranks.run(["lost_hosts"], [2, 2, 2])
    assert [rank.code for rank in ranks] == [0, 0, 0, 0, KILLED, KILLED], [
        rank.stderr for rank in ranks
    ]
    return gossip_ranks.results(ranks[:4], "lost_hosts")


@pytest.mark.parametrize("run", RUNS)
def test_the_other_hosts_go_on_as_whole_models(left: list[Any], run: str) -> None:
    found = [rank[run] for rank in left]
    first, same, second, _ = found
    assert first["own"] == same["own"]  # two ranks of a host have one model
    assert all(rank["mean"] == first["mean"] for rank in found)
    assert (
        gap(first["mean"], [(a + b) / 2 for a, b in zip(first["own"], second["own"], strict=True)])
        < 1e-6
    )
    for rank in found:
        assert rank["hosts"] == [0, 1]
        assert list(rank["lost"]) == ["2"]
        assert rank["disagreement"] == pytest.approx(first["disagreement"], rel=1e-6)
        assert sum("worker" in file for file in rank["files"]) == 2


@pytest.mark.parametrize("inside", ["fsdp", "ddp"])
def test_means_of_gradients_are_over_the_ranks_that_are_left(left: list[Any], inside: str) -> None:
    model = small()
    optimizer = ADAMW(model.parameters())
    for step in range(STEPS):
        ranks = range(6 if step < LAST else 4)
        optimizer.zero_grad()
        for rank in ranks:
            (loss_of(model, batch(step, rank)) / len(ranks)).backward()
        optimizer.step()
    for rank in left:
        assert gap(rank[f"{inside} allreduce"]["own"], whole(model)) < 1e-5
