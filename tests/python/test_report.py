"""`gossamer report`: what the page says is what the runs hold."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from package_runs import PACKAGE, run
from report_runs import (
    BACKWARD_US,
    FORWARD_US,
    MESSAGE_BYTES,
    STEPS,
    UPDATE_US,
    WORKERS,
    Page,
    make_run,
    trace_events,
    write_recipe,
    write_trace,
)

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from gossamer import report

SLOW_WAIT_US, WAIT_US = 6500.0, 500.0


def made(folders: list[Path], out: Path, capsys: Any) -> tuple[dict[str, Any], Page]:
    """The object on stdout and the page."""
    code = report.main([*map(str, folders), "--out", str(out), "--json"])
    said = capsys.readouterr()
    assert (code, said.err) == (0, "")
    return json.loads(said.out), Page(out.read_text())


@pytest.fixture
def pair(tmp_path: Path) -> list[Path]:
    """A ring and an AllReduce with traces; the ring has a prediction."""
    folders = [make_run(tmp_path / "ring", "cwa", 4.0), make_run(tmp_path / "all", "allreduce", 10)]
    for folder, wait_us in zip(folders, (WAIT_US, SLOW_WAIT_US), strict=True):
        write_trace(folder / "trace.json.gz", trace_events(wait_us))
    said = {"step_s": 0.005, "compute_s": 0.003, "exposed_s": 0.001, "source": "simulator"}
    text = json.dumps({**said, "bytes_per_host_per_step": [32000, 32000]})
    (folders[0] / "prediction.json").write_text(text)
    return folders


def test_the_page_says_what_the_runs_hold(pair: list[Path], tmp_path: Path, capsys: Any) -> None:
    said, page = made(pair, tmp_path / "page.html", capsys)
    assert page.heading == "ring takes 40\N{NO-BREAK SPACE}% of AllReduce's time per step"
    ring, baseline = said["runs"]
    assert ring["share_of_allreduce"] == pytest.approx(0.4)
    assert baseline["share_of_allreduce"] is None
    cells = ["4.00", "40 %", "2000", "1.00", "4.200", "0.013", "64.0 kB", "ring", "cwa", "fp32"]
    assert page.row("ring")[1:-1] == cells
    cells = [
        "10.0",
        "100 %",
        "800",
        "2.50",
        "4.200",
        "0",
        "64.0 kB",
        "all workers",
        "allreduce",
        "fp32",
    ]
    assert page.row("all")[1:-1] == cells
    assert page.row("ring")[-1] == "4 on 2 hosts"
    assert "60\N{NO-BREAK SPACE}% less" in page.text


def test_time_is_split_as_the_trace_says(pair: list[Path], tmp_path: Path, capsys: Any) -> None:
    said, _ = made(pair, tmp_path / "page.html", capsys)
    for own, wait_us in zip(said["runs"], (WAIT_US, SLOW_WAIT_US), strict=True):
        assert own["parts_ms"]["compute"] == pytest.approx((FORWARD_US + BACKWARD_US) / 1e3)
        assert own["parts_ms"]["update"] == pytest.approx(UPDATE_US / 1e3)
        assert own["parts_ms"]["exposed"] == pytest.approx(wait_us / 1e3)
        hidden = (UPDATE_US + FORWARD_US) / 1e3  # from the update to the end of the next forward
        assert own["parts_ms"]["hidden"] == pytest.approx(hidden)


def test_the_timeline_has_allreduce_above(pair: list[Path], tmp_path: Path, capsys: Any) -> None:
    _, page = made(pair, tmp_path / "page.html", capsys)
    (alt,) = [each for each in page.pictures if each.startswith("Timelines")]
    assert alt.index("AllReduce (all)") < alt.index("ring (ring)")
    # Four steps of AllReduce, of 10 ms each; in this time the ring does ten, of which six are left.
    assert "over the same 40 ms" in alt
    assert page.text.index("AllReduce (all)") < page.text.index("ring (ring)")
    for step in range(2, 8):
        assert f"step {step}" in page.text


def test_edges_and_predictions_are_shown(pair: list[Path], tmp_path: Path, capsys: Any) -> None:
    said, page = made(pair, tmp_path / "page.html", capsys)
    edges = [each for each in page.pictures if each.startswith("Bytes per step")]
    assert len(edges) == 2
    assert all("4.00\N{NO-BREAK SPACE}kB" in each for each in edges), MESSAGE_BYTES
    assert page.text.count(f"{MESSAGE_BYTES / 1e3:.1f}") >= 2 * WORKERS
    assert page.row("step, ms")[1:] == ["5.00", "4.00", "0.800"]
    assert page.row("bytes per host")[1:] == ["32.0 kB", "64.0 kB", "2.00"]
    assert said["predicted"][0]["source"] == "simulator"


def test_traces_of_processes_are_one(pair: list[Path], tmp_path: Path, capsys: Any) -> None:
    whole, _ = made(pair[:1], tmp_path / "page.html", capsys)
    (pair[0] / "trace.json.gz").unlink()
    events = trace_events(WAIT_US)
    for rank in range(WORKERS):
        own = [
            each
            for each in events
            if each["pid"] == rank or (each["pid"] == WORKERS and each.get("tid", rank) == rank)
        ]
        for each in own:  # every process numbers its tracks from 0
            if each["pid"] == WORKERS and "tid" in each:
                each["tid"] = 0
        write_trace(pair[0] / f"trace.rank{rank}.json.gz", own)
    parts, page = made(pair[:1], tmp_path / "page.html", capsys)
    assert parts["runs"] == whole["runs"]
    assert page.text.count(f"{MESSAGE_BYTES / 1e3:.1f}") >= WORKERS


def test_it_needs_no_network_and_is_whole(pair: list[Path], tmp_path: Path, capsys: Any) -> None:
    _, page = made(pair, tmp_path / "page.html", capsys)
    text = (tmp_path / "page.html").read_text()
    assert "://" not in text
    assert not re.search(r"@import|<script|<link|<img|<iframe|\bsrc=", text)
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    used = set(re.findall(r"var\(--([\w-]+)\)", text))
    assert used <= set(re.findall(r"--([\w-]+):", text)), "every colour is in the style sheet"
    assert not re.search(r"#[ab]0[0-9a-f]{4}", text), "no colour that stands for another is left"
    assert len(page.pictures) == 8
    assert all(len(alt) > 10 for alt in page.pictures), "each says what it shows"


def test_names_are_text(tmp_path: Path, capsys: Any) -> None:
    odd = make_run(tmp_path / "<b>$x_1$&amp;", "cwa", 4.0)
    _, page = made([odd, make_run(tmp_path / "all", "allreduce", 8.0)], tmp_path / "p", capsys)
    assert page.row("<b>$x_1$&amp;")[1] == "4.00"
    assert "<b>" not in (tmp_path / "p").read_text()


def test_a_name_may_be_any_bytes(tmp_path: Path, capfdbinary: Any) -> None:
    odd = make_run(tmp_path / os.fsdecode(b"caf\xe9"), "cwa", 4.0)
    assert report.main([str(odd)]) == 0
    assert capfdbinary.readouterr().out == os.fsencode(odd / "report.html") + b"\n"
    assert "caf\ufffd" in (odd / "report.html").read_text()


def test_what_is_missing_is_said(tmp_path: Path, capsys: Any) -> None:
    said, page = made([make_run(tmp_path / "alone", "cwa", 4.0)], tmp_path / "page", capsys)
    assert said["runs"][0]["parts_ms"]["hidden"] is None
    for words in (
        "No trace was recorded of alone",
        "None of the runs is an AllReduce",
        "No run has a prediction",
    ):
        assert words in page.text
    assert page.heading == "ring takes 4.00\N{NO-BREAK SPACE}ms per step"


def test_a_run_that_did_not_end_has_the_figures_of_its_metrics(tmp_path: Path, capsys: Any) -> None:
    folder = make_run(tmp_path / "broken off", "cwa", 4.0)
    (folder / "summary.json").unlink()
    said, _ = made([folder], tmp_path / "page", capsys)
    own = said["runs"][0]
    assert own["ms_per_step"] == pytest.approx(4.0), "without the slow first step"
    assert (own["val_loss"], own["disagreement"], own["steps"]) == (4.2, 0.0125, 8)


def test_steps_done_again_count_once(tmp_path: Path, capsys: Any) -> None:
    folder = make_run(tmp_path / "resumed", "cwa", 4.0)
    (folder / "summary.json").unlink()
    for path in folder.glob("metrics.*"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        again = [{**line, "step_ms": 6.0} for line in lines if line["step"] > 2 and "loss" in line]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines + again))
    said, _ = made([folder], tmp_path / "page", capsys)
    assert said["runs"][0]["ms_per_step"] == pytest.approx(6.0)


def test_a_simulation_needs_a_trace_only(tmp_path: Path, capsys: Any) -> None:
    folders = []
    for name, wait_us in (("all", SLOW_WAIT_US), ("ring", WAIT_US)):
        folder = tmp_path / name
        folder.mkdir()
        write_recipe(folder, "allreduce" if name == "all" else "cwa")
        write_trace(folder / "trace.json.gz", trace_events(wait_us))
        folders.append(folder)
    said, page = made(folders, tmp_path / "page", capsys)
    assert "takes 40\N{NO-BREAK SPACE}% of AllReduce's time per step (simulated)" in page.heading
    assert said["runs"][1]["ms_per_step"] == pytest.approx(4.0)
    # Two of the four messages of a step cross between the two hosts.
    assert said["runs"][1]["bytes_per_host_per_step"] == pytest.approx(MESSAGE_BYTES)
    assert "No losses were recorded" in page.text
    assert "Not recorded in any run: samples per s, validation loss, disagreement." in " ".join(
        page.text.split()
    )


def test_the_trace_file_of_a_simulation_is_a_run(tmp_path: Path, capsys: Any) -> None:
    files = [tmp_path / "one.json.gz", tmp_path / "two.json"]
    write_trace(files[0], trace_events(SLOW_WAIT_US), "ddp")
    trace = {"traceEvents": trace_events(WAIT_US), "otherData": {"method": "aer:bf16"}}
    files[1].write_text(json.dumps(trace))
    said, page = made(files, tmp_path / "page", capsys)
    assert [each["run"] for each in said["runs"]] == ["one", "two"]
    assert page.heading.startswith("AER takes 40\N{NO-BREAK SPACE}% of AllReduce's")


def test_a_simulation_has_the_steps_that_were_asked_for(tmp_path: Path, capsys: Any) -> None:
    """Its warm-up, which is in the trace, is no part of any mean."""
    events = trace_events(WAIT_US)
    for event in events:
        if event["name"] == "wait" and event["args"]["step"] < 3:
            event["dur"] = 0.0
    path = tmp_path / "aer.json"
    origin = {"method": "aer", "steps": STEPS - 3, "warm_up": 3}
    path.write_text(json.dumps({"traceEvents": events, "otherData": origin}))
    said, page = made([path], tmp_path / "page", capsys)
    assert said["runs"][0]["steps"] == STEPS - 3
    assert said["runs"][0]["ms_per_step"] == pytest.approx(4.0)
    assert "simulated, 5 steps after 3 to warm up" in page.text
    path.write_text(json.dumps({"traceEvents": events, "otherData": {**origin, "steps": -1}}))
    assert report.main([str(path)]) == 2
    assert "must not be negative" in capsys.readouterr().err


@pytest.mark.parametrize(("task", "label"), [("text", "loss, nats"), ("own", "loss")])
def test_losses_have_their_unit_where_it_is_known(
    task: str, label: str, tmp_path: Path, capsys: Any
) -> None:
    made([make_run(tmp_path / "run", "cwa", 4.0, task=task)], tmp_path / "page", capsys)
    assert re.findall(">(loss.*?)</text>", (tmp_path / "page").read_text()) == [label, label]


@pytest.mark.parametrize("method", ["ring", "ring:bf16"])
def test_a_run_is_beside_a_simulation_of_its_method(
    method: str, tmp_path: Path, capsys: Any
) -> None:
    simulated = tmp_path / "simulated.json.gz"
    write_trace(simulated, trace_events(WAIT_US), method)
    run = make_run(tmp_path / "run", "cwa", 5.0, codec="bf16")
    said, _ = made([run, simulated], tmp_path / "page", capsys)
    found = said["predicted"]
    if method == "ring":
        assert found == []
    else:
        step = next(row for row in found[0]["rows"] if row["name"] == "step, ms")
        assert (step["predicted"], step["measured"]) == pytest.approx((4.0, 5.0))


def test_a_simulated_run_is_not_compared_with_a_measured_one(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "simulated"
    folder.mkdir()
    write_recipe(folder, "cwa")
    write_trace(folder / "trace.json.gz", trace_events(WAIT_US))
    said, _ = made([make_run(tmp_path / "all", "allreduce", 8), folder], tmp_path / "p", capsys)
    assert said["runs"][1]["share_of_allreduce"] is None


@pytest.mark.parametrize(
    ("changes", "words", "has_losses"),
    [
        ({"task": "images"}, "different tasks: they differ in data.task", False),
        ({"hosts": 4}, "different clusters: they differ in cluster.hosts", True),
    ],
)
def test_only_what_is_comparable_is_compared(
    changes: dict[str, Any], words: str, has_losses: bool, tmp_path: Path, capsys: Any
) -> None:
    one = make_run(tmp_path / "one", "cwa", 4.0, **changes)
    said, page = made([one, make_run(tmp_path / "all", "allreduce", 8)], tmp_path / "p", capsys)
    assert words in page.text
    assert [each["share_of_allreduce"] for each in said["runs"]] == [None, None]
    assert any(alt.startswith("Loss") for alt in page.pictures) == has_losses


def test_each_gamma_of_a_sweep_has_its_own_allreduce(tmp_path: Path, capsys: Any) -> None:
    folders = [
        make_run(tmp_path / pattern / f"gamma-{gamma}", pattern, step_ms, gamma=gamma, **measured)
        for pattern, gamma, step_ms, measured in (
            ("allreduce", 1.0, 10, {}),
            ("allreduce", 4.0, 40, {"compute_ms": 5.0}),
            ("cwa", 1.0, 8, {}),
            ("cwa", 4.0, 10, {"compute_ms": 5.1}),
        )
    ]
    said, page = made(folders, tmp_path / "page", capsys)
    shares = [each["share_of_allreduce"] for each in said["runs"]]
    assert shares == [None, None, pytest.approx(0.8), pytest.approx(0.25)]
    assert "different clusters" not in page.text


@pytest.mark.parametrize(
    ("rate", "words", "is_compared"),
    [(1.01e6, "", True), (1.1e6, "a part of the difference", True), (1.3e6, "not compared", False)],
)
def test_links_that_were_measured_anew_may_differ_a_little(
    rate: float, words: str, is_compared: bool, tmp_path: Path, capsys: Any
) -> None:
    ring = make_run(tmp_path / "ring", "cwa", 4.0, gamma=1.0, rate=rate)
    everybody = make_run(tmp_path / "all", "allreduce", 8, gamma=1.0, rate=1e6)
    said, page = made([ring, everybody], tmp_path / "page", capsys)
    assert words in page.text
    assert ("emulated links had" in page.text) == bool(words)
    assert (said["runs"][0]["share_of_allreduce"] is not None) == is_compared


def test_without_out_it_is_in_the_run_folder(tmp_path: Path, capsys: Any) -> None:
    folder = make_run(tmp_path / "run", "cwa", 4.0)
    assert report.main([str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'report.html'}\n"
    assert Page((folder / "report.html").read_text()).heading


def test_both_commands_make_it_without_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise AssertionError('torch was imported')")
    folder = make_run(tmp_path / "run", "cwa", 4.0)
    path = f"{tmp_path}:{PACKAGE.parent}"
    done = run(["-m", "gossamer_command", "report", str(folder)], path=path)
    assert (done.returncode, done.stderr) == (0, "")
    page = (folder / "report.html").read_text()
    (folder / "report.html").unlink()
    command = [str(PACKAGE / "bin" / "gossamer"), "report", str(folder)]
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {**os.environ, "PATH": here, "PYTHONPATH": str(tmp_path)}
    direct = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    assert (direct.returncode, direct.stderr) == (0, "")
    assert direct.stdout == done.stdout
    assert (folder / "report.html").read_text() == page, "equal runs give equal pages"
