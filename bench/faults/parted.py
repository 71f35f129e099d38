"""Two hosts that cannot reach each other for a while: who goes on, and when all are together again.

    python bench/faults/parted.py --hosts 2,2 --seconds 5,60
    python bench/faults/parted.py --hosts 4,4 --seconds 60 --ways one

On an emulated cluster, each host with its own `gossamer launch` and a spare. All train as in
bench/churn. After some steps the link is cut for so many seconds, both ways or one way only: what
host 1 sends is lost. Prints a line per cut, and writes all to build/bench/faults_parted.json.
"""

import argparse
import contextlib
import importlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import hosts as emulated

ROOT = emulated.ROOT
sys.path.insert(0, str(ROOT / "bench" / "churn"))

contenders: Any = importlib.import_module("contenders")  # other folders have one, too
notes: Any = importlib.import_module("notes")

clusters = emulated.clusters
PORT = 29400
BEFORE = 100  # steps before the cut
EVERY = 10  # steps between two looks at how far all are apart
MOST_S = 120.0
BACK = 1.5  # so many times as far apart as before counts as together


class Job:
    """A launcher in each host, and what their workers note."""

    def __init__(self, cluster: Any, folder: Path) -> None:
        self.folder, self.size = folder, cluster.size
        self._log = (folder / "said").open("w")
        self._launchers = []
        for host, workers in enumerate(cluster.workers):
            place = ["ip", "netns", "exec", cluster.host(host)]
            launch = [sys.executable, "-m", "gossamer", "launch", "-n", str(workers)]
            launch += ["--hosts", str(len(cluster.workers)), "--host", str(host)]
            launch += ["--master", f"{cluster.address(0)}:{PORT}"]
            launch += ["--members", str(folder / "members"), "--restarts", contenders.MANY]
            launch += ["--spares", "1", "--", sys.executable]
            launch += [str(contenders.HERE / "gossip_worker.py"), str(folder), "ring"]
            variables = {"GLOO_SOCKET_IFNAME": clusters.LINK, "OMP_NUM_THREADS": "1"}
            variables["PYTHONPATH"] = str(contenders.BUILT)
            self._launchers.append(
                subprocess.Popen(
                    [*place, *launch, "--apart", str(EVERY)],
                    env={**os.environ, **variables},
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    start_new_session=True,
                )
            )

    def said(self) -> list[list[dict[str, Any]]]:
        return [notes.read(self.folder, rank) for rank in range(self.size)]

    def wait(self, what: str, is_so: Any) -> float:
        """The seconds that it took."""
        begin = time.monotonic()
        while not is_so(self.said()):
            if time.monotonic() > begin + MOST_S:
                raise SystemExit(f"{what}: not within {MOST_S:.0f} s, see {self.folder / 'said'}")
            time.sleep(0.2)
        return time.monotonic() - begin

    def end(self) -> None:
        notes.end_all(self.folder)
        limit = time.monotonic() + contenders.TO_END_S
        for launcher in self._launchers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                launcher.wait(max(0.1, limit - time.monotonic()))
            if launcher.poll() is None:
                os.killpg(launcher.pid, signal.SIGTERM)
                launcher.wait()
        self._log.close()


@contextlib.contextmanager
def cut(cluster: Any, ways: str) -> Iterator[None]:
    """What host 1 sends is lost; with "both", what it should hear as well."""
    if ways == "both":
        clusters.set_link(cluster, 1, is_up=False)
    else:
        to_nobody(cluster, "replace", "lladdr", "02:00:00:00:00:99", "nud", "permanent")
    try:
        yield
    finally:
        if ways == "both":
            clusters.set_link(cluster, 1, is_up=True)
        else:
            to_nobody(cluster, "del")


def to_nobody(cluster: Any, do: str, *what: str) -> None:
    """Where host 1 sends what is for host 0."""
    words = ["ip", "-n", cluster.host(1), "neigh", do, cluster.address(0), *what]
    subprocess.run([*words, "dev", clusters.LINK], check=True)


