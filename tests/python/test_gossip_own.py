"""Schedules and methods of one's own: two workers, beside the same by hand in numpy."""

import math
from itertools import pairwise
from typing import Any

import gossip_ranks
import numpy as np
import pytest
import torch
from gossip_scenarios_own import LOSSES, LR, SCENARIOS, A, B
from torch import nn
from torch.optim import SGD

import gossamer
from gossamer.session import patterns

NEAR = 1e-12
JOINT = [[0.5, 0.5], [0.5, 0.5]]


@pytest.fixture(scope="module")
def ranks() -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(list(SCENARIOS), [1, 1])


def expected(matrices: list[Any]) -> np.ndarray:
    """x ← W (x - lr g) with the gradients of the scenarios: by step, rank and element."""
    x = np.array([[1.0, -1.0]] * 2)
    targets = np.array([[3.0, 1.0], [6.0, 2.0]])
    found = []
    for matrix in matrices:
        x = np.array(matrix) @ (x - LR * (x - targets))
        found.append(x)
    return np.array(found)


def adaptive_rounds(steps: int, first: int) -> list[Any]:
    """The lecture's AGA: after a global average the next comes in ⌈(F₀/F)^¼ H⌉ steps."""
    losses = [sum(both) / 2 for both in zip(*LOSSES, strict=True)]
    rounds, last, distance = [], 0, first
    for k in range(steps):
        is_global = k + 1 - last == distance
        rounds.append(JOINT if is_global else A)
        if is_global:
            last, distance = k + 1, math.ceil((losses[0] / losses[k]) ** 0.25 * first)
    return rounds


def gap(found: Any, values: np.ndarray) -> float:
    return float(np.abs(np.array(found) - values).max())


@pytest.mark.parametrize("kind", ["lists", "numpy", "tensors", "file"])
def test_matrices_are_mixed_with_in_turn(ranks: list[gossip_ranks.Rank], kind: str) -> None:
    values = expected([A, B] * 6)
    for rank, found in enumerate(gossip_ranks.results(ranks, "own_matrices")):
        assert gap(found[kind], values[:, rank]) < NEAR


def test_workers_who_read_other_weights_are_told(ranks: list[gossip_ranks.Rank]) -> None:
    for found in gossip_ranks.results(ranks, "other_file"):
        assert found["type"] == "ValueError"
        assert "all ranks must be given the same" in found["message"]
        assert found["message"].count("topology weights.json#") == 2


def test_without_stagger_the_whole_model_is_averaged_at_once(
    ranks: list[gossip_ranks.Rank],
) -> None:
    for found in gossip_ranks.results(ranks, "staggered"):
        assert [value < NEAR for value in found["False"]] == [False, False, False, True] * 2
        assert min(found["True"]) > 1e-3
        assert "seed 0, stagger True" in found["one only"]["message"]


def test_aga_averages_where_the_agreed_loss_says(ranks: list[gossip_ranks.Rank]) -> None:
    rounds = adaptive_rounds(16, 2)
    at = [k for k, matrix in enumerate(rounds) if matrix is JOINT]
    assert len(at) >= 3 and len({b - a for a, b in pairwise(at)}) > 1
    values = expected(rounds)
    losses = [[0, (LOSSES[0][0] + LOSSES[1][0]) / 2]]
    losses += [[k + 1, (LOSSES[0][k] + LOSSES[1][k]) / 2] for k in at]
    for rank, found in enumerate(gossip_ranks.results(ranks, "aga")):
        assert gap(found["observed"], values[:, rank]) < NEAR
        assert found["fused"] == losses
        assert found["own"] == losses


def test_aga_says_what_it_lacks_before_anything_moves(ranks: list[gossip_ranks.Rank]) -> None:
    for found in gossip_ranks.results(ranks, "aga"):
        assert found["no loss"]["type"] == "ValueError"
        assert "call gossip.observe(loss) before optimizer.step()" in found["no loss"]["message"]
        assert "adaptive_global_average 2' follows the loss" in found["no loss"]["message"]
        assert found["no number"]["type"] == "TypeError"
        assert "a number or a tensor of one element" in found["no number"]["message"]
        assert found["weight"] == [1.0, -1.0]


def test_aga_goes_on_after_load_and_with_more_parameters(ranks: list[gossip_ranks.Rank]) -> None:
    values = expected(adaptive_rounds(16, 2))[-1]
    for rank, (through, loaded) in enumerate(gossip_ranks.results(ranks, "aga_goes_on")):
        assert gap(through, values[rank]) < NEAR
        assert loaded == through


def test_aga_takes_the_last_loss_of_who_has_no_batch(ranks: list[gossip_ranks.Rank]) -> None:
    first, other = gossip_ranks.results(ranks, "aga_uneven")
    assert first == other
    assert first[:3] == [[0, 8.0], [2, 8.0], [4, 8.0]]


def test_a_mixer_mixes_in_place_whatever_it_is_given(ranks: list[gossip_ranks.Rank]) -> None:
    found = gossip_ranks.results(ranks, "mixed")
    x = np.array([rank["values"][0] for rank in found])
    for k in range(5):
        if k == 2:
            # Real numbers, and the real parts of the complex ones, which come last.
            step = np.ones(x.shape[1])
            step[-13::2] = 0
            x = x + np.outer([1, 2], step)
        x = np.array([A, B][k % 2]) @ x
        for rank in range(2):
            assert gap(found[rank]["values"][k + 1], x[rank]) < 1e-6  # one tensor is float32
            assert gap(found[rank]["values"][k + 1][:16], x[rank, :16]) < NEAR
    mean = np.mean([rank["own"] for rank in found], axis=0)
    for number, rank in enumerate(found):
        assert gap(rank["mean"], mean) < NEAR
        assert rank["stats"] == {"steps": 5, "peers": [1 - number]}
        assert rank["in place"]
        assert rank["closed"]["type"] == "ValueError"
        assert "was closed" in rank["closed"]["message"]


