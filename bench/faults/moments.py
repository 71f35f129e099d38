"""Workers that are killed, frozen or unplugged at random moments: do the others say so in time?

    sudo python bench/faults/moments.py --moments 60 --seed 1
    sudo python bench/faults/moments.py --seed 1 --only 17     # that one again
    sudo python bench/faults/moments.py --loaders 2 --secret   # with data loaders and a secret
    sudo python bench/faults/moments.py --lost go_on           # the others must finish

Each moment is a training run of its own (training.py) on an emulated cluster, with one fault, which
comes at a random time of the run or soon after a phase of it has begun. Every worker that is left
must finish, or end with an error that names a rank, within timeout_s of the fault and a margin;
after a short freeze or unplugging all must finish. With `--lost go_on` all must finish that the
lost ones do not take with them, see going_on.py, and say of nobody else that it is lost. Whatever
the fault, averages must be equal in all that have them. Prints a line per moment and a summary in
JSON, which counts whose loss was told with the right worker, step and cause, see explained.py; the
exit status is 1 where something was wrong. Needs root.
"""

import argparse
import gc
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"  # so that there is one thread to fork

import hosts  # noqa: E402

PACKAGE = os.environ.get("GOSSAMER_PYTHON_PATH", str(hosts.ROOT / "build" / "python"))
sys.path.insert(0, PACKAGE)

import explained  # noqa: E402
import going_on  # noqa: E402
import torch._dynamo  # noqa: E402, F401  seconds that each worker would take
import torch.distributed as dist  # noqa: E402
import training  # noqa: E402
from drawn import HOWS, Moment, draw  # noqa: E402

TIMEOUT_S = 6.0
MARGIN_S = 9.0
WHOLE_RUN_S = 60.0  # without any fault
PORT = 29400
CLUSTER = f"m{os.getpid()}"  # several may run at once


def serve_store(size: int) -> int:
    """The launcher's store, until it is killed."""
    store = dist.TCPStore(
        hosts.clusters.Cluster(CLUSTER, (1,), (0.0,)).address(0),
        PORT,
        is_master=True,
        wait_for_workers=False,
    )
    while store is not None:
        time.sleep(1)
    return 0


def listens(namespace: str) -> bool:
    words = ["ip", "netns", "exec", namespace, "ss", "-ltnH", f"sport = :{PORT}"]
    return bool(subprocess.run(words, capture_output=True, check=True).stdout)


