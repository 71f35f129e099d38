"""What the workers of two jobs do that save into one folder at once."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gossip_scenarios_basic import gossiping
from gossip_support import mlp
from torch.optim import SGD

from gossamer import IoError

SAVES = 40
PATIENCE_S = 200.0  # others may use the disk, too
BETWEEN_S = 0.005


def wait_until(condition: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < limit, what
        time.sleep(BETWEEN_S)


def contested(rank: int, size: int) -> Any:
    """40 saves, each loaded again after a moment; one that is refused is tried again. Who has the
    folder first keeps it until the other job has been told."""
    place = Path(os.environ["GOSSAMER_TEST_FOLDER"])
    job = os.getppid()
    model = mlp()
    refused: list[str] = []
    lost = []

    def others(word: str) -> list[Path]:
        return [path for path in place.glob(f"{word}-*") if path.name != f"{word}-{job}"]

    with gossiping(model, SGD(model.parameters(), lr=0.1)) as gossip, torch.no_grad():
        (place / f"here-{job}").touch()
        wait_until(lambda: bool(others("here")), "the other job does not come")
        limit = time.monotonic() + PATIENCE_S
        saved = 0
        while saved < SAVES and time.monotonic() < limit:
            value = job % 1000 * 100 + saved + rank / 2
            for parameter in model.parameters():
                parameter.fill_(value)
            try:
                gossip.save(place / "saved")
            except IoError as error:
                refused.append(str(error))
                (place / f"told-{job}").touch()
                time.sleep(BETWEEN_S)
                continue
            time.sleep(BETWEEN_S)
            for parameter in model.parameters():
                parameter.zero_()
            gossip.load(place / "saved")
            if not all(bool((parameter == value).all()) for parameter in model.parameters()):
                lost.append(saved)
            saved += 1
        if not refused:
            wait_until(lambda: bool(others("told")), "the other job is not told")
    return {"saved": saved, "refused": refused, "lost": lost}


SCENARIOS = {"contested": contested}
