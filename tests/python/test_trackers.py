"""gossamer.trackers: what the libraries' own readers find is what the metrics of the run hold."""

import json
import math
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gossip_ranks
import package_runs
import pytest
import torch
import tracker_files
from gossip_scenarios_trackers import STEPS
from gossip_support import mlp, train
from torch.optim import SGD

import gossamer
from gossamer import Gossip, trackers
from gossamer.records import sinks

PACKAGES = ("tensorboard", "wandb", "mlflow")
OFFLINE = {
    "WANDB_SILENT": "true",
    "WANDB_ERROR_REPORTING": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ALLOW_FILE_STORE": "true",
}
"""No network and no server; MLflow's files need no data base."""

Run = tuple[Gossip, torch.nn.Module, SGD]


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed")


@pytest.fixture(scope="module")
def ranks(folder: Path) -> list[gossip_ranks.Rank]:
    installed = [name for name in PACKAGES if find_spec(name) is not None]
    names = [f"trackers_{name}" for name in (*installed, "goes_back", "one_of_them", "late")]
    own = {f"WANDB_{kind}_DIR": str(folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**OFFLINE, **own}.items():
            patch.setenv(name, value)
        return gossip_ranks.run(names, [1, 1])


@pytest.fixture
def alone() -> Iterator[Run]:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    with Gossip(model, optimizer) as gossip:
        yield gossip, model, optimizer


def lines_of(folder: Path, rank: int) -> list[dict[str, Any]]:
    """Of a run that has all kinds of lines and values."""
    text = (folder / "lines" / f"metrics.rank{rank}.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 2, 3, 4, 4, 4]
    assert set().union(*lines) == {
        *("step", "lr", "step_ms", "exposed_ms", "hidden_ms", "mixing_distance", "edges"),
        *(
            "samples",
            "samples_per_s",
            "loss",
            "rank_and_step",
            "val_loss",
            "accuracy",
            "is_best",
            "disagreement",
            "note",
        ),
    }
    return lines


def expected(line: dict[str, Any], rank: int) -> dict[str, Any]:
    """The values of a line as docs/trackers.md names them; null is nan."""
    found = {name: value for name, value in line.items() if name not in ("step", "edges")}
    for edge in line.get("edges", ()):
        assert edge["peer"] == 1 - rank
        found[f"sent_bytes/rank{1 - rank}"] = edge["sent"]
        found[f"received_bytes/rank{1 - rank}"] = edge["received"]
    return {name: math.nan if value is None else value for name, value in found.items()}


def series(lines: list[dict[str, Any]], rank: int) -> dict[str, list[tuple[int, Any]]]:
    """By name, (step, value) in the order of the lines."""
    found: dict[str, list[tuple[int, Any]]] = {}
    for line in lines:
        for name, value in expected(line, rank).items():
            found.setdefault(name, []).append((line["step"], value))
    return found


def same(found: Any, wanted: Any) -> bool:
    """Equal, where nan is nan."""
    if isinstance(found, float) and math.isnan(found):
        return isinstance(wanted, float) and math.isnan(wanted)
    return bool(found == wanted)


def same_series(found: list[tuple[int, Any]], wanted: list[tuple[int, Any]]) -> bool:
    return len(found) == len(wanted) and all(
        (one, same(value, other)) == (step, True)
        for (one, value), (step, other) in zip(found, wanted, strict=True)
    )


# Each library's own reader.


@needs("tensorboard")
def test_tensorboard_has_a_run_for_each_rank(ranks: list[gossip_ranks.Rank], folder: Path) -> None:
    gossip_ranks.results(ranks, "trackers_tensorboard")
    place = folder / "tensorboard"
    assert sorted(each.name for each in (place / "board").iterdir()) == ["rank0", "rank1"]
    for rank in range(2):
        wanted = series(lines_of(place, rank), rank)
        texts = {"note": wanted.pop("note")}
        found = tracker_files.scalars_of_tensorboard(place / "board" / f"rank{rank}")
        assert found.keys() == wanted.keys()
        for name, values in wanted.items():
            in_float32 = [(step, float(torch.tensor(value).float())) for step, value in values]
            assert same_series(found[name], in_float32), name
        assert tracker_files.texts_of_tensorboard(place / "board" / f"rank{rank}") == texts


@needs("wandb")
def test_weights_and_biases_has_a_run_for_each_rank(
    ranks: list[gossip_ranks.Rank], folder: Path
) -> None:
    ids = gossip_ranks.results(ranks, "trackers_wandb")
    assert ids == ["a-rank0", "a-rank1"]
    for rank, run_id in enumerate(ids):
        (path,) = (folder / "wandb").glob(f"wandb/offline-run-*/run-{run_id}.wandb")
        rows = tracker_files.rows_of_wandb(path)
        lines = lines_of(folder / "wandb", rank)
        assert [row["step"] for row in rows] == [line["step"] for line in lines]
        for row, line in zip(rows, lines, strict=True):
            wanted = {"step": line["step"], **expected(line, rank)}
            assert row.keys() == wanted.keys()
            assert all(same(row[name], wanted[name]) for name in row), (row, wanted)
        run = tracker_files.run_of_wandb(path)
        assert (run.run_group, run.display_name) == ("group", f"group-rank{rank}")
        config = {each.key: json.loads(each.value_json) for each in run.config.update}
        assert config | {"rank": rank, "workers": 2, "own": 1, "pattern": "cwa"} == config


@needs("mlflow")
def test_mlflow_has_a_run_for_each_rank(
    ranks: list[gossip_ranks.Rank], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in OFFLINE.items():
        monkeypatch.setenv(name, value)
    from mlflow import MlflowClient

    ids = gossip_ranks.results(ranks, "trackers_mlflow")
    client = MlflowClient((folder / "mlflow" / "store").as_uri())
    place = client.get_experiment_by_name("new").experiment_id
    listed = client.search_runs([place], filter_string="tags.`gossamer.run` = 'a'")
    assert {run.info.run_id for run in listed} == set(ids)
    for rank, run_id in enumerate(ids):
        run = client.get_run(run_id)
        assert (run.info.run_name, run.info.status) == (f"a-rank{rank}", "FINISHED")
        assert (run.data.params["rank"], run.data.tags["gossamer.rank"]) == (str(rank), str(rank))
        assert run.data.tags["note"] == "warm"
        wanted = series(lines_of(folder / "mlflow", rank), rank)
        wanted.pop("note")
        assert run.data.metrics.keys() == wanted.keys()
        for name, values in wanted.items():
            history = [(each.step, each.value) for each in client.get_metric_history(run_id, name)]
            assert same_series(history, values), name


# What a tracker is given.


def test_a_run_that_goes_back_says_so(ranks: list[gossip_ranks.Rank], folder: Path) -> None:
    for rank, seen in enumerate(gossip_ranks.results(ranks, "trackers_goes_back")):
        assert [each if isinstance(each, int) else each[0] for each in seen] == (
            [1, 2, 3, 4, 5, 2, 3, 3]
        ), "the steps, where it goes on after the second, and its last line"
        assert seen[5] == 2
        assert seen[6][1]["rank_and_step"] == 10 * rank + 10
        if find_spec("tensorboard") is not None:
            found = tracker_files.scalars_of_tensorboard(folder / "back" / "board" / f"rank{rank}")
            own = [(step, 10.0 * rank + batch) for step, batch in ((1, 0), (2, 1), (3, 10))]
            assert found["rank_and_step"] == own


def test_one_that_fails_warns_once_and_training_goes_on(ranks: list[gossip_ranks.Rank]) -> None:
    one, other = gossip_ranks.results(ranks, "trackers_one_of_them")
    assert (one["seen"], other["seen"]) == ([1, 2], [])
    assert one["steps"] == other["steps"] == STEPS
    said = "[trackers] rank 0: the server ends before step 2, got OSError: the server is gone; "
    assert ranks[0].stderr.count(said) == 1
    assert "[trackers]" not in ranks[1].stderr


def test_every_tenth_step_and_what_is_between_steps(alone: Run) -> None:
    gossip, model, optimizer = alone
    seen: list[Any] = []
    trackers.follow(gossip, sinks.Sink("a list", lambda *line: seen.append(line)), every=10)
    train(model, optimizer, range(15))
    gossip.disagreement()
    train(model, optimizer, range(5))
    assert [step for step, _ in seen] == [10, 15, 20]
    assert ["disagreement" in values for _, values in seen] == [False, True, False]


def test_a_lost_worker_is_told_in_any_step() -> None:
    seen: list[Any] = []
    tracker = sinks.Tracker(sinks.Sink("a list", lambda *line: seen.append(line)), 0, every=10)
    usual = {"step_ms": 1.0}
    for step, more in ((1, {}), (2, {"lost": [3]}), (3, {}), (4, {"back": [3], "lost": [1]})):
        tracker.write({"step": step, **usual, **more})
    assert seen == [
        (2, {**usual, "lost/rank3": 1}),
        (4, {**usual, "lost/rank3": 0, "lost/rank1": 1}),
    ]


def test_waiting_before_a_tracker_belongs_to_no_step(ranks: list[gossip_ranks.Rank]) -> None:
    for found in gossip_ranks.results(ranks, "trackers_late"):
        step, values = found["line"]
        assert step == STEPS + 1
        for kind in ("hidden", "exposed"):
            before, after = found[f"{kind}_s"]
            assert values[f"{kind}_ms"] == pytest.approx(1e3 * (after - before))


def test_a_sink_is_closed_once_and_after_a_failure(alone: Run) -> None:
    gossip, model, optimizer = alone
    closed: list[str] = []

    def fail(*_: Any) -> None:
        raise RuntimeError("no")

    trackers.follow(gossip, sinks.Sink("one", lambda *_: None, close=lambda: closed.append("one")))
    trackers.follow(gossip, sinks.Sink("two", fail, close=lambda: closed.append("two")))
    trackers.follow(gossip, sinks.Sink("three", lambda *_: None, close=fail))
    with pytest.warns(RuntimeWarning) as caught:
        train(model, optimizer, range(2))
        gossip.close()
    gossip.close()
    assert closed == ["one", "two"]
    assert [str(each.message).split("; ")[0] for each in caught] == [
        "[trackers] rank 0: two ends before step 1, got RuntimeError: no",
        "[trackers] rank 0: three ends at its close, got RuntimeError: no",
    ]


# What is refused at the start.


@pytest.mark.parametrize(
    ("name", "module"),
    [("tensorboard", "tensorboard"), ("wandb", "wandb"), ("mlflow", "mlflow")],
)
def test_a_missing_package_is_one_sentence(
    name: str, module: str, alone: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in [each for each in sys.modules if each.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, each)
    monkeypatch.setitem(sys.modules, module, None)
    said = (
        rf"^\[trackers\] {name}\(\) needs the package {name}, got: .*; "
        rf"run `pip install {name}`, or leave the tracker out$"
    )
    with pytest.raises(ModuleNotFoundError, match=said):
        getattr(trackers, name)(alone[0], str(tmp_path))


def test_mistakes_are_told(alone: Run) -> None:
    gossip = alone[0]
    sink = sinks.Sink("nothing", lambda *_: None)
    with pytest.raises(
        TypeError, match=r"trackers.follow\(\) is for a gossamer.Gossip, got Sequential"
    ):
        trackers.follow(alone[1], sink)
    others: list[Any] = [3, None, {}]  # of kinds without weak references
    for other in others:
        with pytest.raises(
            TypeError, match=f"is for a gossamer.Gossip, got {type(other).__name__}"
        ):
            trackers.follow(other, sink)
    with pytest.raises(ValueError, match=r"every is a number of steps, got 0 in wandb\(\)"):
        trackers.wandb(gossip, "a", every=0)
    gossip.close()
    with pytest.raises(ValueError, match=r"mlflow\(\) follows .*, got one that is closed"):
        trackers.mlflow(gossip, "a")


@needs("tensorboard")
def test_a_folder_that_cannot_be_made_is_an_error(alone: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(gossamer.IoError, match=r"tensorboard\(\) could not write to .*rank0, got"):
        trackers.tensorboard(alone[0], tmp_path / "file")


def test_the_module_needs_none_of_them() -> None:
    names = ", ".join(map(repr, PACKAGES))
    done = package_runs.run(
        ["-c", f"import sys, gossamer.trackers\nprint([m for m in ({names}) if m in sys.modules])"]
    )
    assert done.stdout == "[]\n", done.stderr


# Ends of a run.


def unclosed(track: str, place: Path) -> None:
    """A program that logs a last value and ends."""
    script = (
        "import sys, torch, gossamer.trackers\n"
        "model = torch.nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "gossip = gossamer.Gossip(model, optimizer)\n"
        f"gossamer.trackers.{track}\n"
        "model(torch.ones(1, 2)).sum().backward()\n"
        "optimizer.step()\n"
        "gossip.log(last=7)\n"
    )
    done = package_runs.run(["-c", script, str(place)], OFFLINE)
    assert (done.returncode, done.stderr) == (0, "")


@needs("tensorboard")
def test_tensorboard_has_the_last_line_of_a_program_that_closes_nothing(tmp_path: Path) -> None:
    unclosed("tensorboard(gossip, sys.argv[1])", tmp_path)
    assert tracker_files.scalars_of_tensorboard(tmp_path / "rank0")["last"] == [(1, 7.0)]


@needs("wandb")
def test_wandb_has_the_last_line_of_a_program_that_closes_nothing(tmp_path: Path) -> None:
    unclosed('wandb(gossip, "a", mode="offline", dir=sys.argv[1])', tmp_path)
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    rows = tracker_files.rows_of_wandb(path)
    assert [(row["step"], row.get("last")) for row in rows] == [(1, None), (1, 7)]


@needs("mlflow")
def test_mlflow_is_told_of_a_run_that_failed(
    alone: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in OFFLINE.items():
        monkeypatch.setenv(name, value)
    from mlflow import MlflowClient

    with pytest.raises(ZeroDivisionError), alone[0] as gossip:
        made = trackers.mlflow(gossip, "a", tracking_uri=tmp_path.as_uri())
        raise ZeroDivisionError
    assert MlflowClient(tmp_path.as_uri()).get_run(made).info.status == "FAILED"


@needs("tensorboard")
def test_a_folder_of_metrics_is_shown_in_tensorboard(tmp_path: Path) -> None:
    """As `gossamer train` leaves it, too."""
    lines = [
        {"step": 1, "loss": 2.5, "lr": 0.1, "step_ms": 3.0},
        {"step": 1, "val_loss": None, "edges": [{"peer": 1, "sent": 8, "received": 9}]},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    for rank in range(2):
        (tmp_path / f"metrics.rank{rank}.jsonl").write_text(text)
    command = ["-m", "gossamer.trackers", str(tmp_path), "--tensorboard"]
    for _ in range(2):  # again: the same, once
        done = package_runs.run([*command, str(tmp_path / "board")])
        assert (done.returncode, done.stderr) == (0, "")
    for rank in range(2):
        found = tracker_files.scalars_of_tensorboard(tmp_path / "board" / f"rank{rank}")
        assert math.isnan(found.pop("val_loss")[0][1])
        own = {"loss": 2.5, "step_ms": 3.0, "sent_bytes/rank1": 8.0, "received_bytes/rank1": 9.0}
        assert {name: values for name, values in found.items() if name != "lr"} == {
            name: [(1, value)] for name, value in own.items()
        }
    (tmp_path / "metrics.rank1.jsonl").write_text("no line\n")
    for run, said in (
        (tmp_path, r"metrics\.rank1\.jsonl cannot be shown, got"),
        (tmp_path / "board", r"no metrics\.rank\*\.jsonl in .*board; give"),
    ):
        done = package_runs.run([*command[:2], str(run), "--tensorboard", str(tmp_path / "other")])
        assert (done.returncode, done.stdout) == (2, "")
        assert re.search(said, done.stderr), done.stderr