class Run:
    """One training run and what befalls it."""

    def __init__(self, cluster: hosts.clusters.Cluster, moment: Moment, folder: Path) -> None:
        self.cluster, self.moment, self.folder = cluster, moment, folder
        self.children = hosts.Children()
        self.names = [str(rank) for rank in range(cluster.size)]
        self.goes_on = moment.how.get("lost") == "go_on"
        self.timeout_s = going_on.TIMEOUT_S if self.goes_on else TIMEOUT_S
        self.problems: list[str] = []
        self.torch_hangs: list[str] = []
        self.explained = explained.Explained()

    def start(self) -> None:
        extra = {}
        if self.moment.agent:
            home = self.cluster.host(0)
            out = self.folder / "store.err"
            self.children.add(
                "store", hosts.fork(home, {}, out, lambda: serve_store(self.cluster.size))
            )
            while not listens(home):
                time.sleep(0.01)
            extra = {"TORCHELASTIC_USE_AGENT_STORE": "True"}
        self.began = time.monotonic()
        for rank, name in enumerate(self.names):
            variables = hosts.clusters.environment(self.cluster, rank, PORT) | extra
            place = self.cluster.host(hosts.host_of(self.cluster, rank))
            diary = self.folder / f"{name}.jsonl"

            def run(diary: Path = diary) -> int:
                return training.work(diary, self.folder, self.moment.how, self.timeout_s)

            self.children.add(name, hosts.fork(place, variables, self.folder / f"{name}.err", run))

    def diary(self, name: str) -> list[dict[str, Any]]:
        return training.read_diary(self.folder / f"{name}.jsonl")

    def wait_for_moment(self) -> None:
        name, moment = str(self.moment.rank), self.moment
        if moment.phase:
            while self.children.wait([name], 0) and not any(
                line.get("phase") == moment.phase for line in self.diary(name)
            ):
                time.sleep(0.002)
            time.sleep(moment.after_s)
        else:
            time.sleep(max(self.began + moment.after_s - time.monotonic(), 0))

    def strike(self, *, ends: bool = False) -> None:
        """Does what the moment says; with `ends`, undoes it."""
        fault, name = self.moment.fault, str(self.moment.rank)
        if "kill" in fault and not ends:
            self.children.signal("store" if fault == "kill store" else name, signal.SIGKILL)
        elif "freeze" in fault:
            self.children.signal(name, signal.SIGCONT if ends else signal.SIGSTOP)
        elif "unplug" in fault:
            host = hosts.host_of(self.cluster, self.moment.rank)
            hosts.clusters.set_link(self.cluster, host, is_up=ends)

    def expect_end(self, names: Sequence[str], limit_s: float, when: str) -> None:
        """Whoever is there longer hangs; in init_process_group it is torch that does."""
        for name in self.children.wait(names, time.monotonic() + limit_s):
            phase = self.phase(name)
            hangs = self.torch_hangs if phase == "join" else self.problems
            hangs.append(f"HANG of {name} {when}, in {phase}")
            self.save_stacks(name)
            self.children.signal(name, signal.SIGKILL)
        self.children.wait(names, time.monotonic() + 10)

    def phase(self, name: str) -> str:
        """The one that it came to last."""
        phases = [line["phase"] for line in self.diary(name) if "phase" in line]
        return str(phases[-1]) if phases else ""

    def save_stacks(self, name: str) -> None:
        self.children.signal(name, signal.SIGUSR1)
        pid = self.children.pids.get(name, 0)
        time.sleep(0.5)
        words = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 14"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        (self.folder / f"{name}.gdb").write_text(done.stdout)

    def check_endings(self, names: Sequence[str], *, must_finish: bool) -> None:
        for name in names:
            code = self.children.codes.get(name)
            end = next((line for line in self.diary(name) if "end" in line), {"end": "nothing"})
            if code == -signal.SIGKILL:
                continue  # a hang, which was told
            if code != 0:
                self.problems.append(f"{name} ended with status {code}")
            if end["end"] == "finished":
                continue
            if must_finish:
                self.problems.append(f"{name} did not finish: {end}")
            in_ours = any(line.get("phase") == "make" for line in self.diary(name))
            if in_ours and not explained.names_a_rank(end):
                self.problems.append(f"{name} ended with {end}")

    def see_all_end(self) -> list[str]:
        """Those that were spared."""
        moment, whole = self.moment, self.timeout_s + MARGIN_S
        spared = [n for n in self.names if "unplug" in moment.fault or n != str(moment.rank)]
        waits = moment.fault in ("none", "short freeze", "short unplug")
        self.expect_end(
            self.names if waits else spared, WHOLE_RUN_S if waits else whole, "after the fault"
        )
        self.check_endings(self.names if waits else spared, must_finish=waits)
        if moment.fault == "freeze":
            self.strike(ends=True)
            self.expect_end([str(moment.rank)], whole, "after it went on")
            self.check_endings([str(moment.rank)], must_finish=False)
        if moment.fault in explained.CAUSES:
            whom = self.same_host() if moment.fault == "unplug" else [str(moment.rank)]
            diaries = {name: self.diary(name) for name in self.names}
            self.explained = explained.of_those_that_end(moment.fault, whom, diaries)
        return spared

    def same_host(self) -> list[str]:
        """Who is on the host of the worker whom the fault befalls."""
        places = [hosts.host_of(self.cluster, rank) for rank in range(self.cluster.size)]
        return [name for name in self.names if places[int(name)] == places[self.moment.rank]]

    def see_others_go_on(self, is_on: bool) -> list[str]:
        """`is_on`: all had begun to train, else the fault is one of the start."""
        moment = self.moment
        places = [hosts.host_of(self.cluster, rank) for rank in range(self.cluster.size)]
        away = [str(rank) for rank in going_on.away(moment.fault, moment.rank, places)]
        spared = [name for name in self.names if name not in away]
        self.expect_end(spared, WHOLE_RUN_S, "after the fault")
        self.check_endings(spared, must_finish=is_on)
        if is_on:
            self.check_what_is_said(spared, away)
        if moment.fault in ("freeze", "unplug"):
            self.strike(ends=True)
            self.expect_end(away, WHOLE_RUN_S, "after it was back")
            self.check_endings(away, must_finish=False)
        return spared

    def check_what_is_said(self, names: Sequence[str], away: Sequence[str]) -> None:
        """Whoever goes on says so of those that the fault takes away, and of nobody else."""
        texts = {name: (self.folder / f"{name}.err").read_text() for name in names}
        for name, text in texts.items():
            for rank, _, _ in explained.SAID.findall(text):
                if rank not in away:
                    self.problems.append(f"{name} says that it goes on without rank {rank}")
        self.explained = explained.of_those_that_go_on(
            self.moment.fault,
            away,
            texts,
            {name: self.diary(name) for name in self.names},
            self.struck,
            waits=self.moment.how["late"] == "wait",
        )

    def check_averages(self) -> None:
        """All that have the average of a cycle have the same."""
        for cycle in range(training.CYCLES):
            found = {
                line["average"]
                for name in self.names
                for line in self.diary(name)
                if line.get("cycle") == cycle
            }
            if len(found) > 1:
                self.problems.append(f"{len(found)} averages of cycle {cycle}")

    def play(self) -> None:
        moment = self.moment
        try:
            self.start()
            self.wait_for_moment()
            is_on = all(going_on.trains(self.phase(name)) for name in self.names)
            self.strike()
            self.struck = time.monotonic()
            is_short = moment.fault.startswith("short")
            if is_short:
                time.sleep(moment.short_s)
                self.strike(ends=True)
            if self.goes_on and moment.fault != "none":
                spared = self.see_others_go_on(is_on)
            else:
                spared = self.see_all_end()
            self.check_averages()
            self.last_s = max(
                (self.children.ended.get(n, 0) - self.struck for n in spared), default=0
            )
        finally:
            self.children.end()

    def summary(self) -> dict[str, Any]:
        ends = {}
        for name in self.names:
            said = self.diary(name)
            phase = [line["phase"] for line in said if "phase" in line and line["phase"] != "leave"]
            end = next((line for line in said if "end" in line), {"end": "-"})
            ends[name] = f"{phase[-1] if phase else '-'}: {end['end']} {end.get('message', '')}"
        return {
            **asdict(self.moment),
            "last_s": round(self.last_s, 2),
            "ends": ends,
            "problems": self.problems,
            "explained": asdict(self.explained),
            "torch_hangs": self.torch_hangs,
        }


