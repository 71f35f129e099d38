"""Workers that are killed again and again: how much of the work of all is still done?

    python bench/churn/run.py --every 60,15,5 --seconds 300
    python bench/churn/run.py --every 15 --contenders "gossamer ring,torchrun" --seeds 1
    python bench/churn/run.py --fault freeze --every 30
    python bench/churn/run.py --fault coordinator --seconds 90
    python bench/churn/run.py --torchft-python VENV/bin/python    # an environment with torchft
    python bench/churn/run.py --contenders "gossamer ring" --seeds 1 --metrics churn
    gossamer report churn    # a picture of who was there

Each run trains a small network with a pause of 50 ms per step on this machine. After some steps a
worker drawn by the seed is killed every so many seconds, and started again at once by whatever the
contender has for that. A fault may be: kill; freeze (SIGSTOP, and SIGKILL 10 s later); coordinator
(once: Gossamer's launcher and rank 0, torchft's lighthouse, torchrun's agent). Prints a line per
run, and writes all to build/bench/churn.json. METRICS.md says what the numbers mean.
"""

import argparse
import json
import os
import platform
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import contenders
import goodput
import notes

STEPS_BEFORE = 20
TO_START_S = 120.0
FROZEN_S = 10.0
NAP_S = 0.01


class Run:
    def __init__(self, job: contenders.Job, fault: str, every_s: float, seed: int) -> None:
        self.job, self.fault, self.every_s = job, fault, every_s
        self.dice = random.Random(seed)
        self.faults: list[goodput.Fault] = []
        self.frozen: list[tuple[float, int]] = []
        self.struck: set[int] = set()

    def notes(self) -> list[list[dict[str, Any]]]:
        return [notes.read(self.job.folder, rank) for rank in range(self.job.workers)]

    def pids(self, said: Sequence[Sequence[dict[str, Any]]]) -> list[int]:
        """Of each rank's last process."""
        return [[n["pid"] for n in each if "pid" in n][-1] for each in said]

    def wait_for_start(self) -> None:
        limit = time.monotonic() + TO_START_S
        while not all(any(n.get("step", 0) >= STEPS_BEFORE for n in each) for each in self.notes()):
            if time.monotonic() > limit:
                raise SystemExit(f"the workers do not start, see {self.job.folder / 'said'}")
            self.nap(0.2)

    def nap(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.job.look()
            while self.frozen and self.frozen[0][0] < time.monotonic():
                self.signal(self.frozen.pop(0)[1], signal.SIGKILL)
            time.sleep(NAP_S)

    def signal(self, pid: int, number: signal.Signals) -> None:
        if contenders.is_there(pid, str(self.job.folder)):
            os.kill(pid, number)

    def strike(self) -> None:
        if self.fault == "coordinator":
            self.faults.append(goodput.Fault(time.monotonic(), 0))
            self.job.kill_coordinator()
            if self.job.contender.topology:
                self.signal(self.pids(self.notes())[0], signal.SIGKILL)
            return
        there = {
            rank: pid
            for rank, pid in enumerate(self.pids(self.notes()))
            if pid not in self.struck and contenders.is_there(pid, str(self.job.folder))
        }
        if not there:
            return
        rank = self.dice.choice(sorted(there))
        self.struck.add(there[rank])
        self.faults.append(goodput.Fault(time.monotonic(), rank))
        if self.fault == "freeze":
            self.frozen.append((time.monotonic() + FROZEN_S, there[rank]))
        self.signal(there[rank], signal.SIGSTOP if self.fault == "freeze" else signal.SIGKILL)

    def play(self, seconds: float) -> dict[str, Any]:
        try:
            self.wait_for_start()
            begin = time.monotonic()
            next_s = min(self.every_s, seconds) / 2
            while self.fault != "none" and next_s < seconds:
                self.nap(begin + next_s - time.monotonic())
                self.strike()
                if self.fault == "coordinator":
                    break
                next_s += self.every_s
            self.nap(begin + seconds - time.monotonic())
            end = time.monotonic()
        finally:
            self.job.end(self.pids(self.notes()))
        found = goodput.summary(self.notes(), self.faults, begin, end)
        return {**found, "when": [[fault.at - begin, fault.rank] for fault in self.faults]}


def play(
    contender: contenders.Contender, given: argparse.Namespace, every_s: float, seed: int
) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="gossamer-churn-"))
    metrics = [f"--metrics={given.metrics.absolute()}"] if given.metrics else []
    job = contenders.Job(contender, given.workers, folder, given.torchft_python, metrics)
    found = Run(job, given.fault, every_s, seed).play(given.seconds)
    return {
        "contender": contender.name,
        "fault": given.fault,
        "every_s": every_s,
        "seed": seed,
        **found,
        "notes": str(folder),
    }


def line_of(result: dict[str, Any]) -> str:
    def seconds(name: str) -> str:
        value = result[name]
        return "     -" if value is None else f"{value:6.2f}"

    return (
        f"{result['contender']:20} every {result['every_s']:3.0f} s, seed {result['seed']}: "
        f"step {1e3 * result['step_s']:5.1f} ms, goodput {100 * result['goodput']:5.1f} %, gap "
        f"{seconds('median_gap_s')} ({seconds('longest_gap_s')}) s, recovery "
        f"{seconds('median_recovery_s')} s, after imports "
        f"{seconds('median_recovery_after_import_s')} s, back {result['came_back']} of "
        f"{result['faults']}, steps lost {result['steps_lost']:.2f}, others started again "
        f"{result['others_started_again']}, at the end "
        f"{result['step_at_the_end']} step"
    )


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ",".join(contender.name for contender in contenders.CONTENDERS)
    parser.add_argument("--contenders", default=names, help="by name, with commas")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--every", default="15", help="seconds between two faults, with commas")
    parser.add_argument("--seconds", type=float, default=120.0, help="of each run")
    parser.add_argument(
        "--fault", default="kill", choices=("none", "kill", "freeze", "coordinator")
    )
    parser.add_argument("--seeds", type=int, default=3, help="of Gossamer; the others have one")
    parser.add_argument("--torchft-python", default="", help="an interpreter that has torchft")
    parser.add_argument("--metrics", type=Path, help="a folder for Gossamer's own, of its last run")
    parser.add_argument("--out", type=Path, default=contenders.ROOT / "build/bench/churn.json")
    return parser.parse_args()


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the workers are ended, too
    given = parsed()
    by_name = {contender.name: contender for contender in contenders.CONTENDERS}
    chosen = [by_name[name] for name in given.contenders.split(",")]
    results = []
    for every in given.every.split(","):
        for seed in range(1, given.seeds + 1):
            for contender in chosen:
                if seed > 1 and not contender.topology:
                    continue
                if contender.lighthouse_ms and not given.torchft_python:
                    print(f"{contender.name}: left out, --torchft-python names no interpreter")
                    continue
                results.append(play(contender, given, float(every), seed))
                print(line_of(results[-1]), flush=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    whole = {"host": platform.node(), "workers": given.workers, "seconds": given.seconds}
    given.out.write_text(json.dumps({**whole, "runs": results}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
