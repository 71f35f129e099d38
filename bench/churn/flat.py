"""Does a worker that outlives many others grow?

    python bench/churn/flat.py --cycles 1000

Rank 0 trains on. One of the others at a time is killed, at most every `--every` seconds, comes back
from a spare and takes some steps.
After each return rank 0 is looked at: its resident memory, threads, open files and sockets, and
what /dev/shm holds. Prints a line now and then, and writes all to build/bench/churn_flat.json.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import contenders
import goodput
import notes
import run

STEPS_BACK = 5  # of who has come back, before it counts as there
MOST_S = 60.0  # for a return
LOOK_S = 0.2
SAY_EVERY = 25


def size_of(pid: int) -> dict[str, float]:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    files = [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]
    return {
        "rss_mib": int(status["VmRSS"].split()[0]) / 1024,
        "threads": int(status["Threads"]),
        "files": len(files),
        "sockets": sum(name.startswith("socket:") for name in files),
        "shm": sum(1 for _ in Path("/dev/shm").iterdir()),
    }


def wait_for_return(watched: run.Run, rank: int, pid: int) -> int:
    """The process that is this rank now, once it has stepped."""
    limit = time.monotonic() + MOST_S
    while time.monotonic() < limit:
        time.sleep(LOOK_S)
        said = notes.read(watched.job.folder, rank)
        (now,) = watched.pids([said])
        if now != pid and len(goodput.processes_of(said)[-1].steps) >= STEPS_BACK:
            return now
    raise SystemExit(f"rank {rank} did not come back, see {watched.job.folder / 'said'}")


def growth(sizes: list[dict[str, float]]) -> Mapping[str, tuple[float, float]]:
    """By number its median over the first and over the last tenth."""
    part = max(1, len(sizes) // 10)
    return {
        name: (
            median(size[name] for size in sizes[:part]),
            median(size[name] for size in sizes[-part:]),
        )
        for name in sizes[0]
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--every", type=float, default=3.5, help="seconds between kills, at least")
    parser.add_argument("--out", type=Path, default=contenders.ROOT / "build/bench/churn_flat.json")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the workers are ended, too
    contender = next(each for each in contenders.CONTENDERS if each.spares)
    job = contenders.Job(contender, given.workers, Path(tempfile.mkdtemp(prefix="gossamer-flat-")))
    watched = run.Run(job, "kill", 1.0, 1)
    sizes: list[dict[str, float]] = []
    try:
        watched.wait_for_start()
        pids = watched.pids(watched.notes())
        for cycle in range(given.cycles):
            rank = 1 + cycle % (given.workers - 1)
            until = time.monotonic() + given.every
            watched.signal(pids[rank], signal.SIGKILL)
            pids[rank] = wait_for_return(watched, rank, pids[rank])
            sizes.append(size_of(pids[0]))
            time.sleep(max(0.0, until - time.monotonic()))
            if cycle % SAY_EVERY == SAY_EVERY - 1:
                print(f"{cycle + 1} returns: {sizes[-1]}", flush=True)
    finally:
        job.end(watched.pids(watched.notes()))
    found = growth(sizes)
    print("first tenth and last tenth:", dict(found), flush=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"workers": given.workers, "sizes": sizes, "growth": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
