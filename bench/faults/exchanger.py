"""A worker of soak.py: in each round it exchanges payloads with all others, byte by byte."""

import ctypes
import gc
import json
import mmap
import os
import signal
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gossamer import _core

WORKERS = 4
DEADLINE_S = 5.0
SILENCE_S = 2.0
LARGEST = 4 << 20
SENTINEL = 0xE5
MARGIN = 64
# How long a landing is watched after its request has ended.
WATCHED_ROUNDS = 12
# Sleepers are replaced after so many rounds, and outlive a parent that is killed by so long.
SLEEPERS_ROUNDS, SLEEPERS_STAY_S = 50, 5.0
# Always by a mapping of its own, so that memory that is free is seen to be.
MMAP_THRESHOLD, M_MMAP_THRESHOLD = 128 << 10, -3

_pool = torch.randint(
    0, 256, (2 * LARGEST,), dtype=torch.uint8, generator=torch.Generator().manual_seed(5)
)


class Board:
    """Numbers that all processes of the soak see."""

    def __init__(self) -> None:
        self._numbers = memoryview(mmap.mmap(-1, 4096)).cast("q")

    def __getitem__(self, place: tuple[str, int]) -> int:
        return self._numbers[self._index(place)]

    def __setitem__(self, place: tuple[str, int], value: int) -> None:
        self._numbers[self._index(place)] = value

    @staticmethod
    def _index(place: tuple[str, int]) -> int:
        names = ("round", "stop", "generation", "done", "failed")
        return names.index(place[0]) * 16 + place[1]


def payload(sender: int, receiver: int, round_: int, generation: int) -> torch.Tensor:
    """Its size and bytes depend on sender, receiver and round; the first one is the generation."""
    dice = (round_ * 16 + sender * 4 + receiver) * 2654435761 % (1 << 32)
    size = max(1, int(LARGEST ** ((dice >> 8) % 1000 / 999)))
    at = dice % LARGEST
    made = _pool[at : at + size].clone()
    made[0] = generation % 256
    return made


@dataclass
class Landing:
    """A buffer with margins that nobody may write to."""

    whole: torch.Tensor
    since: int = 0

    @property
    def inner(self) -> torch.Tensor:
        return self.whole[MARGIN:-MARGIN]

    @staticmethod
    def of(size: int) -> "Landing":
        return Landing(torch.full((size + 2 * MARGIN,), SENTINEL, dtype=torch.uint8))

    def margins_are_whole(self) -> bool:
        ends = torch.cat([self.whole[:MARGIN], self.whole[-MARGIN:]])
        return bool((ends == SENTINEL).all())

    def is_untouched(self) -> bool:
        return bool((self.whole == SENTINEL).all())


def figures() -> dict[str, int]:
    """What this process holds, once it has given back what it can."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    kib = {name: int(status[name].split()[0]) for name in ("RssAnon", "RssShmem")}
    return {
        "anonymous_kib": kib["RssAnon"],
        "shared_kib": kib["RssShmem"],
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": len(list(Path("/proc/self/task").iterdir())),
    }


def share_in(folder: Path, rank: int, workers: int, mine: str) -> list[str]:
    """Everybody's words, which stand in files; the last that each has written."""
    fresh = folder / f"card-{rank}.new"
    fresh.write_text(mine)
    fresh.rename(folder / f"card-{rank}")
    paths = [folder / f"card-{peer}" for peer in range(workers)]
    while not all(path.exists() for path in paths):
        time.sleep(0.01)
    return [path.read_text() for path in paths]


def meeting(job: str, folder: Path, rank: int, workers: int) -> dict[str, Any]:
    """What a transport needs to meet the others: as the package does it, with a job's secret where
    the environment has one."""
    token = _core.token_by_secret(job) or job

    def share(mine: str) -> list[str]:
        told = share_in(folder, rank, workers, _core.sealed(token, rank, mine))
        return [_core.opened(token, peer, words) for peer, words in enumerate(told)]

    return {"token": token, "share": share}


