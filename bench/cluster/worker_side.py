"""What the workers of every comparison do alike: counters, and what they leave for its run.py."""

import argparse
import faulthandler
import json
import os
import resource
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

LINK = Path("/sys/class/net/eth0/statistics")


def cpu_s() -> float:
    """User and system time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def link_bytes() -> tuple[int, int]:
    """Sent and received by this host over its link so far, headers included."""
    sent, received = ((LINK / f"{way}_bytes").read_text() for way in ("tx", "rx"))
    return int(sent), int(received)


def retransmissions() -> int:
    """Segments that this host has sent again so far."""
    names, values = (
        each.split()
        for each in Path("/proc/net/snmp").read_text().splitlines()
        if each.startswith("Tcp:")
    )
    return int(values[names.index("RetransSegs")])


def host_number() -> int:
    """As the launcher counts."""
    return int(os.environ["GROUP_RANK"])


def leave(folder: Path, rank: int, status: str, words: str) -> None:
    """Tells run.py why there is no result; what was said first stays."""
    path = folder / f"rank{rank}.json"
    if not path.exists():
        path.write_text(json.dumps({"at": time.time(), "status": status, "words": words}))


def guarded(work: Callable[[argparse.Namespace], None], arguments: argparse.Namespace) -> int:
    """The status of a worker: 0, or 1 after an error that was left for run.py. Stacks are printed
    when `arguments.patience` seconds are over."""
    torch.set_num_threads(1)
    faulthandler.dump_traceback_later(arguments.patience)
    try:
        work(arguments)
    except Exception as error:
        traceback.print_exc()
        words = f"{type(error).__name__}: {error}"
        leave(arguments.out, int(os.environ["RANK"]), "failed", words)
        return 1
    return 0
