"""Collective methods: workers that do not agree hear of it at once, those that do go on."""

import json
from pathlib import Path
from typing import Any

import gossip_ranks
import pytest
import torch
from gossip_scenarios_agree import METHODS
from gossip_support import mlp, train
from torch import nn
from torch.optim import SGD

import gossamer
from gossamer import Gossip
from gossamer.report.metrics import read_metrics

SCENARIOS = (
    "unequal_steps another_method loaded_on_one caches late odd_tensors odd_refused means "
    "gathered moving_average uneven_two metrics without_groups"
)
NEAR = 1e-6
Results = list[Any]


@pytest.fixture(scope="module")
def ranks() -> list[gossip_ranks.Rank]:
    return gossip_ranks.run([f"agree_{name}" for name in SCENARIOS.split()], [1, 1])


def results(ranks: list[gossip_ranks.Rank], name: str) -> Results:
    return gossip_ranks.results(ranks, f"agree_{name}")


@pytest.mark.parametrize(
    "case",
    [f"cwa net {method}" for method in METHODS]
    + [f"{kind} averaged()" for kind in ("atc net", "allreduce net", "cwa c10d")],
)
@pytest.mark.parametrize("more", [1, 2])
def test_unequal_steps_are_told_to_both_at_once(
    ranks: list[gossip_ranks.Rank], case: str, more: int
) -> None:
    for found in results(ranks, "unequal_steps"):
        failed = found[f"{case} {more}"]
        assert failed["type"] in ("ValueError", "RuntimeError"), failed  # autograd makes the latter
        assert case.split()[-1] in failed["message"]
        assert "3 on rank 0 and 4 on rank 1" in failed["message"] or (
            "after 3 steps" in failed["message"] and "worker 1 in step" in failed["message"]
        )
        assert "gossip.uneven()" in failed["message"]


def test_another_method_is_refused_and_training_goes_on(ranks: list[gossip_ranks.Rank]) -> None:
    one, other = results(ranks, "another_method")
    assert "mean() is collective, got disagreement() on rank 1" in one["message"]
    assert "disagreement() is collective, got mean() on rank 0" in other["message"]
    assert one["later"] == other["later"] == 0.5


def test_a_state_that_one_rank_alone_loads(ranks: list[gossip_ranks.Rank]) -> None:
    for found in results(ranks, "loaded_on_one"):
        assert found["type"] == "ValueError"
        assert "worker 0 in a start with other parameters or values" in found["message"]


def test_a_buffer_of_another_size_is_named_on_both(ranks: list[gossip_ranks.Rank]) -> None:
    for found in results(ranks, "caches"):
        assert "rank 0 has tensor '0.cache' [2, 3] float32" in found["message"]
        assert "got tensor '0.cache' [3, 3] float32 on rank 1" in found["message"]
        assert found["mean"] == 0.5, "after it was made equal"


def test_who_waits_says_so_and_a_timeout_says_where(ranks: list[gossip_ranks.Rank]) -> None:
    failed = results(ranks, "late")[0]
    assert "[Gossip] rank 0: waiting for rank 1 in averaged()" in ranks[0].stderr
    assert failed["type"] == "TransportError"
    for words in ("receive with worker 1", "in averaged()", "timeout_s=0.5"):
        assert words in failed["message"]


def test_buffers_and_frozen_parameters_of_any_kind(ranks: list[gossip_ranks.Rank]) -> None:
    first = {
        "expanded": 1.0, "windows": 2.5, "sparse": 1 / 3, "csr": 1 / 3, "fp8": 1.0, "scalar": 1.0,
        "whole": 1.0, "quantised": 1.0, "quantised scale": 1.0, "flattened": 1.0,
        "flattened scale": 1.0,
    }  # fmt: skip
    changed = ("expanded", "sparse", "csr", "scalar")
    for rank, found in enumerate(results(ranks, "odd_tensors")):
        assert found["start"] == pytest.approx(first)
        mean = {**first, **{name: 2 * first[name] for name in changed}}
        assert found["mean"] == pytest.approx(mean)
        own = {**first, **{name: (1 + 2 * rank) * first[name] for name in changed}}
        assert found["after"] == pytest.approx(own)
        assert found["loaded"] == pytest.approx(first)


