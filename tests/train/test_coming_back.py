"""`gossamer train --lost go_on`: a worker that was killed and is started again takes part again."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from train_runs import (
    PATIENCE_S,
    Variables,
    as_torchrun,
    checkpoint_bytes,
    finish,
    small_text,
    start,
    wait_for,
)

STOPPED = 128 + signal.SIGTERM
Process = subprocess.Popen[str]


def as_launched(members: Path) -> Callable[[int, int], Variables]:
    """As `gossamer launch` sets them, of a rank that was there so often before."""
    usual = as_torchrun(4, per_host=2)
    folder = str(members)
    return lambda rank, before: (
        usual(rank)
        | {
            "GOSSAMER_MEMBERS": folder,
            "GOSSAMER_RESTARTS": str(before),
        }
    )


def steps(out: Path, rank: int) -> list[int]:
    text = (out / f"metrics.rank{rank}.jsonl").read_text()
    found = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
    return [line["step"] for line in found if "loss" in line]


def wait_for_step(out: Path, rank: int, step: int, processes: list[Process]) -> None:
    limit = time.monotonic() + PATIENCE_S
    while steps(out, rank)[-1] < step:
        ended = [each.communicate()[1] for each in processes if each.poll() is not None]
        assert not ended, ended
        assert time.monotonic() < limit, f"rank {rank} is not beyond step {steps(out, rank)[-1]}"
        time.sleep(0.05)


FLAGS: dict[str, str] = {
    "a ring": "--topology ring",
    "hosts that average": "--topology alternating_exponential_ring --codec int8",
    "all-reduce": "--pattern allreduce",
    "trackers": "--topology one_peer_exponential --pattern gradient_tracking --optimizer sgd",
}


@pytest.mark.parametrize("case", FLAGS)
def test_killed_workers_come_back(case: str, tmp_path: Path) -> None:
    out, variables = tmp_path / "run", as_launched(tmp_path / "members")
    flags = [*small_text(tmp_path), *FLAGS[case].split(), "--lost", "go_on", "--suspect-s", "60"]
    flags += ["--steps", "1000000", "--checkpoint-every", "100", "--out", str(out)]
    processes = start(lambda rank: variables(rank, 0), [0, 1, 2, 3], *flags)
    wait_for(out / "checkpoints" / "latest", *processes, patience_s=PATIENCE_S)
    for victim in (2, 0):  # rank 0 had made the folder of the run
        processes[victim].kill()
        processes[victim].communicate()
        died_in = steps(out, victim)[-1] + 1
        processes[victim] = start(lambda rank: variables(rank, 1), [victim], *flags)[0]
        wait_for_step(out, victim, died_in + 200, processes)
        assert steps(out, victim).count(died_in + 150) <= 1
    processes[3].send_signal(signal.SIGTERM)
    done = finish(processes)
    assert [each.returncode for each in done] == [STOPPED] * 4, [each.stderr for each in done]
    assert "worker 2 is back from step" in done[1].stderr
    assert "worker 0 is back from step" in done[1].stderr
    latest = int((out / "checkpoints" / "latest").read_text().strip().removeprefix("step-"))
    assert [steps(out, rank)[-1] for rank in range(4)] == [latest] * 4
    saved = checkpoint_bytes(out, latest)
    assert len(saved) == 4
    if case == "all-reduce":
        assert len(set(saved.values())) == 1, "replicas have the same bits"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("", "the others do not go on without it, got lost = error"),
        ("--lost go_on", "found no card of rank 0"),
    ],
)
def test_to_what_nobody_comes_back(flags: str, words: str, tmp_path: Path) -> None:
    variables = as_launched(tmp_path / "members")
    text = small_text(tmp_path)
    done = finish(start(lambda rank: variables(rank, 1), [1], *text, *flags.split()))
    assert done[0].returncode in (1, 2)
    assert words in done[0].stderr
