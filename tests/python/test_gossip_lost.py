"""lost="go_on": a worker that is lost costs its edges, and the others go on."""

import json
from pathlib import Path
from typing import Any

import gossip_ranks
import pytest
import torch
from gossip_scenarios_basic import numbers
from gossip_scenarios_lost import LAST, STEPS, Bowl, adamw, rmsprop
from gossip_support import batch, gap, loss_of, mlp
from torch import nn

KILLED = -9
LOSSES = {
    "store_holder_lost": ([4], 0),
    "lost_beside_its_host": ([2, 2], 3),
    "lost_while_skipping": ([2, 2], 3),
    "lost_among_own_steps": ([3], 1),
    "lost_among_codes": ([1, 1, 1], 1),
}
"""By scenario: the hosts, and who is lost."""


def left(ranks: list[gossip_ranks.Rank], victim: int, scenario: str) -> list[Any]:
    """What the others found, who have all ended well."""
    assert [rank.code for rank in ranks] == [
        KILLED if rank == victim else 0 for rank in range(len(ranks))
    ], [rank.stderr for rank in ranks]
    return gossip_ranks.results(ranks[:victim] + ranks[victim + 1 :], scenario)


def check_those_left(found: list[Any], victim: int) -> None:
    for rank in found:
        assert rank["steps"] == STEPS
        assert rank["mean"] == found[0]["mean"]  # the same bits
        assert rank["disagreement"] == found[0]["disagreement"] > 0
        assert rank["is back"]
        assert set(rank["lost"]) <= {str(victim)}
    every = [sum(values) / len(found) for values in zip(*(r["own"] for r in found), strict=True)]
    assert gap(found[0]["mean"], every) < 1e-6
    others = [rank for rank in range(len(found) + 1) if rank != victim]
    for rank in found:
        assert rank["rank mean"] == pytest.approx(sum(others) / len(others))
        assert rank["said"] == [[other, 10 * other] for other in others]


@pytest.fixture(scope="module")
def ring(folder: Path) -> list[Any]:
    ranks = gossip_ranks.run(["needs_all", "lost_on_a_ring"], [4])
    refusals = gossip_ranks.results(ranks, "needs_all")
    return [left(ranks, 2, "lost_on_a_ring"), refusals]


def test_the_others_do_all_steps_and_have_one_mean(ring: list[Any]) -> None:
    check_those_left(ring[0], 2)
    assert all(rank["is fused"] for rank in ring[0])
    assert [list(rank["lost"]) for rank in ring[0]] == [[], ["2"], ["2"]]  # its neighbours


def test_metrics_name_the_lost_worker_once(ring: list[Any], folder: Path) -> None:
    for rank, lost in ((0, []), (1, [[2]]), (3, [[2]])):
        (path,) = (folder / "metrics").glob(f"*{rank}*")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        named = [line for line in lines if "lost" in line]
        assert [line["lost"] for line in named] == lost
        assert all(LAST - 1 <= line["step"] <= LAST + 1 for line in named)


def test_a_checkpoint_holds_those_that_are_left(ring: list[Any]) -> None:
    for rank in ring[0]:
        assert sum("worker" in name for name in rank["files"]) == 3


@pytest.mark.parametrize("workers", [3, 4])
def test_it_is_loaded_by_as_many_and_by_more(ring: list[Any], folder: Path, workers: int) -> None:
    saved = [rank["saved"] for rank in ring[0]]
    found = gossip_ranks.results(
        gossip_ranks.run(["loads_what_is_left"], [workers]), "loads_what_is_left"
    )
    for place, rank in enumerate(found):
        assert rank["steps"] == STEPS
        assert rank["apart"] > 0
        if workers == 3:
            assert rank["loaded"] == saved[place]
        else:
            assert gap(rank["loaded"]["parameters"], ring[0][0]["mean"]) < 1e-6


@pytest.mark.parametrize("scenario", LOSSES)
def test_others_go_on(folder: Path, scenario: str) -> None:
    hosts, victim = LOSSES[scenario]
    found = left(gossip_ranks.run([scenario], hosts), victim, scenario)
    check_those_left(found, victim)
    # Who skips late ones may have done all steps before the other one is lost.
    assert any(rank["lost"] for rank in found) or scenario == "lost_while_skipping"
    for rank in found:
        assert rank["is fused"] == (scenario != "lost_among_own_steps")
        files = rank.get("files", ["worker"] * len(found))
        assert sum("worker" in name for name in files) == len(found)


def test_a_ring_is_closed_again(folder: Path) -> None:
    ranks = gossip_ranks.run(["ring_closed_again"], [2, 2])  # in shared memory and over TCP
    zero, two, three = left(ranks, 1, "ring_closed_again")
    assert zero == [["3"], ["2", "3"]]
    assert two == [["3"], ["0", "3"]]
    assert three == [["0", "2"], ["0", "2"]]
    said = "after step 32 the topology is formed anew among: 0, 2, 3"
    assert [said in rank.stderr for rank in ranks] == [True, False, False, False]
    for rank in (0, 2, 3):
        (path,) = (folder / "anew").glob(f"*{rank}*")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [(line["step"], line["among"]) for line in lines if "among" in line] == [
            (32, [0, 2, 3])
        ]


