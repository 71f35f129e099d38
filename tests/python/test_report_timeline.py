"""`gossamer report`: which workers and steps the timeline shows."""

import json
from pathlib import Path
from typing import Any

import pytest
from report_runs import Page, make_run, trace_events, write_trace

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from gossamer import report

ALL_WAIT_US, RING_WAIT_US = 6500.0, 500.0
STEPS_MS = {"all": 10.0, "ring": 4.0}
MANY = 12


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """An AllReduce of 10 ms per step and a ring of 4 ms, of 4 workers and 8 steps."""
    made = []
    for name, wait_us in (("ring", RING_WAIT_US), ("all", ALL_WAIT_US)):
        folder = make_run(tmp_path / name, "cwa" if name == "ring" else "allreduce", STEPS_MS[name])
        write_trace(folder / "trace.json.gz", trace_events(wait_us))
        made.append(str(folder))
    return made


@pytest.fixture
def crowd(tmp_path: Path) -> list[str]:
    """The trace of a simulation of 12 workers, each on a host of its own, in one step."""
    events: list[dict[str, Any]] = []
    for worker in range(MANY):
        name = {"name": f"worker {worker}, host {worker}"}
        events.append({"ph": "M", "name": "process_name", "pid": worker, "args": name})
        place = {"pid": worker, "tid": 0, "ts": 0.0, "dur": 1000.0}
        events.append({"ph": "X", "name": "forward", **place, "args": {"step": 0}})
    path = tmp_path / "crowd.json.gz"
    write_trace(path, events, "ring")
    return [str(path)]


def drawn(arguments: list[str], out: Path, capsys: Any) -> Page:
    assert report.main([*arguments, "--out", str(out)]) == 0
    assert capsys.readouterr().err == ""
    return Page(out.read_text())


def length_of(page: Page) -> str:
    (alt,) = [each for each in page.pictures if each.startswith("Timelines")]
    return alt.split("the same ")[1].split(" ms")[0]


def test_it_shows_all_workers_of_all_hosts(runs: list[str], tmp_path: Path, capsys: Any) -> None:
    page = drawn(runs, tmp_path / "page", capsys)
    for worker in range(4):
        rows = [line for line in page.text.split("\n") if line.strip() == f"worker {worker}"]
        assert len(rows) == 2, "one in each panel"
    assert length_of(page) == "40", "four steps of AllReduce"


@pytest.mark.parametrize(
    ("options", "length", "first"),
    [
        ("--steps 1", "10", 2),
        ("--steps 3", "30", 2),
        ("--steps 8", "80", 0),
        ("--steps 100", "80", 0),
        ("--from-step 0", "40", 0),
        ("--from-step 6", "20", 6),
        ("--from-step 1 --steps 2", "20", 1),
    ],
)
def test_it_shows_the_steps_that_are_asked_for(
    options: str, length: str, first: int, runs: list[str], tmp_path: Path, capsys: Any
) -> None:
    page = drawn([*runs, *options.split()], tmp_path / "page", capsys)
    assert length_of(page) == length
    assert f"step {first}" in page.text
    assert f"step {first - 1}" not in page.text


def test_it_shows_as_many_workers_as_are_asked_for(
    crowd: list[str], tmp_path: Path, capsys: Any
) -> None:
    page = drawn(crowd, tmp_path / "few", capsys)
    assert "worker 7" in page.text
    assert "worker 8" not in page.text
    assert "Of 12 workers, the first 8 are drawn" in page.text
    page = drawn([*crowd, "--workers", "2"], tmp_path / "two", capsys)
    assert "worker 2" not in page.text
    page = drawn([*crowd, "--workers", "all"], tmp_path / "all", capsys)
    assert f"worker {MANY - 1}" in page.text
    assert "are drawn" not in page.text


def test_a_long_stretch_is_wider_than_the_page(
    runs: list[str], tmp_path: Path, capsys: Any
) -> None:
    drawn(runs, tmp_path / "page", capsys)
    assert "min-width:42rem" in (tmp_path / "page").read_text()
    drawn([*runs, "--steps", "24"], tmp_path / "page", capsys)
    assert "min-width:84rem" in (tmp_path / "page").read_text()


def test_a_stretch_of_too_many_boxes_ends_early(
    runs: list[str], tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(report.window, "_MOST_SPANS", 40)
    page = drawn(runs, tmp_path / "page", capsys)
    assert float(length_of(page)) < 20
    assert "It ends early" in page.text


@pytest.mark.parametrize("step", ["8", "-1"])
def test_a_step_that_is_not_there_is_refused(
    step: str, runs: list[str], tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "page"
    assert report.main([*runs, "--out", str(out), "--from-step", step]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"[report] --from-step takes a step of each trace; ring has steps 0 to 7, got {step}"
    )
    assert not out.exists()


@pytest.mark.parametrize(
    "option", [["--workers", "0"], ["--workers", "every"], ["--steps", "0"], ["--steps", "1e3"]]
)
def test_a_count_is_a_number(option: list[str], runs: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit) as end:
        report.main([*runs, *option])
    assert end.value.code == 2
    assert f"got {option[1]!r}" in capsys.readouterr().err


def test_the_picture_says_nothing_of_the_figures(
    runs: list[str], tmp_path: Path, capsys: Any
) -> None:
    said = []
    for steps in ("1", "8"):
        assert report.main([*runs, "--out", str(tmp_path / "p"), "--json", "--steps", steps]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
