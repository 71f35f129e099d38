"""A peer that knows the job's token and means harm: what does it cost the worker that it talks to?

    python bench/faults/hostile.py --seconds 60 --json hostile.json

A worker exchanges payloads of 1 MiB with a good peer. Beside it, in turn, are a hostile peer
(hostile_peer.cpp), and one that behaves and sends as many bytes per second. For each kind of harm,
over shared memory and over TCP: the rate with the good peer and that rate per CPU second of the
worker, beside the hostile peer as a ratio to beside the other; and how much higher the worker's
memory rose. Every exchange with the good peer must succeed. The exit status is 1 where one did not,
or where memory rose by more than 64 MiB.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"  # so that there is one thread to fork

import hosts  # noqa: E402

PACKAGE = os.environ.get("GOSSAMER_PYTHON_PATH", str(hosts.ROOT / "build" / "python"))
sys.path.insert(0, PACKAGE)

import exchanger  # noqa: E402
import torch  # noqa: E402

from gossamer import _core  # noqa: E402

LOOPBACK, TOKEN = "127.0.0.1", "hostile"
VICTIM, GOOD, OTHER, WORKERS = 0, 1, 2, 3
KINDS = {
    "memory": (
        "offers empty_offers large_offers memories withdrawals unread broken half_open".split()
    ),
    "streams": "ready same_ready unready alive broken half_open".split(),
}
GOOD_BYTES, OTHER_BYTES = 1 << 20, 256 << 10
PATIENCE_S, WARM_S = 60.0, 0.5
MOST_GROWTH_MIB = 64
RESET_PEAK = "5"


def transport(rank: int, folder: Path, way: str, generation: int = 0) -> _core.Transport:
    return _core.net_transport(
        rank,
        WORKERS,
        token=TOKEN,
        share=lambda mine: exchanger.share_in(folder, rank, WORKERS, mine),
        address=LOOPBACK,
        share_memory=way == "memory",
        generation=generation,
    )


def exchange_all_the_time(rank: int, folder: Path, way: str, board: exchanger.Board) -> int:
    """The victim or its good peer."""
    torch.set_num_threads(1)
    net, peer = transport(rank, folder, way), GOOD - rank
    if rank == VICTIM:
        threading.Thread(target=hear_other, args=(net, board), daemon=True).start()
    mine, landing = (torch.full((GOOD_BYTES,), value, dtype=torch.uint8) for value in (1, 0))
    step, last = 0, False
    while not last:
        mine[0] = int(rank == VICTIM and board["stop", 0] != 0)
        received = net.receive(peer, landing, _core.Tag(step), timeout_s=PATIENCE_S)
        sent = net.send(peer, mine, _core.Tag(step), timeout_s=PATIENCE_S)
        net.wait(received)
        net.wait(sent)
        assert bool((landing[1:] == 1).all()), "wrong bytes"
        last = bool((mine if rank == VICTIM else landing)[0])
        step += 1
        board["done", rank] = step
    ends = time.monotonic() + PATIENCE_S
    while board["done", peer] < step and time.monotonic() < ends:
        time.sleep(0.001)  # its send may not have heard yet that it has arrived
    net.stop()
    return 0


def hear_other(net: _core.Transport, board: exchanger.Board) -> None:
    """Receives from the peer that behaves, while there is one."""
    landing = torch.zeros(OTHER_BYTES, dtype=torch.uint8)
    while not board["stop", 0]:
        try:
            tag = _core.Tag(board["round", 0])
            if board["generation", OTHER]:
                net.wait(net.receive(OTHER, landing, tag, timeout_s=1))
                board["round", 0] += 1
                continue
        except _core.TransportError:
            pass  # the next generation is not there yet
        time.sleep(0.01)


def behave(
    folder: Path, way: str, board: exchanger.Board, generation: int, bytes_per_s: float
) -> int:
    net = transport(OTHER, folder, way, generation)
    payload = torch.zeros(OTHER_BYTES, dtype=torch.uint8)
    began, sent = time.monotonic(), 0
    board["generation", OTHER] = generation
    while board["generation", OTHER]:
        if sent * OTHER_BYTES > bytes_per_s * (time.monotonic() - began):
            time.sleep(0.001)
            continue
        try:
            tag = _core.Tag(board["round", 0])
            net.wait(net.send(VICTIM, payload, tag, timeout_s=1))
        except _core.TransportError:
            continue
        sent += 1
        board["failed", OTHER] = sent * OTHER_BYTES
        while board["round", 0] == tag.step and board["generation", OTHER]:
            time.sleep(0)
    net.stop()
    return 0


@dataclass
class Slice:
    """What happened in a stretch of time."""

    rate: float  # bytes per second with the good peer, each way
    cpu: float  # seconds of the victim per second
    peak_mib: float
    others_bytes_per_s: float = 0.0
    meetings: int = 0


class Harm:
    """A victim, its good peer, and what is put beside them."""

    def __init__(self, way: str, folder: Path) -> None:
        self.way, self.folder, self.generation = way, folder, 1
        self.home = os.getpid()
        folder.mkdir(parents=True)
        self.board = exchanger.Board()
        self.children = hosts.Children()
        reach = _core.reach_of_shared_memory() if way == "memory" else "-"
        (folder / f"card-{OTHER}").write_text(f"{reach} gossamer-nobody 0 {LOOPBACK} 1")
        for rank in (VICTIM, GOOD):
            run = functools.partial(exchange_all_the_time, rank, folder, way, self.board)
            self.fork(str(rank), run)
        self.wait(lambda: self.board["done", VICTIM] > 10)
        card = (folder / f"card-{VICTIM}").read_text().split()
        self.place = card[1] if way == "memory" else f"{card[3]}:{card[4]}"
        self.victim = self.children.pids[str(VICTIM)]

    def fork(self, name: str, run: Callable[[], int]) -> None:
        self.children.add(name, hosts.fork(None, {}, self.folder / f"{name}.err", run))

    def wait(self, condition: Callable[[], bool]) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not condition():
            self.children.look()
            if time.monotonic() > limit or self.children.codes.get(str(VICTIM)):
                said = (self.folder / f"{VICTIM}.err").read_text()
                raise TimeoutError(f"the victim does not go on: {said}")
            time.sleep(0.005)

    def measure(self, seconds: float) -> Slice:
        time.sleep(WARM_S)
        Path(f"/proc/{self.victim}/clear_refs").write_text(RESET_PEAK)
        before = (time.monotonic(), self.board["done", VICTIM], self.cpu_s())
        time.sleep(seconds)
        at, done, cpu = time.monotonic(), self.board["done", VICTIM], self.cpu_s()
        took = at - before[0]
        rate = (done - before[1]) * GOOD_BYTES / took
        return Slice(rate, (cpu - before[2]) / took, self.peak_mib())

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.victim}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mib(self) -> float:
        lines = Path(f"/proc/{self.victim}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

    def beside_hostile(self, kind: str, seconds: float) -> Slice:
        program = Path(PACKAGE).parent / "bin" / "hostile_peer"
        words = [TOKEN, OTHER, VICTIM, self.generation, int(seconds + 2 * WARM_S), self.place]
        hostile = subprocess.Popen(
            [str(word) for word in (program, kind, *words)], stdout=subprocess.PIPE, text=True
        )
        began = time.monotonic()
        found = self.measure(seconds)
        said = json.loads(hostile.communicate(timeout=PATIENCE_S)[0])
        found.others_bytes_per_s = said["bytes"] / (time.monotonic() - began)
        found.meetings = said["meetings"]
        self.generation = said["generation"] + 1
        return found

    def beside_good(self, bytes_per_s: float, seconds: float) -> Slice:
        generation, sent = self.generation, self.board["failed", OTHER]
        self.generation += 1
        self.board["failed", OTHER] = sent = 0
        self.fork(
            "behaves", lambda: behave(self.folder, self.way, self.board, generation, bytes_per_s)
        )
        self.wait(lambda: self.board["generation", OTHER] == generation)
        began = time.monotonic()
        found = self.measure(seconds)
        sent = self.board["failed", OTHER]
        found.others_bytes_per_s = sent / (time.monotonic() - began)
        self.board["generation", OTHER] = 0
        self.children.wait(["behaves"], time.monotonic() + PATIENCE_S)
        return found

    def compare(self, kind: str, seconds: float, pairs: int) -> dict[str, Any]:
        hostile, good = [], []
        for _ in range(pairs):
            hostile.append(self.beside_hostile(kind, seconds))
            good.append(self.beside_good(hostile[-1].others_bytes_per_s, seconds))
        both = list(zip(hostile, good, strict=True))
        row = {
            "way": self.way,
            "kind": kind,
            "rate": round(statistics.median(h.rate / g.rate for h, g in both), 3),
            "rate_per_cpu": round(
                statistics.median(h.rate / h.cpu * g.cpu / g.rate for h, g in both), 3
            ),
            "growth_mib": round(
                max(h.peak_mib for h in hostile) - max(g.peak_mib for g in good), 1
            ),
            "meetings": sum(h.meetings for h in hostile),
            "hostile": [vars(each) for each in hostile],
            "good": [vars(each) for each in good],
        }
        print({key: value for key, value in row.items() if key not in ("hostile", "good")})
        return row

    def end(self) -> None:
        """A child, which leaves by the same way, ends nobody."""
        if os.getpid() != self.home:
            return
        self.board["stop", 0] = 1
        names = [str(VICTIM), str(GOOD)]
        left = self.children.wait(names, time.monotonic() + PATIENCE_S)
        codes = [self.children.codes.get(name) for name in names]
        self.children.end()
        if left or codes != [0, 0]:
            said = "".join((self.folder / f"{name}.err").read_text() for name in names)
            raise SystemExit(f"the victim or its good peer did not end well: {codes}: {said}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="of harm, over each way")
    parser.add_argument("--pairs", type=int, default=2, help="slices of each kind")
    parser.add_argument("--ways", default=",".join(KINDS))
    parser.add_argument("--kinds", default="", help="of harm; else all")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    folder = Path(tempfile.mkdtemp(prefix="gossamer-hostile-"))
    for way in arguments.ways.split(","):
        asked = arguments.kinds.split(",") if arguments.kinds else KINDS[way]
        kinds = [kind for kind in KINDS[way] if kind in asked]
        harm = Harm(way, folder / way)
        try:
            for kind in kinds:
                seconds = arguments.seconds / len(kinds) / arguments.pairs
                rows.append(harm.compare(kind, seconds, arguments.pairs))
        finally:
            harm.end()
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": rows}, indent=1))
    grown = [row for row in rows if row["growth_mib"] > MOST_GROWTH_MIB]
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