def test_what_cannot_be_sent_is_refused_by_name(ranks: list[gossip_ranks.Rank]) -> None:
    for found in results(ranks, "odd_refused"):
        assert "'opaque' cannot be sent" in found["opaque"]["message"]
        assert "__tensor_flatten__" in found["opaque"]["message"]
        assert "'adjacency.indices' [2, 9] int64, got" in found["sparse"]["message"]


def test_what_each_says(ranks: list[gossip_ranks.Rank]) -> None:
    values = [
        [r, {"rank": r, "text": "é", "none": None, "numbers": [0.5, r * 1e300]}] for r in range(2)
    ]
    for found in results(ranks, "gathered"):
        assert found["said"] == values
        assert found["inside"] == [[0, 0], [1, 1]]
        assert found["in uneven"]["type"] == "RuntimeError"
        assert found["refused"]["type"] == "ValueError"
        assert "rank 1: gather() is of what JSON can say" in found["refused"]["message"]
        assert "got set" in found["refused"]["message"]


def test_means_of_tensors(ranks: list[gossip_ranks.Rank]) -> None:
    for rank, found in enumerate(results(ranks, "means")):
        assert found["means"] == [
            ["torch.float32", [2, 3], "[0.5]"],
            ["torch.float64", [], "[0.5]"],
            ["torch.bfloat16", [3], "[0.5]"],
            ["torch.complex64", [2], "[(0.5+0.5j)]"],
            ["torch.float32", [6, 4], "[0.5]"],
            ["torch.float32", [0], "[]"],
        ]
        assert found["kept"] == [rank] * 5, "what was given stays"
        assert (found["one"], found["inside"]) == (3.5, 5.5)
        assert "got torch.int64 at place 1; convert it with .double()" in found["whole"]["message"]
        assert "got torch.int64 at place 0" in found["whole on one"]["message"]
        assert "rank 0 has tensor 0 [2] torch.float32" in found["shapes"]["message"]


def test_a_moving_average_is_averaged_with_the_model(ranks: list[gossip_ranks.Rank]) -> None:
    one, other = results(ranks, "moving_average")
    mean = (torch.tensor(one["before"]) + torch.tensor(other["before"])) / 2
    assert one["before"] != other["before"]
    for rank, found in enumerate((one, other)):
        assert torch.allclose(torch.tensor(found["inside"]), mean, atol=NEAR)
        assert found["after"] == found["before"]
        assert (found["loose"], found["loose after"]) == ([0.5, 0.5], [rank, rank])
        assert found["count"] == 3
        assert "tensor 'also.0.weight' [7, 5]" in found["refused"]["message"]


def test_two_models_in_one_uneven_epoch(ranks: list[gossip_ranks.Rank]) -> None:
    one, other = results(ranks, "uneven_two")
    assert one["steps"] == other["steps"]
    assert one["steps"][0] >= 5 + 2, "all that the longest have"
    for found in (one, other):
        assert max(found["apart"]) < 1
        assert "with gossamer.uneven(a, b)" in found["nested"]["message"]


def test_metrics_are_those_of_the_report(
    ranks: list[gossip_ranks.Rank], capsys: pytest.CaptureFixture[str]
) -> None:
    found = results(ranks, "metrics")
    for lines in (each["lines"] for each in found):
        assert [line["step"] for line in lines] == [1, 2, 2, 3, 3, 3]
        assert [line.get("val_loss") for line in lines] == [None, None, 2.5, None, None, None]
        assert lines[2]["accuracy"] is None
        assert lines[2]["disagreement"] > 0
        assert lines[0]["loss"] > 0
        assert lines[0]["step_ms"] > 0
        assert lines[-1]["edges"][0]["sent"] > 0
    folder = Path(found[0]["folder"])
    read = read_metrics(folder)
    assert read is not None
    assert (read.workers, read.steps) == (2, [1, 2, 3])
    assert [(check.step, check.val_loss) for check in read.checks] == [(2, 2.5), (3, None)]
    assert "pattern = " in (folder / "run.toml").read_text()


