"""StopOnSignal: all workers save after the same step when one of them is told to stop."""

import signal
import subprocess
import sys
from pathlib import Path

import gossip_ranks
import pytest
from gossip_support import ROOT, newest

SCENARIOS = ["one_is_told", "at_a_barrier", "loaded_again", "misused", "one_is_lost"]
STOPPED = 128 + signal.SIGTERM


@pytest.fixture(scope="module")
def three(folder: Path) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(SCENARIOS, [1, 2])


def test_all_stop_after_the_same_step(three: list[gossip_ranks.Rank]) -> None:
    by_rank = gossip_ranks.results(three, "one_is_told")
    for runs in zip(*by_rank, strict=True):
        assert len({run["steps"] for run in runs}) == 1
        assert runs[0]["steps"] < 1000
        assert [run["left"] for run in runs] == [STOPPED] * 3
        assert {run["handler"] for run in runs} == {str(signal.SIG_DFL)}


def test_a_barrier_of_torch_keeps_nobody_waiting(three: list[gossip_ranks.Rank]) -> None:
    found = gossip_ranks.results(three, "at_a_barrier")
    assert len({run["steps"] for run in found}) == 1
    assert [run["left"] for run in found] == [STOPPED] * 3


def test_what_was_saved_goes_on(three: list[gossip_ranks.Rank]) -> None:
    stopped = gossip_ranks.results(three, "at_a_barrier")[0]["steps"]
    for run in gossip_ranks.results(three, "loaded_again"):
        assert run["before"] == stopped
        assert run["left"] == 128 + signal.SIGHUP
    assert len({run["steps"] for run in gossip_ranks.results(three, "loaded_again")}) == 1


def test_mistakes_are_told_on_every_rank(three: list[gossip_ranks.Rank]) -> None:
    for found in gossip_ranks.results(three, "misused"):
        assert "grace_s must be above 0, got 0" in found["grace"]["message"]
        assert "main thread" in found["thread"]["message"]
        assert "got a second" in found["second"]["message"]
        assert "lost='go_on'" in found["alone"]["message"]
        assert "lost='go_on'" in found["leave"]["message"]


def test_a_lost_worker_is_no_endless_wait(three: list[gossip_ranks.Rank]) -> None:
    found = gossip_ranks.results(three, "one_is_lost")
    for rank in found[:2]:
        assert rank["type"] == "TransportError"
        assert rank["took_s"] < 20


def test_those_that_are_left_stop_and_save(folder: Path) -> None:
    ranks = gossip_ranks.run(["without_the_lost"], [1, 1, 1, 1, 1])
    assert [ranks[lost].code for lost in (0, 2)] == [-signal.SIGKILL] * 2
    left = [ranks[rank] for rank in (1, 3, 4)]
    found = gossip_ranks.results(left, "without_the_lost")
    assert [run["left"] for run in found] == [STOPPED] * 3
    assert len({run["steps"] for run in found}) == 1
    assert found[0]["steps"] < 1000
    saved = newest(folder / "stopped")
    assert saved.name == f"step-{found[0]['steps']:08d}"
    assert len(list(saved.glob("worker-*"))) == 3


def test_one_leaves_and_the_others_go_on(folder: Path) -> None:
    found = gossip_ranks.results(gossip_ranks.run(["one_leaves"], [1] * 4), "one_leaves")
    assert [run["steps"] for run in found] == [59, 5, 9, 59]
    assert found[1]["left"] == STOPPED
    assert found[0]["lost"]["1"] == found[3]["lost"]["2"] == "the peer left"
    assert found[0]["mean"] == found[3]["mean"] == 1.5


ALONE = """
import os, signal, sys, time
import torch, gossamer
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
gossip = gossamer.Gossip(model, optimizer)
if sys.argv[3:]:
    signal.signal(signal.SIGUSR1, lambda number, frame: print(sys.argv[3]))
with gossamer.StopOnSignal(gossip, grace_s=float(sys.argv[2]), signals=[signal.SIGUSR1]) as stop:
    for step in range(1000):
        model(torch.ones(2)).sum().backward()
        optimizer.step()
        if step == 3:
            if os.fork() == 0:
                os.kill(os.getpid(), signal.SIGUSR1)  # a data loader's process lives on
                os._exit(5)
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 5
            os.kill(os.getpid(), signal.SIGUSR1)
            if sys.argv[1] == "slow":
                time.sleep(20)
            if sys.argv[1] == "twice":
                os.kill(os.getpid(), signal.SIGUSR1)
            if sys.argv[1] == "late":
                break
        if stop.is_due():
            print("saved after", step + 1)
            stop.leave()
print("not told")
"""


def alone(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "train.py"
    script.write_text(f"import sys; sys.path.insert(0, '{ROOT}/build/python')\n" + ALONE)
    command = [sys.executable, str(script), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("how", "grace_s", "code", "out"),
    [
        ("once", 25, 128 + signal.SIGUSR1, "saved after 4\n"),
        ("slow", 0.2, 128 + signal.SIGUSR1, ""),
        ("twice", 25, -signal.SIGUSR1, ""),
        ("late", 25, -signal.SIGUSR1, ""),
    ],
)
def test_a_worker_alone(tmp_path: Path, how: str, grace_s: float, code: int, out: str) -> None:
    done = alone(tmp_path, how, str(grace_s))
    assert (done.returncode, done.stdout) == (code, out), done.stderr
    if how == "slow":
        assert "leaves 0.2 s after SIGUSR1" in done.stderr


@pytest.mark.parametrize(
    ("how", "code", "out"),
    [
        ("twice", 128 + signal.SIGUSR1, "heard\nsaved after 4\n"),
        ("late", 0, "heard\nnot told\n"),
    ],
)
def test_an_own_handler_hears_what_stop_on_signal_does_not_serve(
    tmp_path: Path, how: str, code: int, out: str
) -> None:
    done = alone(tmp_path, how, "25", "heard")
    assert (done.returncode, done.stdout) == (code, out), done.stderr


LOADING = """
import os, subprocess, sys
import torch, gossamer
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
gossip = gossamer.Gossip(model, optimizer)
with gossamer.StopOnSignal(gossip) as stop:
    for step, (x,) in enumerate(DataLoader(TensorDataset(torch.ones(500, 2)), num_workers=2)):
        model(x).sum().backward()
        optimizer.step()
        if step == 3:
            subprocess.run(["kill", "-TERM", "--", f"-{os.getpgrp()}"])  # as torchrun and Slurm do
        if step == 300:  # no batch of these had been loaded then
            gossip.save(sys.argv[1])
            stop.is_due()
            stop.leave()
"""


def test_data_loaders_outlive_a_signal_to_all(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import sys; sys.path.insert(0, '{ROOT}/build/python')\n" + LOADING)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "saved")],
        capture_output=True,
        text=True,
        timeout=60,
        start_new_session=True,
    )
    assert done.returncode == STOPPED, done.stderr
    assert (tmp_path / "saved" / "latest").exists()
