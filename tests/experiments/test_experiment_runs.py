"""What a call of experiments/run_grids.py does, with a program that trains nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import run_grids
import runner
from workbench import EXPERIMENTS, ROOT, Bench, table

ALL = 3 + 3 + 4  # tuning of two methods, then what is left of three rows and two seeds


def test_the_whole_grid(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.run() == 0
    found = bench.records()
    assert len(found) == len(bench.trainings()) == ALL
    chosen = {(each["method"], each["settings"]["lr"]) for each in found if each["seed"] == 2}
    assert chosen == {("AllReduce", 0.02), ("DAdam", 0.04)}
    said = capsys.readouterr().out
    assert "small: 10 of 10 runs are done" in said
    assert "| DAdam | complete |" in said


def test_a_record(bench: Bench) -> None:
    bench.run("--limit", "1")
    (found,) = bench.records()
    assert found["bleu"] == pytest.approx(100)
    assert found["bleu_signature"].startswith(
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"
    )
    assert found["gossamer"] == "gossamer 9.9.9"
    assert found["settings"] == {"pattern": "allreduce", "lr": 0.01}
    assert found["summary"]["val_loss"] == found["curve"][-1][1]
    assert found["curve"] == [[2, 3.6, 0.5, 0.05], [4, 3.35, 0.5, 0.025]]
    assert set(found["machine"]) == {"cpu", "cores", "kernel"}
    assert not found["resumed"]


def test_no_path_of_the_machine_is_recorded(bench: Bench) -> None:
    bench.run()
    text = bench.results.read_text()
    assert str(bench.folder) not in text
    assert str(ROOT) not in text
    for record in bench.records():
        for command in record["commands"]:
            assert not any(word.startswith("/") for word in command.split()), command


def test_the_recorded_commands_repeat_the_run(bench: Bench) -> None:
    bench.run("--limit", "1")
    train, translate, score = bench.records()[0]["commands"]
    assert train.startswith("gossamer train --")
    assert train.endswith("--json --out run")
    assert translate == "gossamer translate run --input text/val.en --output run/val.hyp"
    assert score == "sacrebleu text/val.de -i run/val.hyp"
    path = os.pathsep.join([str(bench.folder), os.environ["PATH"]])
    for command in (train, translate):
        subprocess.run(
            command, shell=True, cwd=bench.data, env={**os.environ, "PATH": path}, check=True
        )
    summary = json.loads((bench.data / "run" / "summary.json").read_text())
    assert summary == bench.records()[0]["summary"]


def test_what_is_done_is_not_done_again(bench: Bench) -> None:
    bench.run("--limit", "4")
    assert len(bench.records()) == 4
    shutil.rmtree(bench.folder / "runs")
    bench.run()
    bench.run()
    assert len(bench.records()) == len(bench.trainings()) == ALL


def test_an_interrupted_run_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_STOP_AT", "3")
    assert bench.run() == 130
    assert "the same command goes on from here" in capsys.readouterr().err
    assert bench.records() == []
    bench.run("--list")
    assert capsys.readouterr().out.count("interrupted") == 1
    monkeypatch.delenv("FAKE_STOP_AT")
    assert bench.run("--limit", "1") == 0
    first, second = bench.trainings()
    assert "--resume" not in first
    assert second.startswith("train --resume")
    (found,) = bench.records()
    assert found["resumed"]
    assert [point[0] for point in found["curve"]] == [2, 4], "each step once, no torn line"


def test_a_run_that_stopped_before_its_first_checkpoint_begins_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_BREAK_AT", "1")
    assert bench.run("--only", "lr 0.01") == 1
    said = capfd.readouterr().err
    assert "gossamer: [train] broken" in said
    assert "gossamer train ended with code 1" in said
    monkeypatch.delenv("FAKE_BREAK_AT")
    assert bench.run("--only", "lr 0.01") == 0
    assert [word for word in bench.trainings() if "--resume" in word] == []
    assert len(bench.records()) == 1


def test_one_failure_does_not_keep_the_others_from_running(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BREAK_AT", "1")
    assert bench.run() == 1
    assert len(bench.trainings()) == 6, "all of the tuning, each once"


def test_a_trained_run_is_not_trained_again_for_its_score(bench: Bench) -> None:
    bench.run("--limit", "1")
    bench.results.unlink()
    bench.run("--limit", "1")
    assert len(bench.trainings()) == 1
    assert bench.records()[0]["bleu"] == pytest.approx(100)


def test_a_run_that_diverged_is_a_result(bench: Bench) -> None:
    methods = [{"name": "AllReduce", "pattern": "allreduce", "lr": [0.01, 2.0]}]
    bench.write(table(methods=methods))
    assert bench.run() == 0
    assert [each["status"] for each in bench.records()] == ["ok", "diverged", "ok"]
    assert [each["settings"]["lr"] for each in bench.records()] == [0.01, 2.0, 0.01]


def test_checkpoints_are_dropped_when_a_run_is_recorded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_STOP_AT", "3")
    bench.run()
    assert list((bench.folder / "runs").rglob("latest"))
    monkeypatch.delenv("FAKE_STOP_AT")
    bench.run("--limit", "1")
    assert not list((bench.folder / "runs").rglob("latest"))
    assert list((bench.folder / "runs").rglob("summary.json"))


def test_without_data_an_experiment_is_skipped(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    (bench.data / "text" / "val.de").unlink()
    assert bench.run() == 0
    assert "small: skipped: " in (said := capsys.readouterr().out)
    assert "has no text/val.de; put it there or name another --data" in said
    shutil.rmtree(bench.data)
    assert bench.run() == 0
    assert "skipped: there is no data folder" in capsys.readouterr().out
    assert bench.trainings() == []


def test_the_choice_of_a_command_line(bench: Bench) -> None:
    bench.run("--only", "allreduce")
    assert {each["method"] for each in bench.records()} == {"AllReduce"}
    assert len(bench.records()) == 4
    bench.run("--seeds", "1")
    assert len([each for each in bench.records() if each["seed"] == 1]) == 7


def test_the_list_shows_what_is_done(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.run("--limit", "2")
    capsys.readouterr()
    assert bench.run("--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "small: 2 of 6 runs are done; 3 rows are not tuned yet"
    states = [line.split()[0] for line in lines[1:]]
    assert states == ["ok"] * 2 + ["open"] * 4 + ["waits"] * 3
    assert len(bench.trainings()) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--seeds a", "--seeds must be like 1,2, got 'a'"),
        ("--limit -1", "--limit must be at least 0, got -1"),
    ],
)
def test_mistakes_are_named(
    bench: Bench, words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.run(*words.split()) == 2
    assert capsys.readouterr().err.startswith(f"[experiments] {said}")


def test_an_unknown_experiment_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_grids.main(["nowhere"]) == 2
    assert "no experiment 'nowhere'; there are: digits, " in capsys.readouterr().err


def test_a_broken_line_of_the_results_is_named(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.run("--limit", "1")
    with bench.results.open("a") as file:
        file.write('{"case": "", "meth\n')
    assert bench.run() == 2
    assert "small.jsonl:2 is no result" in capsys.readouterr().err


def test_without_a_program_the_remedy_is_named(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    (bench.folder / "gossamer").unlink()
    assert bench.run() == 1
    assert "gossamer cannot be started" in (said := capsys.readouterr().err)
    assert "run make build" in said


def test_bleu_wants_a_reference_for_every_line() -> None:
    with pytest.raises(runner.ExperimentError, match="1 translations, but 2 references"):
        runner.bleu(["a"], ["a", "b"])


def test_lines_end_at_newlines_only(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\u2028still one\ntwo\n")
    assert runner.read_lines(file) == ["one\u2028still one", "two"]


def test_the_script_starts() -> None:
    command = [sys.executable, str(EXPERIMENTS / "run_grids.py"), "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "translation: " in done.stdout