def test_checkpoints_need_no_process_group(ranks: list[gossip_ranks.Rank]) -> None:
    assert results(ranks, "without_groups") == [2, 2]


# A worker alone.


def alone(**options: Any) -> tuple[nn.Module, SGD, Gossip]:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    return model, optimizer, Gossip(model, optimizer, **options)


def test_metrics_that_cannot_be_written_are_an_error(tmp_path: Path) -> None:
    model, optimizer, gossip = alone(metrics=tmp_path)
    (tmp_path / "metrics.rank0.jsonl").mkdir()
    with pytest.raises(gossamer.IoError, match=r"rank 0 could not write its metrics"):
        train(model, optimizer, [0])
    gossip.close()


def test_what_is_logged_is_one_number_and_new(tmp_path: Path) -> None:
    model, optimizer, gossip = alone(metrics=tmp_path)
    with pytest.raises(ValueError, match=r"log\(\) got step, which every line has already"):
        gossip.log(step=1)
    with pytest.raises(ValueError, match=r"got Tensor for loss; take its mean"):
        gossip.log(loss=torch.ones(2))
    gossip.log(note="warm")
    train(model, optimizer, [0])
    gossip.close()
    lines = (tmp_path / "metrics.rank0.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["note"] == "warm"


def test_what_is_logged_without_metrics_goes_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model, optimizer, gossip = alone()
    gossip.log(loss=1, samples=3)
    train(model, optimizer, [0])
    gossip.close()
    assert list(tmp_path.iterdir()) == []


def test_samples_of_a_step_are_counted_together(tmp_path: Path) -> None:
    model, optimizer, gossip = alone(metrics=tmp_path)
    for wrong in (-1, 2.5, True, "3", torch.ones(2)):
        with pytest.raises(
            ValueError, match=r"samples as a whole number, 0 or more, got .*len\(x\)"
        ):
            gossip.log(samples=wrong)
    with pytest.raises(ValueError, match="got samples_per_s, which every line has already"):
        gossip.log(samples_per_s=1.0)
    gossip.log(samples=3, loss=0.5)
    gossip.log(samples=torch.tensor(4))
    with gossip.averaged():  # whose line is of no step
        pass
    train(model, optimizer, range(2))
    gossip.log(samples=5)
    train(model, optimizer, [2])
    gossip.close()
    lines = list(map(json.loads, (tmp_path / "metrics.rank0.jsonl").read_text().splitlines()))
    lines = [line for line in lines if "step_ms" in line]
    assert [line.get("samples") for line in lines] == [7, None, 5]
    for line in lines[::2]:
        assert line["samples_per_s"] == pytest.approx(1e3 * line["samples"] / line["step_ms"])
    assert "samples_per_s" not in lines[1]
    read = read_metrics(tmp_path)
    assert read is not None
    assert read.samples == [7, None, 5]


def test_habits_of_ddp_are_answered() -> None:
    _, _, gossip = alone()
    for name in ("module", "state_dict", "parameters", "train"):
        with pytest.raises(AttributeError, match=rf"a Gossip is no model and has no {name}; "):
            getattr(gossip, name)
    with pytest.raises(TypeError, match="call the model itself"):
        gossip(torch.ones(2, 5))
    with pytest.raises(AttributeError, match="object has no attribute 'nothing'"):
        gossip.nothing  # noqa: B018
    assert not hasattr(gossip, "module")


def test_repr_says_who_mixes_what() -> None:
    _, _, gossip = alone(topology="ring")
    assert repr(gossip) == (
        "<Gossip: Sequential with SGD, rank 0 of 1 on hosts of (1), topology='ring', "
        "pattern='cwa', own step>"
    )
    gossip.close()
    assert "closed" in repr(gossip)


def test_version() -> None:
    assert gossamer.__version__.count(".") == 2