class Sleepers:
    """Forked children, as a DataLoader's workers are; they outlive their parent for a while."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.pids: list[int] = []

    def renew(self) -> None:
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.pids = [self.fork() for _ in range(self.count)]

    @staticmethod
    def fork() -> int:
        parent = os.getpid()
        if child := os.fork():
            return child
        while os.getppid() == parent:
            time.sleep(0.1)
        time.sleep(SLEEPERS_STAY_S)
        os._exit(0)


class Exchanger:
    def __init__(
        self, rank: int, board: Board, folder: Path, *, address: str, children: int
    ) -> None:
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD)
        torch.set_num_threads(1)
        self.rank, self.board = rank, board
        self.peers = [peer for peer in range(WORKERS) if peer != rank]
        self.generation = board["generation", rank]
        self.seen = dict.fromkeys(self.peers, 0)
        self.watched: deque[Landing] = deque()
        self.counts = {"received": 0, "bytes": 0, "failed": 0, "abandoned": 0}
        self.out = (folder / f"{rank}.jsonl").open("a")
        self.sleepers = Sleepers(children)
        self.transport = _core.net_transport(
            rank,
            WORKERS,
            **meeting("soak", folder, rank, WORKERS),
            address=address,
            generation=self.generation,
            longest_silence_s=SILENCE_S,
        )

    def note(self, **what: object) -> None:
        self.out.write(json.dumps({"at": time.monotonic(), **what}) + "\n")
        self.out.flush()

    def run(self) -> int:
        began, early = time.monotonic(), None
        done = self.board["round", 0]  # which may be half over
        self.board["done", self.rank] = done
        while not self.board["stop", 0]:
            number = self.board["round", 0]
            if number == done:
                time.sleep(0.001)
                continue
            has_all = self.exchange(number)
            self.look_at_old(number)
            if number % SLEEPERS_ROUNDS == 0 or not self.sleepers.pids:
                self.sleepers.renew()
            done = number
            self.board["done", self.rank] = done
            # With all edges, whose descriptors are then counted.
            if early is None and has_all and time.monotonic() - began > 20:
                early = self.rest()
        self.note(end=self.counts, early=early, late=self.rest())
        self.transport.stop()
        return 0

    def rest(self) -> dict[str, int]:
        self.look_at_old(self.board["round", 0] + 2 * WATCHED_ROUNDS)
        return figures()

    def exchange(self, number: int) -> bool:
        """Whether everything was sent and received."""
        tag = _core.Tag(number)
        landings, outgoing, requests = {}, {}, {}
        for peer in self.peers:
            landings[peer] = Landing.of(len(payload(peer, self.rank, number, 0)))
            outgoing[peer] = payload(self.rank, peer, number, self.generation)
            inner = landings[peer].inner
            requests[peer, "receive"] = self.transport.receive(
                peer, inner, tag, timeout_s=DEADLINE_S
            )
            requests[peer, "send"] = self.transport.send(
                peer, outgoing[peer], tag, timeout_s=DEADLINE_S
            )
        began, arrived, done = time.monotonic(), set(), 0
        while requests:
            for peer, kind in list(requests):
                about = {"kind": kind, "peer": peer, "round": number, "began": began}
                state = self.state(requests[peer, kind], about)
                if state == "pending":
                    continue
                self.transport.release(requests.pop((peer, kind)))
                done += state == "done"
                if kind == "send":
                    outgoing[peer].fill_(0xAA)  # which nobody may see
                elif state == "done":
                    arrived.add(peer)
            if self.board["round", 0] != number:  # the others have gone on
                self.abandon(requests, outgoing)
            if requests:
                self.transport.progress(timeout_s=0.02)
        for peer in self.peers:
            self.check(peer, landings[peer], number, has_come=peer in arrived)
        return done == 2 * len(self.peers)

    def abandon(
        self, requests: dict[tuple[int, str], int], outgoing: dict[int, torch.Tensor]
    ) -> None:
        for (peer, kind), request in requests.items():
            self.transport.release(request)
            if kind == "send":
                outgoing[peer].fill_(0xAA)
        self.counts["abandoned"] += len(requests)
        requests.clear()

    def state(self, request: int, about: dict[str, object]) -> str:
        try:
            return "done" if self.transport.done(request) else "pending"
        except _core.TransportError as error:
            self.counts["failed"] += 1
            self.note(**about, failed=error.reason, named=error.peer)
            return "failed"

    def check(self, peer: int, landing: Landing, number: int, *, has_come: bool) -> None:
        """What has come must be right, and nothing may come later."""
        if has_come:
            self.counts["received"] += 1
            found = landing.inner
            generation = int(found[0])
            right = torch.equal(found, payload(peer, self.rank, number, generation))
            if not right:
                self.note(problem=f"wrong bytes from {peer} in round {number}")
            if not self.seen[peer] <= generation <= self.board["generation", peer]:
                self.note(problem=f"{peer} sent as {generation} after {self.seen[peer]}")
            self.seen[peer] = max(self.seen[peer], generation)
            self.counts["bytes"] += len(found)
        if not landing.margins_are_whole():
            self.note(problem=f"the margins of a landing for {peer} were written to")
        landing.whole.fill_(SENTINEL)
        landing.since = number
        self.watched.append(landing)

    def look_at_old(self, number: int) -> None:
        while self.watched and self.watched[0].since <= number - WATCHED_ROUNDS:
            if not self.watched.popleft().is_untouched():
                self.note(problem="a landing was written to after its request had ended")


def stand_by(rank: int, board: Board, folder: Path, *, address: str, share_memory: bool) -> int:
    """One of two bystanders, who exchange all the time and must notice nothing."""
    torch.set_num_threads(1)
    transport = _core.net_transport(
        rank,
        2,
        **meeting("bystander", folder, rank, 2),
        address=address,
        share_memory=share_memory,
    )
    size, step, last = 100_000, 0, False
    with (folder / f"{rank}.jsonl").open("a") as out:
        try:
            while not last:
                tag = _core.Tag(step)
                mine = _pool[step : step + size].clone()
                mine[0] = int(rank == 0 and board["stop", 1] != 0)
                landing = torch.zeros(size, dtype=torch.uint8)
                received = transport.receive(1 - rank, landing, tag, timeout_s=60)
                sent = transport.send(1 - rank, mine, tag, timeout_s=60)
                transport.wait(received)
                transport.wait(sent)
                last = bool((mine if rank == 0 else landing)[0])
                if not torch.equal(landing[1:], _pool[step + 1 : step + size]):
                    out.write(json.dumps({"problem": f"wrong bytes in step {step}"}) + "\n")
                step += 1
                time.sleep(0.002)
        except _core.TransportError as error:
            out.write(json.dumps({"problem": str(error)}) + "\n")
        out.write(json.dumps({"end": {"steps": step}}) + "\n")
    transport.stop()
    return 0
