"""`gossamer train` on a disk that fails: what has been trained is not lost for it."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from train_runs import GOSSAMER, Done, checkpoint_bytes, small_text, train, wait_for

SHIM = Path(__file__).with_name("faulty_disk.c")


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> str:
    library = tmp_path_factory.mktemp("shim") / "faulty_disk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SHIM, "-ldl"], check=True)
    return str(library)


def trained(folder: Path, shim: str, fault: str, *more: str) -> Done:
    """Eight steps of two workers, saved after every second one."""
    flags = "--hosts 2 --per-host 1 --steps 8 --checkpoint-every 2 --keep 9".split()
    variables = {"LD_PRELOAD": shim, "FAULT": fault}
    out = ["--out", str(folder / "run"), *more]
    return train(*small_text(folder), *flags, *out, check=False, variables=variables)


def saved(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "run" / "checkpoints").iterdir())


def steps(*numbers: int) -> list[str]:
    return ["latest", *(f"step-{step:08d}" for step in numbers)]


@pytest.mark.parametrize(
    "fault",
    [
        "fsync worker-00001 2 1",
        "rename step-00000004.tmp 4 1",
        "fsync manifest.json 2 1",
        "rename-to checkpoints/latest 2 1",
    ],
)
def test_one_failed_save_is_a_warning_and_the_next_one_is_made(
    fault: str, tmp_path: Path, shim: str
) -> None:
    done = trained(tmp_path, shim, fault)
    assert done.returncode == 0, done.stderr
    (said,) = [line for line in done.stderr.splitlines() if "is not saved" in line]
    assert said.startswith("gossamer: step 4 is not saved: [")
    assert "Input/output error" in said
    assert "saves again after step 6" in said
    has_name = fault.startswith("rename-to")  # only `latest` is missing
    assert saved(tmp_path) == (steps(2, 4, 6, 8) if has_name else steps(2, 6, 8))
    (tmp_path / "sound").mkdir()
    assert trained(tmp_path / "sound", shim, "").returncode == 0
    assert checkpoint_bytes(tmp_path / "run", 8) == checkpoint_bytes(tmp_path / "sound" / "run", 8)


@pytest.mark.parametrize(
    ("fault", "kept"),
    [("fsync worker-00001 2 2", steps(2)), ("fsync worker-00001 4 1", steps(2, 4, 6))],
)
def test_two_in_a_row_or_the_last_end_the_run(
    fault: str, kept: list[str], tmp_path: Path, shim: str
) -> None:
    done = trained(tmp_path, shim, fault)
    assert done.returncode == 1
    assert "Input/output error" in done.stderr.splitlines()[-1]
    assert [name for name in saved(tmp_path) if "tmp" not in name] == kept
    train("--resume", str(tmp_path / "run"))
    assert saved(tmp_path)[-1] == "step-00000008"


def test_an_old_checkpoint_that_stays_is_a_warning(tmp_path: Path, shim: str) -> None:
    done = trained(tmp_path, shim, "rename checkpoints/step-00000002 5 1", "--keep", "1")
    assert done.returncode == 0, done.stderr
    assert "an old checkpoint is kept until the next save: [" in done.stderr
    assert saved(tmp_path) == steps(8)


def test_metrics_that_cannot_be_written_end_and_the_run_does_not(tmp_path: Path, shim: str) -> None:
    done = trained(tmp_path, shim, "write metrics.rank1.jsonl 4 1", "--json")
    assert done.returncode == 0, done.stderr
    (said,) = [line for line in done.stderr.splitlines() if "metrics end" in line]
    assert "metrics.rank1.jsonl] the metrics end before step 4, got Input/output error" in said
    assert json.loads(done.stdout)["metrics"] == "incomplete"
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["metrics"] == "incomplete"
    lines = (tmp_path / "run" / "metrics.rank1.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines[:3]] == [1, 2, 3]
    assert len(lines) <= 4
    whole = (tmp_path / "run" / "metrics.rank0.jsonl").read_text()
    assert json.loads(whole.splitlines()[-1])["step"] == 8


def test_without_locks_the_former_of_two_runs_hears_of_the_other(tmp_path: Path, shim: str) -> None:
    """As on NFS without a lock service: a requeued run goes on while the first one still drains."""
    variables = {**os.environ, "LD_PRELOAD": shim, "NO_LOCKS": "1"}
    out = str(tmp_path / "run")
    flags = "--hosts 2 --per-host 1 --steps 40 --checkpoint-every 2 --compute-ms 250".split()
    former = subprocess.Popen(
        [str(GOSSAMER), "train", *small_text(tmp_path), *flags, "--gamma", "0.5", "--out", out],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=variables,
    )
    latest = tmp_path / "run" / "checkpoints" / "latest"
    wait_for(latest, former, patience_s=60)
    second = train("--resume", out, check=False, variables={"LD_PRELOAD": shim, "NO_LOCKS": "1"})
    _, said = former.communicate(timeout=60)
    assert former.returncode == 1
    assert "another job has taken over" in said
    assert "a run of gossamer train, process" in said
    assert second.returncode == 0, second.stderr
    assert "step-00000040" in saved(tmp_path)
