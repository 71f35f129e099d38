"""Gossip between replicas of several ranks each: meshes, DDP and FSDP inside, what is refused."""

from pathlib import Path
from typing import Any

import gossip_ranks
import pytest
import torch
from gossip_scenarios_mesh import RUNS, STEPS, TWINS, small, whole

NEAR = 1e-6


@pytest.fixture(scope="module")
def four(folder: Path) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(
        [
            *("replicas", "sharded_ends", "refused_groups", "averaged_around_ddp"),
            *("like_hsdp", "shards_without_gradients", "sharded_saves"),
        ],
        [2, 2],
    )


def gap(found: list[float], expected: list[float]) -> float:
    scale = max(map(abs, expected))
    return max(abs(x - y) for x, y in zip(found, expected, strict=True)) / scale


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_replicas_of_two_gossip_like_workers(
    four: list[gossip_ranks.Rank], kind: str, run: str
) -> None:
    for rank in gossip_ranks.results(four, "replicas"):
        found, plain = rank[f"{kind} {run}"], rank[f"plain {run}"]
        for moment in ("start", "average", "end"):
            assert gap(found[moment], plain[moment]) < NEAR
        for value in ("disagreement", "loss", "local_loss"):
            assert found[value] == pytest.approx(plain[value], rel=1e-5)
        assert found["restored"]
        assert found["steps"] == STEPS


def test_allreduce_between_replicas_of_ddp_is_the_mean_over_all(
    four: list[gossip_ranks.Rank],
) -> None:
    assert max(gossip_ranks.results(four, "averaged_around_ddp")) < NEAR


@pytest.mark.parametrize("run", RUNS)
def test_what_is_compared_is_training_with_two_opinions(
    four: list[gossip_ranks.Rank], run: str
) -> None:
    first, _, second, _ = (rank[f"plain {run}"] for rank in gossip_ranks.results(four, "replicas"))
    assert gap(first["end"], first["start"]) > 1e-2
    if run.startswith(("cwa", "extra")):
        assert first["disagreement"] > 1e-3
        assert gap(first["end"], second["end"]) > 1e-3
    else:
        assert first["disagreement"] < NEAR


@pytest.mark.parametrize("name", TWINS)
def test_allreduce_of_shards_is_fsdp_over_both_dimensions(
    four: list[gossip_ranks.Rank], name: str
) -> None:
    # Muon iterates in bfloat16, where the last bit of a gradient is a 256th.
    near = 1e-2 if name == "muon" else NEAR
    ranks = [rank[name] for rank in gossip_ranks.results(four, "like_hsdp")]
    for rank in ranks:
        assert rank["apart"] < near
        assert rank["moved"] > 10 * near
        assert rank["end"] == ranks[0]["end"]


def test_gradients_of_shards_are_averaged_once(four: list[gossip_ranks.Rank]) -> None:
    for number, rank in enumerate(gossip_ranks.results(four, "shards_without_gradients")):
        # Of replicas with inputs of 1 and 2; who has none counts as zero.
        assert rank["apart"] == [[0.5] * 16, [1.0] * 16]
        assert rank["one"] == [[1.5] * 16, None]
        assert rank["anew"] == rank["one"]
        assert rank["alone"] == [[number // 2 + 1.0] * 16, None]
        assert rank["missed"] == [[1.5] * 16, None]


def test_a_loaded_state_and_the_first_replica_count(four: list[gossip_ranks.Rank]) -> None:
    for rank in gossip_ranks.results(four, "sharded_ends"):
        assert rank["start"] == whole(small(0))
        assert not rank["is_fused"]
        assert rank["mixed"] == pytest.approx([1.5] * len(rank["mixed"]))
        shapes = {name: list(value.shape) for name, value in small().state_dict().items()}
        saved = {name: torch.tensor(value) for name, value in rank["saved"].items()}
        assert {name: list(value.shape) for name, value in saved.items()} == shapes
        assert all(bool((value == 1.5).all()) for value in saved.values())


def test_checkpoints_of_shards(four: list[gossip_ranks.Rank]) -> None:
    for number, rank in enumerate(gossip_ranks.results(four, "sharded_saves")):
        assert rank["there"] == [f"step-{step:08}" for step in (3, 3, 4, 4)]
        assert rank["loaded"] == 3, "one group of ranks has no fourth"
        assert rank["resumed"] == rank["end"]
        assert f"float32 shard {number % 2} of 2, got" in rank["plain"]["message"]
        assert "[Gossip] rank" in rank["other"]["message"]
    for rank in gossip_ranks.results(four, "sharded_saves")[:2]:
        assert gap(rank["one replica"], rank["average"]) < NEAR


def test_a_nan_in_one_shard_stops_all_of_its_replica(four: list[gossip_ranks.Rank]) -> None:
    found = [rank["nan"] for rank in gossip_ranks.results(four, "sharded_ends")]
    assert [bool(said) for said in found] == [True, True, False, False]
    assert "got another number in a shard of another rank" in found[0]["message"]
    assert (
        "parameter '0.weight' on worker 0 in step 2 must be finite, got nan" in found[1]["message"]
    )


REFUSED = {
    "a mesh of two dimensions": ("('gossip', 'inner') of sizes (2, 2)", "pass mesh['gossip']"),
    "a mesh without names": ("got no names", "mesh_dim_names"),
    "a list of ranks": ("got [0, 1]", "torch.distributed.new_group(ranks)"),
    "DDP over the same ranks": (
        "DistributedDataParallel, which would average every gradient over ranks",
        "to gossip with each other",
    ),
    "DDP among all ranks": (
        "DistributedDataParallel, which would average every gradient over ranks",
        "got [0, 1, 2, 3]",
    ),
    "compiled DDP": (
        "DistributedDataParallel, which would average every gradient over ranks",
        "got [0, 1, 2, 3]",
    ),
    "shards of one model": ("parameter '0.weight' is spread", 'group=mesh["gossip"]'),
    "shards among all ranks": ("parameter '0.weight' is spread", "got [0, 1, 2, 3]"),
    "shards of both": ("averages gradients over both by itself", 'group=mesh["gossip"]'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(four: list[gossip_ranks.Rank], case: str) -> None:
    for number, rank in enumerate(gossip_ranks.results(four, "refused_groups")):
        said: dict[str, Any] = rank[case]
        assert said["type"] == "ValueError"
        assert said["took_s"] < 30
        for words in (*REFUSED[case], "[Gossip]"):
            assert words in said["message"], f"rank {number}: {said['message']}"


def test_a_rank_outside_is_told_so(four: list[gossip_ranks.Rank]) -> None:
    found = [rank["not in the group"] for rank in gossip_ranks.results(four, "refused_groups")]
    assert found[:3] == [{}] * 3
    assert "this rank is not in the group" in found[3]["message"]
