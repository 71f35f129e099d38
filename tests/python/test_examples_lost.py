"""examples/text_lost.py: workers are killed while it trains, the first one among them."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import example_runs
import pytest
import torch

STEPS, EPOCHS, WORKERS = 60, 6, 3
EPOCH = re.compile(r"epoch (\d+): loss ([\d.]+), test ([\d.]+), (\d+) workers")


def worker_of(launcher: int, rank: int) -> int:
    """The process of a rank among the launcher's children."""
    for child in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        words = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        if f"RANK={rank}".encode() in words:
            return int(child)
    raise AssertionError(f"no child of {launcher} has rank {rank}")


@pytest.mark.parametrize("pattern", ["cwa", "allreduce"])
def test_it_ends_with_all_workers_after_two_deaths(tmp_path: Path, pattern: str) -> None:
    script = str(example_runs.EXAMPLES / "text_lost.py")
    words = f"--epochs {EPOCHS} --steps {STEPS} --batch 4 --length 32 --pattern {pattern}".split()
    launch = f"-m gossamer launch -n{WORKERS} --".split()
    command = [sys.executable, *launch, sys.executable, script, *words, "--save", "model.pt"]
    with (tmp_path / "stderr").open("w") as said:
        launcher = subprocess.Popen(
            command,
            cwd=tmp_path,
            env=example_runs.environment(),
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
    late = threading.Timer(example_runs.SECONDS, launcher.terminate)  # and with it its workers
    late.start()
    assert launcher.stdout is not None
    lines = []
    for line in launcher.stdout:
        lines.append(line)
        if "epoch 0" in line or "epoch 1" in line:  # rank 0 prints until it is lost
            os.kill(worker_of(launcher.pid, 2 if "epoch 0" in line else 0), signal.SIGKILL)
    assert launcher.wait() == 0, (tmp_path / "stderr").read_text()
    late.cancel()
    epochs = [match.groups() for match in EPOCH.finditer("".join(lines))]
    assert [int(epoch) for epoch, *_ in epochs] == list(range(EPOCHS))
    assert float(epochs[-1][2]) < float(epochs[0][2]), "the test loss falls"
    errors = (tmp_path / "stderr").read_text()
    for rank in (0, 2):
        assert f"rank {rank} ended by SIGKILL" in errors
    state = torch.load(tmp_path / "model.pt", weights_only=True)
    del state["mask"]  # of infinities above the diagonal
    assert all(bool(value.isfinite().all()) for value in state.values())
