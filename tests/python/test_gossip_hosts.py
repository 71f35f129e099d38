"""FSDP or DDP inside hosts: a host that is lost costs itself, one that is told to stop stops as a
whole, and copies of a model stay equal."""

from pathlib import Path
from typing import Any

import gossip_ranks
import pytest
from gossip_scenarios_lost import LAST, STEPS
from gossip_scenarios_mesh import ADAMW, small, whole
from gossip_support import batch, gap, loss_of

KILLED = -9
TOLD = 128 + 15


@pytest.fixture(scope="module")
def left(folder: Path) -> list[Any]:
    ranks = gossip_ranks.run(["lost_hosts"], [2, 2, 2])
    assert [rank.code for rank in ranks] == [0, 0, 0, 0, KILLED, KILLED], [
        rank.stderr for rank in ranks
    ]
    return gossip_ranks.results(ranks[:4], "lost_hosts")


@pytest.mark.parametrize("pattern", ["cwa", "allreduce"])
def test_the_other_hosts_go_on_as_whole_models(left: list[Any], pattern: str) -> None:
    found = [rank[pattern] for rank in left]
    first, same, second, _ = found
    assert first["own"] == same["own"]  # two ranks of a host have one model
    assert all(rank["mean"] == first["mean"] for rank in found)
    mean = [(one + other) / 2 for one, other in zip(first["own"], second["own"], strict=True)]
    assert gap(first["mean"], mean) < 1e-6
    for rank in found:
        assert rank["hosts"] == [0, 1]
        assert list(rank["lost"]) == ["2"]
        assert rank["disagreement"] == pytest.approx(first["disagreement"], rel=1e-6)
        assert sum("worker" in file for file in rank["files"]) == 2


def test_means_of_gradients_are_over_the_hosts_that_are_left(left: list[Any]) -> None:
    model = small()
    optimizer = ADAMW(model.parameters())
    for step in range(STEPS):
        ranks = range(6 if step < LAST else 4)
        optimizer.zero_grad()
        for rank in ranks:
            (loss_of(model, batch(step, rank)) / len(ranks)).backward()
        optimizer.step()
    for rank in left:
        assert gap(rank["allreduce"]["own"], whole(model)) < 1e-5


@pytest.fixture(scope="module")
def four(folder: Path) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(["stopped_hosts", "refused_copies"], [2, 2])


@pytest.mark.parametrize("inside", ["fsdp", "ddp"])
def test_all_ranks_stop_after_one_step_and_save_it(
    four: list[gossip_ranks.Rank], inside: str
) -> None:
    found = gossip_ranks.results(four, "stopped_hosts")
    steps, code = found[0][inside]
    assert code == TOLD
    assert all(rank[inside] == [steps, code] for rank in found)
    assert all(rank[f"{inside} loaded"] == steps for rank in found)


def test_a_host_leaves_as_a_whole(four: list[gossip_ranks.Rank]) -> None:
    *others, one, two = (rank["leaves"] for rank in gossip_ranks.results(four, "stopped_hosts"))
    assert one == two == [6, TOLD]
    assert others == [[STEPS, None]] * 2


@pytest.mark.parametrize(
    ("case", "got"),
    [("lost", "lost='go_on'"), ("late", "late='skip'"), ("loss", "which follows the loss")],
)
def test_what_would_part_copies_is_refused(
    four: list[gossip_ranks.Rank], case: str, got: str
) -> None:
    for rank in gossip_ranks.results(four, "refused_copies"):
        assert rank[case]["type"] == "ValueError"
        assert got in rank[case]["message"]
        assert "must stay equal" in rank[case]["message"]
