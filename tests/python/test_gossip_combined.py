"""Shards, several optimizers, half precision, the device and resumed runs, two or three at once."""

from pathlib import Path

import gossip_ranks
import pytest
from gossip_scenarios_combined import CASES, PATTERNS, STEPS
from gossip_support import gap

NEAR = 1e-6
HOSTS = [2, 2]
TOGETHER = (
    *("two_on_shards", "two_on_device"),
    *("half_shards_mixing", "half_shards_training", "straight"),
)


@pytest.fixture(scope="module")
def four(folder: Path) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run([f"combined_{name}" for name in TOGETHER], HOSTS, timeout_s=300)


@pytest.fixture(scope="module")
def resumed(folder: Path, four: list[gossip_ranks.Rank]) -> list[gossip_ranks.Rank]:
    ended = gossip_ranks.run(["combined_killed"], HOSTS)
    assert [rank.code for rank in ended] == [-9] * 4, ended[0].said
    return gossip_ranks.run(["combined_resumed"], HOSTS)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_two_optimizers_on_shards_are_those_of_plain_workers(
    four: list[gossip_ranks.Rank], pattern: str
) -> None:
    both = [rank[pattern] for rank in gossip_ranks.results(four, "combined_two_on_shards")]
    for found in both:
        assert gap(found["shards"]["end"], found["plain"]["end"]) < NEAR
        assert gap(found["shards"]["mean"], found["plain"]["mean"]) < NEAR
        assert found["shards"]["steps"] == found["plain"]["steps"] == STEPS
    differ = gap(both[0]["plain"]["end"], both[2]["plain"]["end"])
    assert differ > 1e-3 if pattern == "cwa" else differ < NEAR


@pytest.mark.parametrize("kind", ["plain", "shards"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_two_optimizers_on_a_device_are_those_in_cpu_memory(
    four: list[gossip_ranks.Rank], kind: str, pattern: str
) -> None:
    for found in gossip_ranks.results(four, "combined_two_on_device"):
        assert found[f"{kind} {pattern}"] <= NEAR


def test_replicas_in_half_precision_come_as_near_as_in_float32(
    four: list[gossip_ranks.Rank],
) -> None:
    for found in gossip_ranks.results(four, "combined_half_shards_mixing"):
        (single_before, single), (before, low) = found.values()
        assert before == pytest.approx(single_before, rel=0.1)
        assert low < before / 10
        assert single < before / 10


def test_the_loss_of_shards_in_half_precision_is_that_of_float32(
    four: list[gossip_ranks.Rank],
) -> None:
    for found in gossip_ranks.results(four, "combined_half_shards_training"):
        single, low = found["torch.float32"], found["torch.bfloat16"]
        assert low["loss"] == pytest.approx(single["loss"], rel=0.01)
        assert single["apart"] / 2 < low["apart"] < 2 * single["apart"]


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("allreduce")])
def test_averaged_gradients_keep_replicas_equal(four: list[gossip_ranks.Rank], name: str) -> None:
    ranks = [rank[name] for rank in gossip_ranks.results(four, "combined_straight")]
    assert ranks[0]["parameters"] == ranks[2]["parameters"]
    assert ranks[1] == ranks[3]


@pytest.mark.parametrize("name", CASES)
def test_a_killed_run_goes_on_with_equal_bits(
    four: list[gossip_ranks.Rank], resumed: list[gossip_ranks.Rank], name: str
) -> None:
    expected = gossip_ranks.results(four, "combined_straight")
    found = gossip_ranks.results(resumed, "combined_resumed")
    assert [rank[name]["steps"] for rank in found] == [8] * 4
    for rank, other in zip(found, expected, strict=True):
        assert rank[name] == other[name]
