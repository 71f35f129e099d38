"""The bench of workers that are killed again and again: what its numbers mean."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from package_runs import PACKAGE

CHURN = Path(__file__).resolve().parents[2] / "bench" / "churn"
sys.path.append(str(CHURN))

import goodput  # noqa: E402
import notes  # noqa: E402

STEP_S = 0.1


def steps(first: int, begin: float, count: int) -> list[dict[str, Any]]:
    return [{"at": begin + k * STEP_S, "step": first + k} for k in range(count)]


def process(began: float, after_s: float, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"at": began + after_s, "what": "imported", "pid": 1}, *lines]


# Four workers in 10 s. Rank 1 is lost after 2 s and back after 4; the others step on, but rank 2
# waits for .5 s.
STEADY = process(-3, 2, steps(1, 0.0, 100))
LOST = [*process(-3, 2, steps(1, 0.0, 20)), *process(2.0, 1.5, steps(40, 4.0, 60))]
WAITS = process(-3, 2, [*steps(1, 0.0, 21), *steps(22, 2.5, 75)])
FAULT = goodput.Fault(1.95, 1)


def test_a_run_with_one_death() -> None:
    found = goodput.summary([STEADY, LOST, WAITS, STEADY], [FAULT], 0.0, 10.0)
    assert found["step_s"] == pytest.approx(STEP_S)
    assert found["goodput"] == pytest.approx((100 + 80 + 96 + 100) / 400, abs=0.003)
    assert found["longest_gap_s"] == pytest.approx(0.5)
    assert found["median_recovery_s"] == pytest.approx(4.0 - 1.95)
    assert found["median_recovery_after_import_s"] == pytest.approx(0.5)
    assert (found["came_back"], found["others_started_again"]) == (1, 0)
    assert found["steps_lost"] == 0
    assert found["step_at_the_end"] == 4


def test_steps_done_again_count_once() -> None:
    again = [*process(-3, 2, steps(1, 0.0, 50)), *process(5.0, 1.0, steps(31, 6.0, 40))]
    found = goodput.summary([again, again], [goodput.Fault(4.9, 0)], 0.0, 10.0)
    assert found["goodput"] == pytest.approx(70 / 100, abs=0.01)
    assert found["others_started_again"] == 1
    assert found["steps_lost"] == 2 * 20  # by each of both, for one fault and one other worker


def test_a_step_that_is_left_out_is_lost() -> None:
    skips = process(-3, 2, [*steps(1, 0.0, 20), *steps(22, 2.0, 78)])
    assert goodput.summary([skips, LOST, STEADY], [FAULT], 0.0, 10.0)["steps_lost"] == 0.5


def test_who_steps_no_more_is_a_gap_up_to_the_end() -> None:
    stops = process(-3, 2, steps(1, 0.0, 21))
    found = goodput.summary([stops, LOST], [FAULT], 0.0, 10.0)
    assert found["longest_gap_s"] == pytest.approx(8.0)
    assert found["step_at_the_end"] == 1


def test_the_time_until_a_worker_is_back_starts_with_the_fault() -> None:
    spare = process(-1.0, 3.25, steps(40, 2.5, 75))
    found = goodput.summary([STEADY, [*LOST[:21], *spare]], [FAULT], 0.0, 10.0)
    assert found["median_recovery_s"] == pytest.approx(2.5 - 1.95)
    assert found["median_recovery_after_import_s"] == pytest.approx(0.25)
    assert found["others_started_again"] == 0


def test_the_next_fault_is_no_gap_of_this_one() -> None:
    faults = [FAULT, goodput.Fault(6.0, 2)]
    waits = [*WAITS[:58], *process(6.0, 1.5, steps(70, 8.0, 20))]  # is lost, too, and back
    found = goodput.summary([STEADY, LOST, waits, STEADY], faults, 0.0, 10.0)
    assert found["longest_gap_s"] == pytest.approx(0.5)


def test_who_is_away_since_an_earlier_fault_is_no_gap() -> None:
    faults = [FAULT, goodput.Fault(3.05, 0)]
    found = goodput.summary([STEADY, LOST, WAITS, STEADY], faults, 0.0, 10.0)
    assert found["longest_gap_s"] == pytest.approx(0.5)
    assert found["median_gap_s"] == pytest.approx((0.5 + STEP_S) / 2)


def test_half_a_line_of_a_killed_process_is_passed_over(tmp_path: Path) -> None:
    line = json.dumps({"at": 2.5, "what": "imported", "pid": 7})
    (tmp_path / "notes-3.jsonl").write_text('{"at": 1.0, "step": 1}\n{"at": 1.1, "st' + line + "\n")
    assert [note["at"] for note in notes.read(tmp_path, 3)] == [1.0, 2.5]


def run(script: str, *words: str) -> str:
    """What it prints."""
    done = subprocess.run(
        [sys.executable, str(CHURN / script), *words],
        env={**os.environ, "GOSSAMER_PYTHON_PATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def measured(script: str, folder: Path, *words: str) -> Any:
    """What the script's short form writes."""
    out = folder / "churn.json"
    run(script, *words, f"--out={out}")
    return json.loads(out.read_text())


def test_a_short_run_in_which_a_worker_is_killed(tmp_path: Path) -> None:
    words = ["--contenders=gossamer ring", "--every=6", "--seconds=6", "--seeds=1"]
    (run,) = measured("run.py", tmp_path, *words)["runs"]
    assert (run["faults"], run["others_started_again"]) == (1, 0)
    assert run["goodput"] > 0


def test_a_worker_that_outlives_two_others_is_looked_at(tmp_path: Path) -> None:
    sizes = measured("flat.py", tmp_path, "--workers=2", "--cycles=2")["sizes"]
    assert len(sizes) == 2
    for size in sizes:
        assert size["rss_mib"] > 100  # torch
        assert size["files"] > size["sockets"] > 0


def test_a_short_comparison_of_losses(tmp_path: Path) -> None:
    words = ["--workers=2", "--steps=60", "--every=2", "--seeds=1"]
    (found,) = measured("losses.py", tmp_path, *words)
    for how in ("quiet", "killed"):
        assert found[how]["worker_steps"] >= 60  # who was away has fewer than the others
        assert 0 < found[how]["loss"] < 6  # 256 bytes, all equally likely: 5.5
    assert found["quiet"]["kills"] == 0
    assert found["killed"]["kills"] >= 1


def test_the_others_go_on_whoever_is_killed(tmp_path: Path) -> None:
    assert measured("coordinators.py", tmp_path, "--times=1", "--kinds=donor") == {"donor": [""]}


def test_no_sample_is_left_out() -> None:
    said = run("shares.py", "--deaths=1", "--life=20", "--samples=4000")
    assert said.startswith("4000 samples, 1 deaths, seed 1: 0 missing")
