"""Four workers exchange payloads while they are killed, frozen and unplugged.

    sudo python bench/faults/soak.py --seconds 120 --seed 1
    sudo python bench/faults/soak.py --children 2 --secret    # as with data loaders and a secret

On two emulated hosts of two workers each: shared memory and TCP. Rounds of payloads of 1 B to 4 MB
between all pairs; every byte is looked at, landings have margins and are watched for many rounds
after their request has ended. Workers but the first are killed and come back as the next
generation, all are frozen, hosts are unplugged. Requests may fail only where a fault has been; at
the end all edges must work again, and the first worker must hold no more memory, descriptors and
threads than early on. Two pairs of bystanders on one of the hosts must notice nothing. Prints a
line per fault and a summary in JSON; the exit status is 1 where something was wrong. Needs root.
"""

import argparse
import gc
import json
import os
import random
import secrets
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"  # so that there is one thread to fork

import hosts  # noqa: E402

PACKAGE = os.environ.get("GOSSAMER_PYTHON_PATH", str(hosts.ROOT / "build" / "python"))
sys.path.insert(0, PACKAGE)

import exchanger  # noqa: E402

RANKS = range(exchanger.WORKERS)
NAMES = [str(rank) for rank in RANKS]
BYSTANDERS = {"memory": True, "streams": False}
BYSTANDERS_HOST = 1
BETWEEN_S = (0.3, 2.2)
LASTS_S = {"freeze": (0.1, 3.0), "unplug": (0.2, 3.0), "kill": (0.0, 0.5)}
# How long after a fault requests may still fail because of it.
SETTLES_S = 6.0
LAST_ROUNDS = 20
NOT_READY = -1
READY_WITHIN_S = 60.0
# Rounds that end in the middle: which part of all, and after how long.
CUT_SHORT, CUT_SHORT_S = 0.1, 0.02
# Of the memory that belongs to this process, and of what it shares.
MAY_GROW_KIB = {"anonymous_kib": 16 << 10, "shared_kib": 64 << 10}


@dataclass
class Fault:
    kind: str
    rank: int
    begin: float
    end: float = float("inf")

    def concerns(self, rank: int, peer: int, host_of: list[int]) -> bool:
        if self.kind == "unplug":
            return host_of[rank] != host_of[peer]
        return self.rank in (rank, peer)


