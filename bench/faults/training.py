"""What each worker of moments.py does: a little training run with everything that is collective."""

import faulthandler
import json
import os
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

import torch
import torch.distributed as dist
from torch import nn

import gossamer
from gossamer import Gossip

# In their order; a fault may be bound to the beginning of one.
PHASES = ("join", "make", "train", "average", "save", "close", "leave")
CYCLES = 4
STEPS = 12


class Diary:
    """A line of JSON for each thing that happens, with its time."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def note(self, **what: Any) -> None:
        self._out.write(json.dumps({"at": time.monotonic(), **what}) + "\n")
        self._out.flush()


def read_diary(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text().split("\n")[:-1] if path.exists() else []  # the last may be half
    return [json.loads(line) for line in lines]


def train(diary: Diary, gossip: Gossip, model: nn.Module, optimizer: Any, first: int) -> None:
    diary.note(phase="train")
    rank = dist.get_rank()
    for step in range(first, first + STEPS):
        generator = torch.Generator().manual_seed(1000 * rank + step)
        optimizer.zero_grad()
        model(torch.randn(4, 64, generator=generator)).square().mean().backward()
        time.sleep(0.01)
        optimizer.step()


def run(diary: Diary, folder: Path, how: dict[str, Any], timeout_s: float) -> None:
    diary.note(phase="join")
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout_s))
    torch.manual_seed(dist.get_rank())
    model = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    diary.note(phase="make")
    gossip = Gossip(
        model,
        optimizer,
        topology=how["topology"],
        pattern=how["pattern"],
        update=how["update"],
        timeout_s=timeout_s,
        bucket_bytes=64 << 10,
    )
    for cycle in range(CYCLES):
        train(diary, gossip, model, optimizer, cycle * STEPS)
        diary.note(phase="average")
        with gossip.averaged():
            assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())
        diary.note(phase="save")
        gossip.save(folder / "saved")
    diary.note(phase="close")
    if how["closes"]:
        gossip.close()


def work(out: Path, folder: Path, how: dict[str, Any], timeout_s: float) -> int:
    """Runs it; the diary says how it went. The exit status is 0 unless something else than an
    exception ends the process."""
    with out.open("a") as file, out.with_suffix(".stacks").open("w") as stacks:
        faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
        diary = Diary(file)
        torch.set_num_threads(1)
        try:
            run(diary, folder, how, timeout_s)
            diary.note(end="finished")
        except Exception as error:
            diary.note(
                end=type(error).__name__,
                message=str(error),
                peer=getattr(error, "peer", None)
                if isinstance(error, gossamer.TransportError)
                else None,
            )
        diary.note(phase="leave", pid=os.getpid())
        faulthandler.unregister(signal.SIGUSR1)
    return 0
