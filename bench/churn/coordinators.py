"""Do the others go on, whoever is killed of those on which a job could hang?

    python bench/churn/coordinators.py --times 100
    python bench/churn/coordinators.py --kinds launcher --times 20

Four workers with a spare, each kind as often, at moments drawn by the seed:
  rank 0     which torch's store and the first addresses were with
  donor      a worker is killed, and while it comes back the one that gives it its state
  launcher   a new job each time; nobody is started again afterwards
After each fault all workers that were not killed must step on in the process that they have, and
those killed must come back. Prints a line per kind, and writes all to
build/bench/churn_coordinators.json.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import contenders
import flat
import notes
import run

WORKERS = 4
STEPS_ON = 20  # that each of the others has to do after a fault
MOST_S = 15.0  # for these
A_RETURN_S = 0.7  # about what a return takes; within it the donor is killed
LIVES_S = 10.5  # between two faults: who lives for less has to wait to be started again


class Job:
    """A job, and who is there."""

    def __init__(self, seed: int) -> None:
        contender = next(each for each in contenders.CONTENDERS if each.spares)
        folder = Path(tempfile.mkdtemp(prefix="gossamer-coordinators-"))
        self.job = contenders.Job(contender, WORKERS, folder)
        self.watched = run.Run(self.job, "kill", 1.0, seed)
        self.watched.wait_for_start()
        self.pids = self.watched.pids(self.watched.notes())

    def kill(self, rank: int) -> None:
        self.watched.signal(self.pids[rank], signal.SIGKILL)

    def steps(self, rank: int) -> tuple[int, int]:
        """The process that it is, and how many steps it has done."""
        said = notes.read(self.job.folder, rank)
        return self.watched.pids([said])[0], [n["step"] for n in said if "step" in n][-1]

    def go_on(self, ranks: list[int]) -> str:
        """What is wrong with these, which nobody has killed; empty: nothing."""
        before = {rank: self.steps(rank)[1] for rank in ranks}
        limit = time.monotonic() + MOST_S
        for rank in ranks:
            while True:
                pid, step = self.steps(rank)
                if pid != self.pids[rank]:
                    return f"rank {rank} has ended"
                if step >= before[rank] + STEPS_ON:
                    break
                if time.monotonic() > limit:
                    return f"rank {rank} has done {step - before[rank]} steps in {MOST_S:.0f} s"
                time.sleep(0.05)
        return ""

    def come_back(self, ranks: list[int]) -> None:
        for rank in ranks:
            self.pids[rank] = flat.wait_for_return(self.watched, rank, self.pids[rank])

    def end(self) -> None:
        self.job.end(self.watched.pids(self.watched.notes()))


def within_one_job(strike: Callable[[Job, random.Random], list[int]], times: int) -> list[str]:
    """What went wrong. `strike` kills, and says whom."""
    dice = random.Random(1)
    job = Job(1)
    found = []
    try:
        for number in range(times):
            until = time.monotonic() + LIVES_S + dice.random()
            struck = strike(job, dice)
            wrong = job.go_on([rank for rank in range(WORKERS) if rank not in struck])
            found.append(wrong)
            if wrong:
                break
            job.come_back(struck)
            if number + 1 < times:
                time.sleep(max(0.0, until - time.monotonic()))
    finally:
        job.end()
    return found


def kill_first(job: Job, dice: random.Random) -> list[int]:
    job.kill(0)
    return [0]


def kill_donor(job: Job, dice: random.Random) -> list[int]:
    """A worker takes the state of the first of the others."""
    lost = dice.randrange(WORKERS)
    donor = 1 if lost == 0 else 0
    job.kill(lost)
    time.sleep(A_RETURN_S * dice.random())
    job.kill(donor)
    return [lost, donor]


def kill_launchers(times: int) -> list[str]:
    dice = random.Random(1)
    found = []
    for seed in range(times):
        job = Job(seed)
        try:
            time.sleep(dice.random())
            job.job.kill_coordinator()
            found.append(job.go_on(list(range(WORKERS))))
        finally:
            job.end()
    return found


KINDS: dict[str, Callable[[int], list[str]]] = {
    "rank 0": lambda times: within_one_job(kill_first, times),
    "donor": lambda times: within_one_job(kill_donor, times),
    "launcher": kill_launchers,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--kinds", default=",".join(KINDS), help="with commas")
    parser.add_argument(
        "--out", type=Path, default=contenders.ROOT / "build/bench/churn_coordinators.json"
    )
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the workers are ended, too
    results = {}
    for kind in given.kinds.split(","):
        results[kind] = KINDS[kind](given.times)
        wrong = [text for text in results[kind] if text]
        print(
            f"{kind}: {len(results[kind]) - len(wrong)} of {given.times} go on", *wrong, flush=True
        )
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(results, indent=1))
    return 1 if any(any(each) for each in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
