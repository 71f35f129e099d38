"""`gossamer report`: what is wrong with a run is said in one line, and nothing is written."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from package_runs import PACKAGE, run
from report_runs import interval, make_run, trace_events, write_trace

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from gossamer import report
from gossamer.report import trace

METRICS = "metrics.rank1.jsonl"
TRACE = "trace.json.gz"


def cut_line(folder: Path) -> None:
    path = folder / METRICS
    path.write_text(path.read_text()[:-20])


def replace_line(text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        lines = (folder / METRICS).read_text().splitlines()
        (folder / METRICS).write_text("\n".join([*lines[:2], text, *lines[3:]]) + "\n")

    return change


def cut_trace(folder: Path) -> None:
    write_trace(folder / TRACE, trace_events(1.0))
    whole = (folder / TRACE).read_bytes()
    (folder / TRACE).write_bytes(whole[: len(whole) // 2])


def put(name: str, text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        if name == TRACE:
            (folder / name).write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text)

    return change


def traced(event: dict[str, Any]) -> Callable[[Path], None]:
    return put(TRACE, json.dumps({"traceEvents": [*trace_events(1.0), event]}))


def damage_trace(folder: Path) -> None:
    write_trace(folder / TRACE, trace_events(1.0))
    whole = bytearray((folder / TRACE).read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    (folder / TRACE).write_bytes(whole)


BROKEN: list[tuple[Callable[[Path], Any], list[str]]] = [
    (cut_line, [METRICS, "line 10", "remove the line"]),
    (replace_line("{"), [METRICS, "line 3"]),
    (replace_line("[1]"), [METRICS, "line 3", "not an object"]),
    (replace_line('{"loss": 1}'), [METRICS, "line 3", "step"]),
    (replace_line('{"step": 3, "loss": "low"}'), [METRICS, "line 3", "loss is not a number"]),
    (replace_line('{"step": 3, "edges": 7}'), [METRICS, "line 3"]),
    (replace_line('{"step": 1.5}'), [METRICS, "line 3", "step is not a whole number"]),
    (
        replace_line('{"step": 3, "edges": [{"peer": "0", "sent": 1}]}'),
        [METRICS, "line 3", "an edge without whole numbers"],
    ),
    (put("metrics.rank1.old.jsonl", ""), ["metrics.rank1.old.jsonl", "remove or rename it"]),
    (replace_line("[" * 100_000), [METRICS, "line 3"]),
    (cut_trace, [TRACE, "truncated"]),
    (damage_trace, [TRACE, "broken"]),
    (put(TRACE, "{"), [TRACE, "not a trace"]),
    (put(TRACE, "{}"), [TRACE, "traceEvents"]),
    (put(TRACE, '{"traceEvents": []}'), [TRACE, "no events"]),
    (traced(interval("wait", 0, 0, 5.0, -1.0, 0)), [TRACE, "not a trace"]),
    (traced({"ph": "X", "name": "wait"}), [TRACE, "not a trace"]),
    (put("run.toml", "[data"), ["run.toml"]),
    (put("summary.json", "{"), ["summary.json"]),
    (put("summary.json", "[]"), ["summary.json", "not an object"]),
    (put("summary.json", '{"ms_per_step": "soon"}'), ["summary.json", "ms_per_step"]),
    (put("prediction.json", '{"step_s": 0}'), ["prediction.json", "step_s"]),
    (put("prediction.json", '{"source": "model"}'), ["prediction.json", "step_s"]),
    (put("summary.json", '{"ms_per_step": ' + "1" * 400 + "}"), ["summary.json", "400 digits"]),
    (put("summary.json", "[" * 100_000), ["summary.json", "nested too deeply"]),
    (replace_line('{"step": 3, "step_ms": ' + "9" * 400 + "}"), [METRICS, "400 digits"]),
    (put("prediction.json", '{"step_s": ' + "1" * 5000 + "}"), ["prediction.json", "5000 digits"]),
    (put("run.toml", "a = " + "[" * 100_000), ["run.toml", "nested too deeply"]),
    (put("run.toml", "a." * 100_000 + "a = 1"), ["run.toml", "more than 32 dots"]),
    (put("run.toml", '"a".' * 100_000 + "a = 1"), ["run.toml", "more than 32 dots"]),
    (put("run.toml", "a = " + "1" * 400), ["run.toml", "more than 40 digits"]),
    (put("summary.json", '{"steps": "\x1b]0;owned"}'), ["summary.json", "control character"]),
    (put("summary.json", r'{"steps": "\u001b]0;owned"}'), ["summary.json", r"\x1b]0;owned"]),
    (put("run.toml", "#" * 4_000_001), ["run.toml", "larger than"]),
    (lambda folder: (folder / "run.toml").unlink(), ["not a run", "run.toml"]),
]


@pytest.mark.parametrize(("breaking", "words"), BROKEN)
def test_it_is_one_line_and_nothing_is_written(
    breaking: Callable[[Path], Any], words: list[str], tmp_path: Path, capsys: Any
) -> None:
    folder = make_run(tmp_path / "run", "cwa", 4.0)
    breaking(folder)
    out = tmp_path / "out"
    out.mkdir()
    code = report.main([str(folder), "--out", str(out / "page.html")])
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert line.startswith("[report] ")
    assert line.isprintable()
    for word in words:
        assert word in line
    assert list(out.iterdir()) == []


def test_a_name_is_no_order_to_the_terminal(tmp_path: Path, capsys: Any) -> None:
    assert report.main([str(tmp_path / "\x1b[31mred\x9b")]) == 2
    assert r"\x1b[31mred\x9b" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["run.toml", "summary.json", "prediction.json", METRICS, TRACE])
def test_a_pipe_is_an_error_and_no_wait(name: str, tmp_path: Path, capsys: Any) -> None:
    folder = make_run(tmp_path / "run", "cwa", 4.0)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert report.main([str(folder)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "not a regular file" in line
    assert name in line


def test_a_trace_may_not_be_of_any_size(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    folder = make_run(tmp_path / "run", "cwa", 4.0)
    write_trace(folder / TRACE, trace_events(1.0))
    with gzip.open(folder / TRACE) as file:
        size = len(file.read())
    monkeypatch.setattr(trace, "LIMIT_BYTES", size)
    assert report.main([str(folder)]) == 0
    monkeypatch.setattr(trace, "LIMIT_BYTES", size - 1)
    (folder / "report.html").unlink()
    assert report.main([str(folder)]) == 2
    assert "may hold" in capsys.readouterr().err
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize("folders", [["nowhere"], ["run", "run"]])
def test_folders_must_be_there_and_not_twice(
    folders: list[str], tmp_path: Path, capsys: Any
) -> None:
    make_run(tmp_path / "run", "cwa", 4.0)
    assert report.main([str(tmp_path / name) for name in folders]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_place_that_cannot_be_written_is_status_1(tmp_path: Path, capsys: Any) -> None:
    folder = make_run(tmp_path / "run", "cwa", 4.0)
    assert report.main([str(folder), "--out", str(tmp_path / "none" / "page.html")]) == 1
    assert "none" in capsys.readouterr().err


@pytest.mark.parametrize("library", ["matplotlib", "jinja2"])
def test_a_missing_library_is_named_with_its_remedy(library: str, tmp_path: Path) -> None:
    (tmp_path / f"{library}.py").write_text(f"raise ModuleNotFoundError('none', name='{library}')")
    folder = make_run(tmp_path / "run", "cwa", 4.0)
    path = f"{tmp_path}:{PACKAGE.parent}"
    done = run(["-m", "gossamer_command", "report", str(folder)], path=path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"{library} is missing" in line
    assert "-m pip install matplotlib jinja2" in line