def test_a_mixer_starts_as_it_is_told_and_says_what_is_wrong(
    ranks: list[gossip_ranks.Rank],
) -> None:
    for found in gossip_ranks.results(ranks, "mixer_options"):
        assert found["broadcast"] == 1
        assert found["mixed"] == 1.5
        assert "call mix(loss)" in found["no loss"]["message"]
        assert found["adaptive"] == 0.5
        assert "'tensor 0' [3] float32, got 'tensor 0' [4]" in found["shapes"]["message"]
        assert "must be tensors, got float at place 0" in found["numbers"]["message"]
        assert "dense tensor of floating-point numbers" in found["whole"]["message"]
        assert "needs doubly stochastic W" in found["column"]["message"]


def test_the_method_of_the_guide_is_gradient_tracking(ranks: list[gossip_ranks.Rank]) -> None:
    for found in gossip_ranks.results(ranks, "own_gradient_tracking"):
        assert gap(found["own"], np.array(found["pattern"])) < NEAR


# In one process.


def test_matrices_of_any_kind_and_modifiers() -> None:
    lists = gossamer.schedule_from_matrices([A, B])
    assert lists.workers_per_host == [2]
    assert lists.matrix(3) == B
    assert (
        gossamer.schedule_from_matrices(torch.tensor([A, B], dtype=torch.float64)).name
        == lists.name
    )
    third: Any = np.full((3, 3), 1 / 3, dtype=np.float32)
    assert gossamer.schedule_from_matrices([third], [1, 2]).matrix(0) == [[1 / 3] * 3] * 3
    lazy = gossamer.schedule_from_matrices([A], lazy=True, global_average_every=2)
    assert [lazy.matrix(0)[0], lazy.matrix(1)[0]] == [[0.875, 0.125], [0.5, 0.5]]
    assert gossamer.schedule_from_matrices([A], adaptive_average=4).loss_driven
    ring = gossamer.make_schedule("ring", [2, 2], adaptive_average=4)
    assert ring.loss_driven and ring.period == 0


def test_rows_that_sum_to_1_are_not_what_push_sum_needs() -> None:
    rows = gossamer.schedule_from_matrices([[[0.5, 0.5], [0.2, 0.8]]])
    with pytest.raises(ValueError, match=r"columns sum to 1.*give the transposed matrices"):
        patterns.check_schedule("push_sum", None, rows)
    columns = gossamer.schedule_from_matrices([[[0.5, 0.2], [0.5, 0.8]]])
    patterns.check_schedule("push_sum", None, columns)


@pytest.mark.parametrize(
    ("matrices", "said"),
    [
        (A, "round 0: W must have rows and columns, got shape (2,); give a list of matrices"),
        ([A, [[1.0], [0.5, 0.5]]], "round 1: W must be a square of numbers, got list"),
        ([A, [[1.0, 0.5]]], "round 1: W must have a row for each of the 2 workers, got 1 rows"),
        ([[[1.0, 0.5], [0.5, 0.5]]], "row 0 of round 0 with the sum 1.5"),
        ([[[math.nan, 0.5], [0.5, 0.5]]], "finite and not negative, got W[0][0] = nan"),
        ([], "there must be at least one host|needs at least one matrix"),
        (lambda t: A, "must be a list of them, one per round, got function"),
    ],
)
def test_matrices_that_are_none_are_refused(matrices: Any, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        gossamer.schedule_from_matrices(matrices)
    assert any(part in str(caught.value) for part in said.split("|"))


def test_a_schedule_for_other_workers_is_refused() -> None:
    model = nn.Linear(2, 1)
    with pytest.raises(ValueError, match=r"is for 2 workers, got a group of 1"):
        gossamer.Gossip(
            model,
            SGD(model.parameters(), lr=0.1),
            topology=gossamer.schedule_from_matrices([A]),
        )
    with pytest.raises(ValueError, match=r"hosts must have the schedule's 2 workers, got 3"):
        gossamer.schedule_from_matrices([A]).on_hosts([1, 2])


def test_what_cannot_be_mixed_is_refused() -> None:
    x = torch.zeros(4)
    for tensors, said in (
        ([], r"\[Mixer\] tensors must be at least one"),
        ([x, x[2:]], "'tensor 0' and 'tensor 1' share memory"),
        (torch.zeros(2, device="meta"), "cannot be sent"),
        (torch.eye(2).to_sparse(), "must be a dense tensor"),
    ):
        with pytest.raises(ValueError, match=said):
            gossamer.Mixer(tensors)


def test_a_mixer_alone_and_several_at_once() -> None:
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0], requires_grad=True)
    with gossamer.Mixer(x) as first, gossamer.Mixer([x, y], topology="directed_ring") as second:
        first.mix()
        second.mix()
        assert first.mean(x).tolist() == [1.0, 2.0]
    assert x.tolist() == [1.0, 2.0] and y.tolist() == [3.0]