class Soak:
    def __init__(
        self, cluster: hosts.clusters.Cluster, folder: Path, seed: int, children: int
    ) -> None:
        self.cluster, self.folder, self.forks = cluster, folder, children
        self.dice = random.Random(seed)
        self.board = exchanger.Board()
        self.children = hosts.Children()
        self.faults: list[Fault] = []
        self.host_of = [hosts.host_of(cluster, rank) for rank in RANKS]
        self.round_began = time.monotonic()
        self.round_may_last_s = exchanger.DEADLINE_S

    def start_worker(self, rank: int) -> None:
        host = self.host_of[rank]

        def run() -> int:
            address = self.cluster.address(host)
            return exchanger.Exchanger(
                rank, self.board, self.folder, address=address, children=self.forks
            ).run()

        out = self.folder / f"{rank}.err"
        self.children.add(str(rank), hosts.fork(self.cluster.host(host), {}, out, run))

    def start_workers(self) -> None:
        """Returns when all are ready: who comes later takes no part in the round that is on, and
        others would wait for it."""
        for rank in RANKS:
            self.board["done", rank] = NOT_READY
            self.start_worker(rank)
        limit = time.monotonic() + READY_WITHIN_S
        while any(self.board["done", rank] == NOT_READY for rank in RANKS):
            if time.monotonic() > limit:
                raise TimeoutError(f"workers are not ready after {READY_WITHIN_S:.0f} s")
            time.sleep(0.001)

    def start_bystanders(self) -> None:
        for kind, share_memory in BYSTANDERS.items():
            folder = self.folder / kind
            folder.mkdir()
            for rank in range(2):

                def run(
                    rank: int = rank, folder: Path = folder, shares: bool = share_memory
                ) -> int:
                    address = self.cluster.address(BYSTANDERS_HOST)
                    return exchanger.stand_by(
                        rank, self.board, folder, address=address, share_memory=shares
                    )

                place = self.cluster.host(BYSTANDERS_HOST)
                out = folder / f"{rank}.err"
                self.children.add(f"{kind} {rank}", hosts.fork(place, {}, out, run))

    def go_on(self, seconds: float) -> None:
        """Rounds, one after the other, for so long."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            self.begin_round_if_done()
            time.sleep(0.001)

    def begin_round_if_done(self) -> None:
        """A round ends when all that can have done it, when it has taken too long, and now and then
        in the middle: requests that are pending then are abandoned."""
        if self.is_round_over():
            self.round_began = time.monotonic()
            self.round_may_last_s = exchanger.DEADLINE_S + 1
            if self.dice.random() < CUT_SHORT:
                self.round_may_last_s = self.dice.uniform(0, CUT_SHORT_S)
            self.board["round", 0] += 1

    def is_round_over(self, *, may_be_cut: bool = True) -> bool:
        number = self.board["round", 0]
        away = {f.rank for f in self.faults if f.end == float("inf") and f.kind != "unplug"}
        here = [rank for rank in RANKS if rank not in away]
        late = time.monotonic() - self.round_began > self.round_may_last_s
        return (late and may_be_cut) or all(self.board["done", rank] == number for rank in here)

    def play_fault(self) -> None:
        kind = self.dice.choice(list(LASTS_S))
        rank = self.dice.choice(list(RANKS)[1:] if kind == "kill" else list(RANKS))
        fault = Fault(kind, rank, time.monotonic())
        self.faults.append(fault)
        lasts_s = self.dice.uniform(*LASTS_S[kind])
        self.strike(fault, ends=False)
        self.go_on(lasts_s)
        self.strike(fault, ends=True)
        fault.end = time.monotonic()
        print(
            f"{len(self.faults):3} {kind:6} {rank} for {lasts_s:4.2f} s, "
            f"round {self.board['round', 0]}",
            flush=True,
        )

    def strike(self, fault: Fault, *, ends: bool) -> None:
        name = str(fault.rank)
        if fault.kind == "unplug":
            hosts.clusters.set_link(self.cluster, self.host_of[fault.rank], is_up=ends)
        elif fault.kind == "freeze":
            self.children.signal(name, signal.SIGCONT if ends else signal.SIGSTOP)
        elif ends:
            self.board["generation", fault.rank] += 1
            self.start_worker(fault.rank)
        else:
            self.children.signal(name, signal.SIGKILL)
            self.children.wait([name], time.monotonic() + 10)

    def play(self, seconds: float, first_s: float) -> dict[str, Any]:
        """Faults from `first_s` on, until `seconds` are over."""
        try:
            self.start_workers()
            self.start_bystanders()
            began = self.round_began = time.monotonic()
            self.go_on(first_s)
            while time.monotonic() - began < seconds:
                self.play_fault()
                self.go_on(self.dice.uniform(*BETWEEN_S))
            self.go_on(SETTLES_S)
            calm = self.board["round", 0] + 1
            limit = time.monotonic() + LAST_ROUNDS * exchanger.DEADLINE_S
            while self.board["round", 0] < calm + LAST_ROUNDS and time.monotonic() < limit:
                self.begin_round_if_done()
                time.sleep(0.001)
            limit = time.monotonic() + 2 * exchanger.DEADLINE_S
            while not self.is_round_over(may_be_cut=False) and time.monotonic() < limit:
                time.sleep(0.001)
            self.board["stop", 0] = self.board["stop", 1] = 1
            everybody = list(self.children.pids)
            stuck = self.children.wait(everybody, time.monotonic() + 30)
            return self.summary(calm, stuck)
        finally:
            self.children.end()

    def lines(self, path: Path) -> list[dict[str, Any]]:
        """What a process has noted; the last line of one that was killed may be half."""
        found = []
        for text in path.read_text().splitlines():
            try:
                found.append(json.loads(text))
            except ValueError:
                continue
        return found

    def excuse(self, rank: int, line: dict[str, Any]) -> bool:
        return any(
            fault.concerns(rank, line["peer"], self.host_of)
            and fault.begin <= line["at"]
            and line["began"] <= fault.end + SETTLES_S
            for fault in self.faults
        )

    def heard_s(self, failed: list[tuple[int, dict[str, Any]]]) -> list[float]:
        """From each kill until each peer over TCP that waited for the killed one heard of it."""
        found: list[float] = []
        for fault in self.faults:
            first: dict[int, float] = {}
            for rank, line in failed:
                waited = line["peer"] == fault.rank and line["began"] <= fault.begin <= line["at"]
                if waited and self.host_of[rank] != self.host_of[fault.rank]:
                    first.setdefault(rank, line["at"] - fault.begin)
            found += first.values() if fault.kind == "kill" else []
        return found

    def summary(self, calm: int, stuck: list[str]) -> dict[str, Any]:
        problems = [f"{name} hangs at the end" for name in stuck]
        ends: dict[int, dict[str, Any]] = {}
        failed: list[tuple[int, dict[str, Any]]] = []
        for rank in RANKS:
            for line in self.lines(self.folder / f"{rank}.jsonl"):
                if "problem" in line:
                    problems.append(f"{rank}: {line['problem']}")
                if "end" in line:
                    ends[rank] = line
                if "failed" not in line:
                    continue
                failed.append((rank, line))
                named = line["named"] == line["peer"]
                if not named or line["round"] >= calm or not self.excuse(rank, line):
                    problems.append(f"{rank}: {line}")
        for kind in BYSTANDERS:
            for rank in range(2):
                said = self.lines(self.folder / kind / f"{rank}.jsonl")
                problems += [f"bystander: {line['problem']}" for line in said if "problem" in line]
                if not any(line.get("end", {}).get("steps", 0) > 100 for line in said):
                    problems.append(f"bystander {kind} {rank} has not gone on")
        problems += [
            f"{name} ended with status {code}"
            for name, code in self.children.codes.items()
            if code != 0
        ]
        problems += self.growth(ends)
        kinds = [fault.kind for fault in self.faults]
        heard_s = self.heard_s(failed)
        return {
            "faults": {kind: kinds.count(kind) for kind in LASTS_S},
            "rounds": self.board["round", 0],
            "failed_requests": len(failed),
            "kills_heard": len(heard_s),
            "slowest_heard_s": round(max(heard_s, default=0), 3),
            "last_generations": {rank: self.board["generation", rank] for rank in RANKS},
            "of_rank": ends,
            "problems": problems,
        }

    @staticmethod
    def growth(ends: dict[int, dict[str, Any]]) -> list[str]:
        found = [f"{rank} did not come to its end" for rank in RANKS if rank not in ends]
        for rank, line in ends.items():
            early, late = line["early"], line["late"]
            if early is None:
                continue  # it has come back too late
            for what, before in early.items():
                if late[what] > before + MAY_GROW_KIB.get(what, 0):
                    found.append(f"{rank} holds more: {what} {before} early, {late[what]} late")
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--first", type=float, default=22, help="seconds without a fault at first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--children", type=int, default=0, help="forked ones of each worker")
    parser.add_argument("--secret", action="store_true", help="of the job, in the environment")
    parser.add_argument("--out", type=Path, help="keep what workers wrote, and the result, here")
    arguments = parser.parse_args()
    if arguments.secret:
        os.environ["GOSSAMER_SECRET"] = secrets.token_hex(32)
    if reason := hosts.clusters.missing_rights():
        raise SystemExit(f"[faults] {reason}")
    out = arguments.out or Path(tempfile.mkdtemp(prefix="gossamer-soak-"))
    out.mkdir(parents=True, exist_ok=True)
    assert len(list(Path("/proc/self/task").iterdir())) == 1
    gc.freeze()
    cluster = hosts.clusters.Cluster(f"s{os.getpid()}", (2, 2), (0.0, 0.0))
    with hosts.running(cluster):
        soak = Soak(cluster, out, arguments.seed, arguments.children)
        result = soak.play(arguments.seconds, arguments.first)
    asked = {key: value for key, value in vars(arguments).items() if key != "out"}
    result = {**asked, **result}
    (out / "soak.json").write_text(json.dumps(result, indent=1))
    print(json.dumps({**result, "problems": result["problems"][:20]}, indent=1))
    return 1 if result["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