def last_step(said: list[dict[str, Any]]) -> int:
    return max((n["step"] for n in said if "step" in n), default=0)


def steps_between(said: list[dict[str, Any]], begin: float, end: float) -> int:
    return sum("step" in n and begin <= n["at"] < end for n in said)


def longest_gap(said: list[dict[str, Any]], begin: float, end: float) -> float:
    moments = [n["at"] for n in said if "step" in n and begin - 1 <= n["at"] <= end]
    return max((b - a for a, b in itertools.pairwise(moments)), default=end - begin)


def processes(said: list[dict[str, Any]]) -> int:
    return len({n["pid"] for n in said if "pid" in n})


def has_all_again(said: list[list[dict[str, Any]]], since: float) -> bool:
    """Whether the rounds are those of all workers, where they were formed anew since the cut."""
    formed = [n["among"] for each in said for n in each if "among" in n and n["at"] > since]
    return not formed or len(formed[-1]) == len(said)


def play(cluster: Any, ways: str, seconds: float, after: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="gossamer-parted-"))
    job = Job(cluster, folder)
    try:
        job.wait("start", lambda said: all(last_step(each) >= BEFORE for each in said))
        begin = time.monotonic()
        with cut(cluster, ways):
            time.sleep(seconds)
        end = time.monotonic()
        job.wait("stepping", lambda said: all(steps_between(each, end, 1e18) > 0 for each in said))
        aims = [last_step(each) for each in job.said()]
        job.wait(
            "together",
            lambda said: (
                has_all_again(said, begin)
                and all(
                    last_step(each) >= aim + after for each, aim in zip(said, aims, strict=True)
                )
            ),
        )
        stop = time.monotonic()
    finally:
        job.end()
    said = job.said()
    formed = [n for n in said[0] if "among" in n and n["at"] > begin]
    together = formed[-1]["after"] if formed else max(aims)
    apart = [(n["after"], n["at"], n["apart"]) for n in said[0] if "apart" in n]
    usual = median(far for _, at, far in apart if at < begin)
    back = [after for after, at, far in apart if after >= together and far <= BACK * usual]
    return {
        "ways": ways,
        "seconds": seconds,
        "steps in the cut": [steps_between(each, begin, end) for each in said],
        "longest step": [longest_gap(each, begin, stop) for each in said],
        "started again": [processes(each) - 1 for each in said],
        "s until all step": max(
            min(n["at"] for n in each if "step" in n and n["at"] > end) - end for each in said
        ),
        "s until rounds have all": formed[-1]["at"] - end if formed else 0.0,
        "steps until together": back[0] - together if back else None,
        "apart before": usual,
        "notes": str(folder),
    }


def line_of(found: dict[str, Any]) -> str:
    gaps = " ".join(f"{gap:.1f}" for gap in found["longest step"])
    return (
        f"{found['hosts']} workers, cut {found['ways']} for {found['seconds']:.0f} s: steps in it "
        f"{found['steps in the cut']}, longest step {gaps} s, started again "
        f"{found['started again']}, all step {found['s until all step']:.1f} s after it, are in "
        f"the rounds {found['s until rounds have all']:.1f} s after it, and as near as before "
        f"{found['steps until together']} steps later"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", default="2,2", help="workers of each of the two")
    parser.add_argument("--seconds", default="5,60", help="of each cut, with commas")
    parser.add_argument(
        "--ways", default="both,one", help="both, one, or both of them with a comma"
    )
    parser.add_argument("--after", type=int, default=400, help="steps once all are together again")
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench/faults_parted.json")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # all are ended, too
    workers = clusters.parse_hosts(given.hosts)
    results = []
    for ways, seconds in itertools.product(given.ways.split(","), given.seconds.split(",")):
        cluster = clusters.Cluster(f"part{os.getpid() % 100_000}", workers, (0.0,) * len(workers))
        with clusters.running(cluster):
            found = play(cluster, ways, float(seconds), given.after)
        results.append({"hosts": given.hosts, **found})
        print(line_of(results[-1]), flush=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
