"""The comparison of predictions with measured steps: its pure parts, a mistake, and one run."""

import json
import subprocess
import sys
from pathlib import Path

import conftest  # noqa: F401  the package's place, before the package
import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench" / "prediction"
# Last, for the benchmarks have files of the same names.
sys.path += [str(BENCH)]

import configurations  # noqa: E402
import sides  # noqa: E402
from configurations import Scene, cluster_toml, workload_toml  # noqa: E402
from launching import Bench, Programs, steps_for  # noqa: E402
from sides import Side  # noqa: E402

from gossamer import _core  # noqa: E402

BUILD = Path(_core.__file__).resolve().parents[3] / "bin"
PROGRAMS = Programs(BUILD)


def side(recommended: str, allreduce_s: float, gossip_s: float = 1.0) -> Side:
    return Side("scene", recommended, "allreduce", allreduce_s, "aer", gossip_s, 1.2)


def test_links_take_gamma_times_the_compute_for_the_bytes_of_a_ring() -> None:
    scene = Scene((2, 2, 2, 2), gamma=2, compute_s=0.05, parameters=100_000)
    # Of 400 kB every host sends 3/2; frames make 1514 bytes of 1448.
    assert 600_000 * 8 * 1514 / 1448 / scene.rate_bits_per_s == pytest.approx(0.1)


def test_files_say_what_the_scene_is() -> None:
    scene = Scene((1, 2), gamma=1, jitter=0.1, rates=(1.0, 0.5), speeds=(1.0, 0.25))
    text = cluster_toml(scene)
    assert [line for line in text.splitlines() if "workers" in line] == [
        "workers = 1",
        "workers = 2",
    ]
    assert f'link_rate = "{scene.rate_bits_per_s / 2:.0f}bit/s"' in text
    assert "speed = 0.25" in text
    assert 'deviation = "5000us"' in workload_toml(scene)
    assert "steps_ratio" not in workload_toml(scene)
    assert "steps_ratio = 1.2" in workload_toml(scene, 1.2)


def test_there_are_as_many_configurations_as_the_results_need() -> None:
    methods = [method for _, group in configurations.GROUPS for method in group]
    assert len(methods) >= 30
    assert len(configurations.SIDES) >= 24
    names = [scene.name for scene, _ in configurations.GROUPS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("step_s", "steps"), [(0.1, 30), (1.0, 16), (0.001, 60)])
def test_runs_last_about_as_long_as_wanted(step_s: float, steps: int) -> None:
    assert steps_for(step_s, 3.0) == steps


def test_who_is_faster_counts_the_steps_that_gossip_needs_in_addition() -> None:
    assert side("allreduce", 1.1).is_right
    assert not side("aer", 1.1).is_right
    assert side("aer:bf16", 1.3).is_right
    assert side("ddp", 1.1).takes_allreduce
    assert side("aer", 1.22).is_close
    assert side("aer", 1.15).is_close
    assert not side("aer", 1.13).is_close


def test_what_is_close_to_the_line_is_not_counted() -> None:
    all_of_them = [side("allreduce", 1.0), side("aer", 1.0), side("aer", 1.2), side("aer", 2.0)]
    assert sides.agreement(all_of_them, True) == (1, 2)
    assert sides.agreement(all_of_them, False) == (1, 1)


def test_the_best_of_each_kind_is_the_first_that_engines_run() -> None:
    names = ["ddp", "ring", "allreduce:bf16", "aer", "allreduce"]
    allreduce, gossip = sides.best_of_each([{"method": name} for name in names])
    assert (allreduce["method"], gossip["method"]) == ("allreduce:bf16", "ring")


def test_missing_programs_are_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH / "run.py"), "--programs", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "step_times: no such file" in done.stderr


needs_programs = pytest.mark.skipif(
    bool(PROGRAMS.missing()), reason=f"no programs: {PROGRAMS.missing()}"
)


@needs_programs
def test_a_method_that_engines_do_not_run_is_refused() -> None:
    with pytest.raises(RuntimeError, match="engines do not run this method, got ddp"):
        Bench(PROGRAMS, 1.0).measure(Scene((1, 1), gamma=1), "ddp", 16)


@needs_programs
@pytest.mark.parametrize("method", ["aer:bf16", "allreduce", "one_peer_ring:skip"])
def test_engines_check_their_answer_and_bytes(method: str) -> None:
    scene = Scene((2, 2), gamma=0.5, compute_s=0.01, parameters=10_000)
    row = Bench(PROGRAMS, 1.0).measure(scene, method, 4)
    assert row["error"] <= 1e-4
    assert row["step_s"] >= 0.95 * row["compute_s"]
    assert len(row["bytes_per_host_per_step"]) == 2
    # Half a payload, in bf16; the bytes of a ring between two hosts.
    wanted = {"aer:bf16": 10_000, "allreduce": 4 * 10_000}.get(method)
    if wanted:
        assert row["bytes_per_host_per_step"] == [wanted, wanted]


@needs_programs
def test_a_quick_run_tells(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    words = [sys.executable, str(BENCH / "run.py"), "--quick", "--programs", str(BUILD)]
    done = subprocess.run(
        [*words, "--json", str(results)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    written = json.loads(results.read_text())
    assert len(written["rows"]) == 5
    assert all(row["predicted_s"] > 0.04 for row in written["rows"])
    assert len(written["sides"]) == 2
    assert "answered right" in done.stdout


def test_what_plan_chooses_is_the_best_by_simulation(tmp_path: Path) -> None:
    out = tmp_path / "choices.json"
    words = ["--quick", "--program", str(BUILD / "gossamer"), "--json", str(out)]
    done = subprocess.run(
        [sys.executable, str(BENCH / "choices.py"), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cases = json.loads(out.read_text())
    assert [case["per_host"] for case in cases] == [1, 2]
    assert all(case["factor"] <= 1.05 and case["apart"] <= 0.1 for case in cases)
