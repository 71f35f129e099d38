"""What each worker of moments.py does: a little training run with everything that is collective."""

import faulthandler
import hashlib
import json
import os
import signal
import time
import traceback
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset

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


class Batches(Dataset[torch.Tensor]):
    def __init__(self, first: int) -> None:
        self.first = 1000 * dist.get_rank() + first

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, step: int) -> torch.Tensor:
        return torch.randn(4, 64, generator=torch.Generator().manual_seed(self.first + step))


def train(
    diary: Diary, gossip: Gossip, model: nn.Module, optimizer: Any, batches: DataLoader[Any]
) -> None:
    diary.note(phase="train")
    for batch in batches:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        time.sleep(0.01)
        optimizer.step()
        diary.note(step=gossip.steps_done)


def digest(parameters: list[nn.Parameter]) -> str:
    whole = torch.cat([parameter.detach().flatten() for parameter in parameters])
    return hashlib.sha256(whole.numpy().tobytes()).hexdigest()


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
        lost=how.get("lost", "error"),
        late=how.get("late", "wait"),
        timeout_s=timeout_s,
        bucket_bytes=64 << 10,
    )
    for cycle in range(CYCLES):
        batches = Batches(cycle * STEPS)
        train(
            diary,
            gossip,
            model,
            optimizer,
            DataLoader(batches, batch_size=None, num_workers=how["loaders"]),
        )
        diary.note(phase="average")
        with gossip.averaged():
            parameters = list(model.parameters())
            assert all(bool(parameter.isfinite().all()) for parameter in parameters)
            diary.note(cycle=cycle, average=digest(parameters))
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
            traceback.print_exc()
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
