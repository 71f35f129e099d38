"""Does a run in which workers die and come back learn as much as an undisturbed one?

    python bench/churn/losses.py --workers 8 --steps 3000 --every 15 --seeds 3

Trains the example's model of bytes twice per seed over the ring: undisturbed for so many steps, and
with a worker killed every so many seconds until as many worker-steps are done. Compares the loss of
the average on text that nobody trained with. Prints a line per seed, and writes all to
build/bench/churn_losses.json.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import contenders
import goodput
import notes
import run

AHEAD = 30  # steps between the decision to end and the end
LOOK_S = 2.0  # each look reads all that was noted
MOST_S = 1800.0


def done(job: contenders.Job) -> tuple[int, int]:
    """Steps that all workers have done together, and those of the furthest."""
    by_rank = [goodput.processes_of(notes.read(job.folder, r)) for r in range(job.workers)]
    steps = [{n for process in each for _, n in process.steps} for each in by_rank]
    return sum(map(len, steps)), max((max(each, default=0) for each in steps), default=0)


def train(given: argparse.Namespace, seed: int, every_s: float | None) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="gossamer-churn-"))
    contender = contenders.CONTENDERS[0]
    job = contenders.Job(contender, given.workers, folder, options=[f"--text={seed}"])
    faults = run.Run(job, "kill" if every_s else "none", every_s or MOST_S, seed)
    try:
        faults.wait_for_start()
        begin = time.monotonic()
        next_s = begin + faults.every_s
        enough = given.workers * (given.steps - AHEAD)
        while (found := done(job))[0] < enough or (every_s and not faults.faults):
            faults.nap(LOOK_S)
            if every_s and time.monotonic() > next_s:
                faults.strike()
                next_s += every_s
            if time.monotonic() > begin + MOST_S:
                raise SystemExit(f"it takes too long, see {folder / 'said'}")
        notes.end_all(folder, found[1] + AHEAD)
    finally:
        job.end(faults.pids(faults.notes()))
    losses = {note["loss"] for each in faults.notes() for note in each if "loss" in note}
    if len(losses) != 1:
        raise SystemExit(f"the workers have {len(losses)} averages, see {folder / 'said'}")
    worker_steps, last_step = done(job)
    return {
        "loss": losses.pop(),
        "worker_steps": worker_steps,
        "last_step": last_step,
        "kills": len(faults.faults),
        "seconds": time.monotonic() - begin,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3000, help="of the undisturbed run")
    parser.add_argument("--every", type=float, default=15.0, help="seconds between two kills")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--out", type=Path, default=contenders.ROOT / "build/bench/churn_losses.json"
    )
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the workers are ended, too
    results = []
    for seed in range(1, given.seeds + 1):
        quiet, killed = train(given, seed, None), train(given, seed, given.every)
        ratio = killed["loss"] / quiet["loss"]
        results.append({"seed": seed, "quiet": quiet, "killed": killed, "ratio": ratio})
        print(
            f"seed {seed}: {quiet['loss']:.4f} undisturbed after {quiet['worker_steps']} "
            f"worker-steps, {killed['loss']:.4f} with {killed['kills']} kills after "
            f"{killed['worker_steps']}, ratio {ratio:.4f}",
            flush=True,
        )
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
