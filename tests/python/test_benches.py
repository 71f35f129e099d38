"""Every script and program of measurements starts and ends well, in its short form.

Nothing here looks at a time: each bench checks its own answers before it prints.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import cluster as emulated

from gossamer import _core

BENCH = ROOT / "bench"
BUILD = Path(_core.__file__).resolve().parents[3]
LIMIT_S = 240
# Scripts that other tests start, with the test's file.
ELSEWHERE = {
    "churn/coordinators.py": "test_churn_bench.py",
    "churn/flat.py": "test_churn_bench.py",
    "churn/losses.py": "test_churn_bench.py",
    "churn/run.py": "test_churn_bench.py",
    "churn/shares.py": "test_churn_bench.py",
    "cluster/run.py": "test_cluster.py",
    "cluster/predict.py": "test_cluster.py",
    "faults/hostile.py": "test_faults.py",
    "faults/moments.py": "test_faults.py",
    "faults/parted.py": "test_faults.py",
    "faults/soak.py": "test_faults.py",
    "prediction/choices.py": "test_prediction_bench.py",
    "prediction/run.py": "test_prediction_bench.py",
    "programs/report.py": "test_programs_bench.py",
    "programs/run.py": "test_programs_bench.py",
    "training/losses.py": "test_training_comparison.py",
    "training/run.py": "test_training_comparison.py",
}
# What scripts start for themselves, with the script that does.
STARTED = {
    "churn/elastic_worker.py": "churn/contenders.py",
    "churn/gossip_worker.py": "churn/contenders.py",
    "churn/torchft_worker.py": "churn/contenders.py",
    "cluster/worker.py": "cluster/run.py",
    "gpu/worker.py": "gpu/run.py",
    "python/memory_worker.py": "python/memory.py",
    "python/worker.py": "python/run.py",
    "training/worker.py": "training/run.py",
    "transport/gloo_pair.py": "transport/run.py",
}
# What is started here, with the names that its results must have.
QUICK = {
    "engine/run.py": {"ring", "alternating_exponential_ring"},
    "gpu/run.py": {"pinned out GB/s", "mix ms", "ratio", "fp32", "int8", "said"},
    "kernels/run.py": {"gossamer mix+AdamW", "gossamer mix+AccumAdamW, 4 steps"},
    "lab/run.py": {"dimension"},
    "python/links.py": {"net, shared memory", "net, TCP", "c10d", "raw Gloo"},
    "python/memory.py": {"ddp", "gossamer, one host", "allreduce bf16"},
    "python/one_process.py": {"transformer", "conv"},
    "python/run.py": {"ddp", "gossamer ring", "gossamer allreduce"},
    "transport/run.py": {"net, in place", "net, TLS", "Gloo"},
}
# One benchmark of each program, the cheapest; lab/run.py starts lab_bench.
PROGRAMS = {
    "data_bench": "crop",
    "kernels_bench": "run/mix_adamw.*/16384",
    "sim_bench": "workers:64/per_host:8/steps:1000/load:50$",
    "torch_bench": "residual_cnn_step/width:8/batch:16/real_time/threads:1",
    "transport_bench": "BM_one_way/64/",
}
needs_benches = pytest.mark.skipif(
    not (BUILD / "bin" / "step_overhead").exists(), reason=f"no benches are built in {BUILD}"
)


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    package = {"GOSSAMER_PYTHON_PATH": str(BUILD / "python")}
    return subprocess.run(
        [str(word) for word in words],
        env={**os.environ, **package},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def results(script: str, folder: Path, *words: str) -> Any:
    """What the script's short form writes."""
    out = folder / "out.json"
    done = run(sys.executable, BENCH / script, *words, "--quick", "--json", out)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(out.read_text())


def words_of(value: Any) -> set[str]:
    """All keys and strings in it."""
    if isinstance(value, dict):
        return set(value).union(*map(words_of, value.values()))
    if isinstance(value, list):
        return set().union(*map(words_of, value))
    return {value} if isinstance(value, str) else set()


def test_every_script_is_started_by_some_test() -> None:
    scripts = {
        str(path.relative_to(BENCH))
        for path in BENCH.glob("*/*.py")
        if '__name__ == "__main__"' in path.read_text()
    }
    assert scripts == {*ELSEWHERE, *STARTED, *QUICK}
    folder = Path(__file__).parent
    for script, test in ELSEWHERE.items():
        assert Path(script).name in (folder / test).read_text(), f"{test} does not start {script}"
    for script, starter in STARTED.items():
        texts = [path.read_text() for path in (BENCH / starter).parent.glob("*.py")]
        assert any(f'"{Path(script).name}"' in text for text in texts), script


@needs_benches
def test_every_program_is_started() -> None:
    assert {path.name for path in (BUILD / "bin").glob("*_bench")} == {*PROGRAMS, "lab_bench"}


@needs_benches
@pytest.mark.parametrize("script", QUICK)
def test_a_quick_run_has_all_contenders(script: str, tmp_path: Path) -> None:
    words = {
        "gpu/run.py": ["--device", "testdev", "--parts", "facts,copies,passes,kills,times"],
        "transport/run.py": ["host", "loopback"],
    }
    found = words_of(results(script, tmp_path, *words.get(script, [])))
    assert found >= QUICK[script]


@needs_benches
def test_a_quick_run_over_a_link_between_namespaces(tmp_path: Path) -> None:
    if reason := emulated.missing_rights():
        pytest.skip(reason)
    rows = results("transport/run.py", tmp_path, "shaped", "unshaped")
    assert {row["link"] for row in rows} == {"link of 1 Gbit/s", "link, unshaped"}


@needs_benches
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_and_finds_no_error(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = run(
        BUILD / "bin" / name,
        f"--benchmark_filter={PROGRAMS[name]}",
        "--benchmark_min_time=0.001",
        f"--benchmark_out={out}",
        "--benchmark_out_format=json",
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(out.read_text())["benchmarks"]
    assert rows
    assert not any(row.get("error_occurred") for row in rows), rows


@needs_benches
def test_a_field_that_no_step_has_is_named() -> None:
    place = BENCH / "kernels" / "native.py"
    spec = importlib.util.spec_from_file_location("kernels_native", place)
    assert spec
    assert spec.loader
    native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
    kernels = native.Kernels(BUILD / "bin" / "libbench_kernels_c.so")
    with pytest.raises(ValueError, match="no such field of adam, got 'period'; add it there"):
        kernels.step("adam", period=2)
    with pytest.raises(ValueError, match="makes no step, got 'lion'"):
        kernels.step("lion")
