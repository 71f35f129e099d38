"""`gossamer train --lost go_on`: the workers that are left finish the run."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from train_runs import (
    Done,
    Variables,
    as_torchrun,
    checkpoint_bytes,
    finish,
    small_text,
    start,
    train,
    wait_for,
)

SHIM = Path(__file__).with_name("faulty_disk.c")
RUN = "--topology ring --lost go_on --steps 12 --checkpoint-every 4 --keep 9 --json --out".split()


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> str:
    library = tmp_path_factory.mktemp("shim") / "faulty_disk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SHIM, "-ldl"], check=True)
    return str(library)


@pytest.fixture
def text(tmp_path: Path) -> list[str]:
    return small_text(tmp_path)


def started(
    text: list[str], out: Path, victim: int, fault: Variables, *flags: str, suspect_s: int = 60
) -> list["subprocess.Popen[str]"]:
    """Two hosts of two workers, of which one meets the fault. On a busy machine a worker may say
    nothing for seconds; one that ends is noticed at once."""
    usual = as_torchrun(4, per_host=2)
    return start(
        lambda rank: usual(rank) | (fault if rank == victim else {}),
        [0, 1, 2, 3],
        *(*text, *RUN, str(out), *flags, "--suspect-s", str(suspect_s)),
    )


def lines(out: Path, rank: int) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (out / f"metrics.rank{rank}.jsonl").read_text().splitlines()
    ]


def check_those_left(done: list[Done], out: Path, victim: int) -> None:
    ranks = [rank for rank in range(4) if rank != victim]
    others = [done[rank] for rank in ranks]
    assert [each.returncode for each in others] == [0] * 3, [each.stderr for each in others]
    summary = json.loads(others[0].stdout)
    assert [each.stdout for each in others[1:]] == ["", ""]
    assert (summary["workers"], summary["workers_left"], summary["steps"]) == (4, 3, 12)
    assert summary == json.loads((out / "summary.json").read_text())
    assert (out / "model.safetensors").exists()
    for rank in ranks:
        assert [line["step"] for line in lines(out, rank) if "loss" in line] == list(range(1, 13))
        (last,) = [line for line in lines(out, rank) if "val_loss" in line]
        assert (last["val_loss"], last["disagreement"]) == (
            summary["val_loss"],
            summary["disagreement"],
        )
    named = [line["lost"] for rank in ranks for line in lines(out, rank) if "lost" in line]
    assert named == [[victim]] * len(named)
    assert len(checkpoint_bytes(out, 12)) == 3


@pytest.mark.parametrize("victim", [0, 2])
def test_one_that_is_killed_in_a_step_costs_itself(
    victim: int, text: list[str], tmp_path: Path, shim: str
) -> None:
    out = tmp_path / "run"
    fault = {"LD_PRELOAD": shim, "FAULT": f"write metrics.rank{victim}.jsonl 6 1"}
    done = finish(started(text, out, victim, fault | {"FAULT_KILLS": "1"}))
    assert done[victim].returncode == -signal.SIGKILL
    check_those_left(done, out, victim)
    assert len(checkpoint_bytes(out, 4)) == 4
    assert len(checkpoint_bytes(out, 8)) == 3
    said = [each.stderr for each in done]
    assert any(f"goes on without worker {victim}, lost in step" in words for words in said)


def test_replicas_that_are_left_stay_replicas(text: list[str], tmp_path: Path, shim: str) -> None:
    out = tmp_path / "run"
    fault = {"LD_PRELOAD": shim, "FAULT": "write metrics.rank1.jsonl 6 1", "FAULT_KILLS": "1"}
    done = finish(started(text, out, 1, fault, "--pattern", "allreduce"))
    check_those_left(done, out, 1)
    assert json.loads(done[0].stdout)["disagreement"] < 1e-6


@pytest.mark.parametrize(
    ("fault", "victim"), [("fsync worker-00002 1 1", 2), ("rename step-00000004.tmp 1 1", 0)]
)
def test_one_that_is_killed_in_a_save_is_in_no_checkpoint(
    fault: str, victim: int, text: list[str], tmp_path: Path, shim: str
) -> None:
    out = tmp_path / "run"
    variables = {"LD_PRELOAD": shim, "FAULT": fault, "FAULT_KILLS": "1"}
    done = finish(started(text, out, victim, variables))
    assert done[victim].returncode == -signal.SIGKILL
    check_those_left(done, out, victim)
    assert len(checkpoint_bytes(out, 4)) == 3
    assert not list((out / "checkpoints").glob("*.tmp-*"))


def test_those_left_are_resumed_as_a_run_of_so_many(
    text: list[str], tmp_path: Path, shim: str
) -> None:
    out = tmp_path / "run"
    fault = {"LD_PRELOAD": shim, "FAULT": "write metrics.rank3.jsonl 6 1", "FAULT_KILLS": "1"}
    finish(started(text, out, 3, fault))
    flags = ["--resume", str(out), "--json", "--steps", "16"]
    refused = finish(start(as_torchrun(4, per_host=2), [0, 1, 2, 3], *flags))
    assert [each.returncode for each in refused] == [2] * 4
    usual = as_torchrun(3, per_host=2)  # the third one is on a host of its own, as it was
    local = {"LOCAL_WORLD_SIZE": "1"}
    done = finish(start(lambda r: usual(r) | (local if r == 2 else {}), [0, 1, 2], *flags))
    assert [each.returncode for each in done] == [0] * 3, done[0].stderr
    summary = json.loads(done[0].stdout)
    assert (summary["workers"], summary["steps"]) == (3, 16)
    assert "workers_left" not in summary


def test_one_that_stood_still_ends_by_itself(text: list[str], tmp_path: Path, shim: str) -> None:
    out = tmp_path / "run"
    fault = {"LD_PRELOAD": shim, "FAULT": "write metrics.rank1.jsonl 6 1", "FAULT_STOPS": "1"}
    processes = started(text, out, 1, fault, suspect_s=5)
    wait_for(out / "summary.json", processes[1])
    processes[1].send_signal(signal.SIGCONT)
    done = finish(processes)
    check_those_left(done, out, 1)
    assert done[1].returncode == 4
    assert "without this worker" in done[1].stderr


def test_those_left_save_when_one_is_told_to_stop(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    flags = "--topology ring --lost go_on --steps 1000000 --checkpoint-every 5 --out".split()
    processes = start(as_torchrun(4, per_host=2), [0, 1, 2, 3], *text, *flags, str(out))
    wait_for(out / "checkpoints" / "latest", *processes, patience_s=60)
    processes[2].send_signal(signal.SIGKILL)
    processes[2].wait()
    processes[3].send_signal(signal.SIGTERM)
    done = finish(processes)
    stopped = 128 + signal.SIGTERM
    assert [each.returncode for each in done] == [stopped, stopped, -signal.SIGKILL, stopped]
    step = int((out / "checkpoints" / "latest").read_text().strip().removeprefix("step-"))
    assert f"stopped and saved after step {step};" in done[0].stderr
    assert len(checkpoint_bytes(out, step)) == 3
    for rank in (0, 1, 3):
        assert len([line for line in lines(out, rank) if "loss" in line]) == step


def test_threads_take_it_too(text: list[str], tmp_path: Path) -> None:
    done = train(*text, *RUN, str(tmp_path / "run"), "--hosts", "2", "--per-host", "2")
    assert "workers_left" not in json.loads(done.stdout)


def test_what_needs_all_workers_is_refused(text: list[str]) -> None:
    for flags, words in (
        ("--adaptive-average 4", "no loss of all workers"),
        ("--topology one_peer_exponential --late skip", "needs symmetric W"),
    ):
        done = train(*text, "--lost", "go_on", *flags.split(), check=False)
        assert done.returncode == 2
        assert words in done.stderr
        assert "go_on" in done.stderr