def plain_steps(
    model: nn.Module, optimizer: torch.optim.Optimizer, victim: int, parts: int
) -> list[float]:
    """With means over four, and over the other three from the step on that the victim left."""
    for step in range(STEPS):
        there = [rank for rank in range(4) if rank != victim or step < LAST - 1]
        optimizer.zero_grad()
        for part in range(parts):
            for rank in there:
                (loss_of(model, batch(step + 100 * part, rank)) / len(there)).backward()
        optimizer.step()
    return numbers(model)


REPLICAS = {"replica_lost": (2, adamw, 1), "replica_lost_among_passes": (0, rmsprop, 2)}


@pytest.mark.parametrize("scenario", REPLICAS)
def test_replicas_step_with_the_mean_of_those_that_are_left(folder: Path, scenario: str) -> None:
    victim, make, parts = REPLICAS[scenario]
    found = left(gossip_ranks.run([scenario], [2, 2]), victim, scenario)
    model = mlp()
    right = plain_steps(model, make(model), victim, parts)
    for rank in found:
        assert rank["steps"] == STEPS
        assert rank["own"] == found[0]["own"]  # the same bits
        assert gap(rank["mean"], rank["own"]) < 1e-6
        assert rank["disagreement"] < 1e-6
        assert list(rank["lost"]) == [str(victim)]
        assert gap(rank["own"], right) < 1e-5
        files = rank.get("files", ["worker"] * 3)
        assert sum("worker" in name for name in files) == 3


SUMS = {"tracker_lost": (1, True), "correction_lost": (2, False)}


@pytest.mark.parametrize("scenario", SUMS)
def test_sums_over_all_begin_anew_among_those_that_are_left(scenario: str) -> None:
    victim, is_fused = SUMS[scenario]
    found = left(gossip_ranks.run([scenario], [1] * 5), victim, scenario)
    bowls = [Bowl(rank) for rank in range(5) if rank != victim]
    top = sum(bowl.curvature * bowl.center for bowl in bowls)
    optimum = (top / sum(bowl.curvature for bowl in bowls)).tolist()
    for rank in found:
        assert gap(rank["x"], optimum) < 1e-9
        assert list(rank["lost"]) == [str(victim)]
        assert rank["is fused"] == is_fused


def test_one_that_stood_still_at_the_start_ends_by_itself(folder: Path) -> None:
    ranks = gossip_ranks.run(["stood_still_at_the_start"], [4])
    found = gossip_ranks.results(ranks, "stood_still_at_the_start")
    assert [rank.code for rank in ranks] == [0] * 4
    stopped = found.pop(0)
    assert found == [{"steps": 12, "other has ended": True}] * 3
    assert stopped.get("type") == "TransportError", ranks[0].stderr
    assert "go on without" in stopped["message"]


def test_one_that_stood_still_ends_by_itself(folder: Path) -> None:
    ranks = gossip_ranks.run(["stood_still"], [4])
    found = gossip_ranks.results(ranks, "stood_still")
    assert [rank.code for rank in ranks] == [0] * 4
    stopped = found.pop(2)
    check_those_left(found, 2)
    assert all(rank["other has ended"] for rank in found)
    assert stopped["type"] == "TransportError"
    assert "the others go on without this worker" in stopped["message"]


def test_calls_end_among_those_that_are_left(folder: Path) -> None:
    ranks = gossip_ranks.run(["lost_in_calls"], [6])
    assert [rank.code for rank in ranks] == [KILLED, 0, 0, KILLED, KILLED, KILLED]
    found = gossip_ranks.results(ranks[1:3], "lost_in_calls")
    for rank in found:
        assert rank["begun"] == found[0]["begun"]
        assert rank["half done"] == found[0]["half done"]
        assert rank["steps"] == 7
    for name, workers in (("write_worker_file", 3), ("commit_checkpoint", 2)):
        for rank in found:
            assert sum("worker" in file for file in rank[name]["files"]) == workers
            assert not [file for file in rank[name]["folder"] if "tmp" in file]


REFUSED = {
    "directed": ("ValueError", "one_peer_exponential"),
    "c10d": ("ValueError", "transport='c10d'"),
    "uneven": ("RuntimeError", "uneven() waits for all workers"),
    "soon": ("ValueError", "3 or more, got suspect_s=2, lost='go_on'; leave it out"),
    "not at all": ("ValueError", "got suspect_s=60, lost='error'; leave it out"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_needs_all_workers_is_refused(ring: list[Any], case: str) -> None:
    kind, words = REFUSED[case]
    for rank in ring[1]:
        assert rank[case]["type"] == kind
        assert words in rank[case]["message"]


def test_by_default_a_lost_worker_is_an_error() -> None:
    ranks = gossip_ranks.run(["lost_by_default"], [3])
    assert [rank.code for rank in ranks] == [0, 0, KILLED]
    for found in gossip_ranks.results(ranks[:2], "lost_by_default"):
        assert found["type"] == "TransportError"
