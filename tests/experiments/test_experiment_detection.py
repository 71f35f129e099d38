"""experiments/detection.py: its grid, what it trains next, its table."""

import json
import shlex
from pathlib import Path

import detection
import detection_figure
import pytest
import records
from plan import Record


def outcome(run: detection.Run, ap50: float) -> Record:
    method, graph = run.parts
    return {
        "case": "",
        "method": method,
        "topology": graph,
        "seed": run.seed,
        "settings": detection.SETTINGS[run.model],
        "recipe_hash": "",
        "ap50": ap50,
        "ap": ap50 / 2,
        "val_loss": 1.0,
        "seconds": 100.0,
        "machine": detection.machine(),
    }


def test_the_grid_has_each_method_on_both_graphs_seed_by_seed() -> None:
    runs = detection.grid(detection.NAMES, (1, 2))
    assert [run.seed for run in runs] == [1] * 7 + [2] * 7
    assert runs[0].parts == ("allreduce", "")
    assert {run.parts for run in runs[1:7]} == {
        (method, graph) for method in detection.METHODS for graph in detection.GRAPHS
    }
    assert len({run.key for run in runs}) == len({run.folder for run in runs}) == 14


def test_a_run_that_is_recorded_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "detection.jsonl"
    trained: list[detection.Run] = []

    def do(run: detection.Run, data: Path) -> Record:
        trained.append(run)
        return outcome(run, 0.5)

    monkeypatch.setattr(detection, "RESULTS", results)
    monkeypatch.setattr(detection, "do", do)
    monkeypatch.setattr(detection, "made_set", lambda idx: tmp_path)
    first = detection.Run("dmsgd@exponential", 1)
    records.append(results, outcome(first, 0.4))
    words = ["detection.py", "--seeds", "1", "--only", "dmsgd@exponential", "--idx"]
    monkeypatch.setattr("sys.argv", [*words, str(tmp_path / "none")])
    assert detection.main() == 0
    assert "skipped: there is no folder" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", [*words, str(tmp_path)])
    assert detection.main() == 0
    assert trained == [detection.Run("qg_dmsgd@exponential", 1)]
    assert "1 of 2 runs are left: about 2 minutes" in capsys.readouterr().out
    assert detection.main() == 0
    assert len(trained) == 1
    assert len(records.read(results)) == 2


def test_the_table_has_differences_to_parallel_sgd_seed_by_seed() -> None:
    values = {("allreduce", 1): 0.6, ("allreduce", 2): 0.7, ("atc@exponential", 2): 0.69}
    done = [outcome(detection.Run(*key), value) for key, value in values.items()]
    lines = detection.table(done).splitlines()
    parallel = "| parallel SGD | `allreduce` | 0.650 ± 0.071 |  | 0.325 ± 0.035 |"
    assert lines[2] == f"{parallel} 1.000 ± 0.000 | 1, 2 |"
    minus = "\N{MINUS SIGN}"
    assert lines[3].startswith(f"| vanilla DmSGD | `atc@exponential` | 0.690 | {minus}0.010 |")


def test_a_record_is_made_of_the_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "RUNS", tmp_path)
    run = detection.Run("atc@exponential", 3)
    run.folder.mkdir(parents=True)
    lines = [
        {"step": 1, "loss": 3.0, "step_ms": 200.0},
        {"step": 2, "loss": 1.0, "step_ms": 300.0},
        {"step": 2, "val_loss": 2.0, "ap": 0.1, "ap50": 0.2, "disagreement": 0.01},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.folder / "metrics.rank0.jsonl").write_text(text)
    record = detection.record_of(run)
    assert (record["loss"], record["seconds"], record["ap50"]) == (2.0, 0.5, 0.2)
    assert record["curve"] == [[2, 2.0, 0.1, 0.2, 0.01]]
    assert records.record_key(record) == run.key
    words = shlex.split(record["command"])
    assert words[words.index("--method") + 1] == "atc@exponential"
    assert not any(word.startswith("/") for word in words)


def test_the_picture_has_a_panel_per_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "detection.jsonl"
    for seed in (1, 2):
        for run in detection.grid(detection.NAMES, [seed]):
            curve = [[step, 1.0, 0.1, step / 1000 + seed / 10, 0.0] for step in (300, 600)]
            records.append(results, {**outcome(run, 0.5), "curve": curve})
    monkeypatch.setattr(detection, "RESULTS", results)
    assert detection_figure.main(tmp_path) == 0
    drawn = (tmp_path / "detection_steps.svg").read_text()
    for title in ("vanilla DmSGD", "QG-DmSGD", "parallel SGD", "one-peer"):
        assert title in drawn
    assert "parallel SGD ends at 0.750" in drawn
    assert (tmp_path / "detection_steps.png").exists()
