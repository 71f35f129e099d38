"""A job that is stopped as a whole for longer than its time-outs goes on when it is continued."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from gossip_support import ROOT

TIMEOUT_S = 15  # in which a Gossip is made on a slow machine as well
STOPPED_S = 20.0

PROGRAM = f"""
import sys, time
sys.path.insert(0, "{ROOT}/build/python")
import torch, torch.distributed as dist
import gossamer
_, rank, store, where, transport = sys.argv
rank = int(rank)
dist.init_process_group("gloo", store=dist.FileStore(store, 2), rank=rank, world_size=2)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def meet():
    print("there", flush=True)
    if rank == 1:
        time.sleep(2)
if where == "meet":
    meet()
gossip = gossamer.Gossip(
    model, optimizer, topology="ring", timeout_s={TIMEOUT_S}, transport=transport
)
for step in range(5):
    model(torch.ones(3)).sum().backward()
    if where == "step" and step == 2:
        meet()
    optimizer.step()
if where == "call":
    meet()
gossip.disagreement()
print("done", flush=True)
"""


@pytest.mark.parametrize(
    ("where", "transport"),
    [("meet", "net"), ("step", "net"), ("step", "c10d"), ("call", "net")],
)
def test_a_stopped_job_goes_on(tmp_path: Path, where: str, transport: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    ranks = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(tmp_path / "store"), where, transport],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
        )
        for rank in range(2)
    ]
    try:
        for rank in ranks:
            assert rank.stdout is not None
            assert rank.stdout.readline() == "there\n"
        time.sleep(0.7)  # until rank 0 waits for rank 1
        for rank in ranks:
            rank.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        for rank in ranks:
            rank.send_signal(signal.SIGCONT)
        for rank in ranks:
            out, err = rank.communicate(timeout=60)
            assert (rank.returncode, out) == (0, "done\n"), err
    finally:
        for rank in ranks:
            rank.kill()