def play(moment: Moment, folder: Path) -> dict[str, Any]:
    workers = hosts.clusters.parse_hosts(moment.layout)
    folder.mkdir(parents=True)
    cluster = hosts.clusters.Cluster(CLUSTER, workers, (0.0,) * len(workers))
    with hosts.running(cluster):
        run = Run(cluster, moment, folder)
        run.play()
        return run.summary()


def usual_seconds(folder: Path, loaders: int) -> float:
    """How long a run takes in which nothing happens, which must finish."""
    how = {**HOWS[0], "closes": True, "loaders": loaders}
    quiet = Moment(-1, "2x2", how, True, "none", 0, "", 0.0, 0.0)
    result = play(quiet, folder)
    if result["problems"]:
        raise SystemExit(f"a run without a fault does not finish: {result}")
    return float(result["last_s"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moments", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this moment alone")
    parser.add_argument("--usual", type=float, help="seconds of a run; else they are measured")
    parser.add_argument("--loaders", type=int, default=0, help="processes of each DataLoader")
    parser.add_argument("--secret", action="store_true", help="of the job, in the environment")
    parser.add_argument("--lost", default="error", choices=("error", "go_on"))
    parser.add_argument("--out", type=Path, help="keep what workers wrote, and the result, here")
    arguments = parser.parse_args()
    if arguments.secret:
        os.environ["GOSSAMER_SECRET"] = secrets.token_hex(32)
    if reason := hosts.clusters.missing_rights():
        raise SystemExit(f"[faults] {reason}")
    out = arguments.out or Path(tempfile.mkdtemp(prefix="gossamer-moments-"))
    assert len(list(Path("/proc/self/task").iterdir())) == 1
    gc.freeze()  # what the workers have in common does not cost each of them an end of its own
    usual_s = arguments.usual or usual_seconds(out / "usual", arguments.loaders)
    print(f"seed {arguments.seed}, a run takes {usual_s:.1f} s; written to {out}", flush=True)
    only = arguments.only
    numbers = range(arguments.moments) if only is None else [only]
    results = []
    for number in numbers:
        moment = draw(arguments.seed, number, usual_s, arguments.loaders, arguments.lost)
        result = play(moment, out / str(number))
        results.append(result)
        where = f"after {moment.phase or 'start'} {moment.after_s:.2f} s"
        print(
            f"{number:3} {moment.layout} {moment.fault:12} of {moment.rank} {where:26} "
            f"all ended {result['last_s']:5.2f} s later "
            f"{[*result['problems'], *result['explained']['wrong']] or ''}",
            flush=True,
        )
    hangs = sum("HANG" in problem for result in results for problem in result["problems"])
    wrong = sum(bool(result["problems"]) for result in results)
    kills = [result["last_s"] for result in results if result["fault"] == "kill"]
    whole = {
        "seed": arguments.seed,
        "loaders": arguments.loaders,
        "secret": arguments.secret,
        "lost": arguments.lost,
        "usual_s": usual_s,
        "moments": len(results),
        "hangs": hangs,
        "torch_hangs": sum(len(result["torch_hangs"]) for result in results),
        "wrong": wrong,
        "to explain": sum(result["explained"]["due"] for result in results),
        "explained": sum(result["explained"]["right"] for result in results),
        "slowest_s": max(result["last_s"] for result in results if "short" not in result["fault"]),
        "slowest_after_kill_s": max(kills, default=0),
        "host": socket.gethostname(),
        "runs": results,
    }
    (out / "moments.json").write_text(json.dumps(whole, indent=1))
    print(json.dumps({key: value for key, value in whole.items() if key != "runs"}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
