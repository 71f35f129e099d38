"""What workers say when one of them is killed or frozen, and nobody catches their errors."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from package_runs import LIMIT_S, with_package

from gossamer.workers.last_words import said

PROGRAM = """
import os, signal, sys
import torch, torch.distributed as dist
import gossamer

rank, size = int(sys.argv[1]), int(sys.argv[2])
if rank == 4:
    sys.excepthook = lambda kind, error, trace: print("mine:", error, file=sys.stderr)
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
gossip = gossamer.Gossip(model, optimizer, topology="ring", timeout_s=float(sys.argv[5]))
for step in range(1000):
    if rank == 2 and step == 5:
        os.kill(os.getpid(), int(sys.argv[4]))
    model(torch.randn(3, 4)).sum().backward()
    optimizer.step()
"""
SIZE, LOST = 5, 2
_LIMIT_S = 5 * LIMIT_S  # for five imports of torch on a busy machine
SHORT = (
    "[Gossip] rank 1: ended, because worker 2 does not answer any more; rank 0 says more, and "
    "GOSSAMER_TRACEBACK=1 shows where the script was"
)


def lines_of(text: str) -> list[str]:
    """Without the hints of the first steps."""
    return [line for line in text.splitlines() if "worker 2" in line or "Traceback" in line]


@pytest.mark.parametrize(
    ("fault", "timeout_s", "why"),
    [(signal.SIGKILL, 60, "the peer "), (signal.SIGSTOP, 8, "deadline passed; ")],
)
def test_one_says_the_cause_and_the_others_a_line(
    tmp_path: Path, fault: signal.Signals, timeout_s: float, why: str
) -> None:
    """On a ring, where ranks 0 and 4 hear of it by the end of others that have lost worker 2, or
    that wait for it."""
    started = []
    for rank in range(SIZE):
        own = {"OMP_NUM_THREADS": "1", "GOSSAMER_TRACEBACK": str(int(rank == 3))}
        words = [sys.executable, "-c", PROGRAM, str(rank), str(SIZE), str(tmp_path / "store")]
        words += [str(int(fault)), str(timeout_s)]
        started.append(
            subprocess.Popen(words, env=with_package(own), stderr=subprocess.PIPE, text=True)
        )
    try:
        errors = {
            rank: each.communicate(timeout=_LIMIT_S)[1]
            for rank, each in enumerate(started)
            if rank != LOST or fault == signal.SIGKILL
        }
    finally:
        for each in started:
            each.kill()
    expected = [1, 1, -9, 1, 1] if fault == signal.SIGKILL else [1, 1, None, 1, 1]
    assert [each.returncode for each in started] == expected, errors
    (cause,) = lines_of(errors[0])
    assert cause.startswith("[Gossip] worker 2 does not answer any more, so that all others end: [")
    for text in (why, "of the optimizer on rank 0", "or use lost='go_on'"):
        assert text in cause
    assert lines_of(errors[1]) == [SHORT]
    assert "Traceback" in errors[3] and "optimizer.step()" in errors[3]
    assert "[Gossip] rank 3: ended" not in errors[3]
    assert "mine: [" in errors[4] and "[Gossip] rank 4: ended" not in errors[4]


def test_the_lowest_rank_that_is_left_speaks() -> None:
    error = RuntimeError("[transport] the peer has ended")
    assert said(error, 1, 0).startswith("[Gossip] worker 0 does not answer any more, so that all")
    assert "because worker 0 does not answer any more; rank 1 says more" in said(error, 2, 0)
    assert str(error) in said(error, 0, 3)
    assert str(error) not in said(error, 1, 3)
    assert os.linesep not in said(error, 0, 3)
