"""`gossamer launch`: starts the workers of one host, and starts a lost one again.

It coordinates nothing: workers find each other by themselves, and where it ends they go on. The
launchers of several hosts share nothing but the folder of GOSSAMER_MEMBERS.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_NAP_S = 0.05
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_SHORT_S = 10.0  # a process that ends sooner may fail again at once
_GRACE_S = 30.0
_DONE, _FAILED, _WRONG, _INTERRUPTED = 0, 1, 2, 130


@dataclass
class Worker:
    """One rank: the process that it is now, or when it is started again."""

    rank: int
    local_rank: int
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0  # by this launcher
    in_a_row: int = 0  # of them after a short life
    starts: int = 0  # by any: how often it has been there before
    starts_at: float = 0.0
    began: float = 0.0
    is_over: bool = False
    has_finished: bool = False


@dataclass
class Job:
    """All that the workers of this host are told."""

    command: Sequence[str]
    per_host: int
    hosts: int
    host: int
    master: tuple[str, int]
    members: Path
    restarts: int
    comes_back: bool = False
    workers: list[Worker] = field(default_factory=list)

    def environment(self, worker: Worker) -> dict[str, str]:
        """As torchrun's, and what a worker needs to come back."""
        return {
            "OMP_NUM_THREADS": "1",
            **os.environ,
            "RANK": str(worker.rank),
            "WORLD_SIZE": str(self.hosts * self.per_host),
            "LOCAL_RANK": str(worker.local_rank),
            "LOCAL_WORLD_SIZE": str(self.per_host),
            "GROUP_RANK": str(self.host),
            "MASTER_ADDR": self.master[0],
            "MASTER_PORT": str(self.master[1]),
            "GOSSAMER_MEMBERS": str(self.members),
            "GOSSAMER_RESTARTS": str(worker.starts),
        }

    def has_joined(self, worker: Worker) -> bool:
        """Whether it had connected to the others; before that nobody can go on without it."""
        return (self.members / "0" / f"{worker.rank}.json").exists()

    def starts_before(self, worker: Worker) -> int:
        """How often other launchers of this host have started it, where it had joined."""
        count = self.members / f"{worker.rank}.starts"
        text = count.read_text() if self.has_joined(worker) and count.exists() else ""
        return int(text) if text.isdecimal() else 0

    def count_start(self, worker: Worker) -> None:
        self.members.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.members / f"{worker.rank}.starts").write_text(str(worker.starts + 1))

    def forget(self, worker: Worker) -> None:
        """What an earlier job has left."""
        for card in self.members.glob(f"*/{worker.rank}.json"):
            card.unlink()
        self.mark_of(worker).unlink(missing_ok=True)

    def mark_of(self, worker: Worker) -> Path:
        """Says that its program has ended as it should."""
        return self.members / f"{worker.rank}.finished"

    def is_over(self) -> bool:
        """Whether a worker has finished, on whatever host."""
        return any(self.members.glob("*.finished"))


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        return _refuse("what the workers run is missing; put it at the end: -- python train.py")
    if given.workers < 1 or given.hosts < 1 or not 0 <= given.host < given.hosts:
        return _refuse(
            f"a host is one of --hosts, with one worker or more, got --workers {given.workers} "
            f"--hosts {given.hosts} --host {given.host}"
        )
    if given.hosts > 1 and not (given.master and given.members):
        return _refuse(
            "several hosts need --master HOST:PORT, of host 0, and --members, a folder that all of "
            "them see"
        )
    name, _, port = (given.master or f"127.0.0.1:{_free_port()}").rpartition(":")
    if not name or not port.isdecimal():
        return _refuse(f"--master is HOST:PORT, got {given.master}")
    own = None if given.members else Path(tempfile.mkdtemp(prefix="gossamer-"))
    members = own or Path(given.members).absolute()
    job = Job(
        *(command, given.workers, given.hosts, given.host, (name, int(port)), members),
        restarts=given.restarts,
        comes_back=given.come_back,
    )
    try:
        return _Supervisor(job).run()
    finally:
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gossamer launch",
        description="Starts the workers of one host, and starts a lost one again, which then comes "
        'back to the others. For programs with Gossip(lost="go_on"); where this ends, they go on.',
        epilog="Exit codes: 0 a worker of this host has finished, 1 none has, 2 the command line "
        "is wrong, 130 interrupted.",
    )
    parser.add_argument("-n", "--workers", type=int, required=True, help="on this host")
    parser.add_argument(
        "--restarts", type=int, default=3, help="how often each is started again at most"
    )
    parser.add_argument("--hosts", type=int, default=1, help="hosts, each with as many workers")
    parser.add_argument("--host", type=int, default=0, help="which of them this is, from 0")
    parser.add_argument("--master", help="HOST:PORT of host 0, for the start")
    parser.add_argument("--members", help="a folder that all hosts see; default: a new one")
    parser.add_argument(
        "--come-back",
        action="store_true",
        help="the folder is of this job alone: where this host was there before, its workers come "
        "back",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- what the workers run")
    return parser


def _refuse(text: str) -> int:
    print(f"[launch] {text}", file=sys.stderr)
    return _WRONG


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def pause_s(in_a_row: int) -> float:
    """Before the next start of a worker that has ended so often after a short life."""
    doubled = min(in_a_row - 1, 10)  # a float has no room for all
    return min(_FIRST_PAUSE_S * 2.0**doubled, _LONGEST_PAUSE_S) if in_a_row > 1 else 0.0


class _Supervisor:
    """The processes of this host. They are in process groups of their own: what ends this one does
    not end them, and signals to it are passed on."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._told = 0  # the signal that has come
        first = job.host * job.per_host
        job.workers = [Worker(first + k, k) for k in range(job.per_host)]

    def run(self) -> int:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)
        for worker in self._job.workers:
            if self._job.comes_back:
                worker.starts = self._job.starts_before(worker)
            else:
                self._job.forget(worker)
        for worker in self._job.workers:
            if not self._start(worker):
                self._end_all()
                return _FAILED
        while not all(worker.is_over for worker in self._job.workers):
            if self._told:
                self._end_all()
                return _INTERRUPTED if self._told == signal.SIGINT else 128 + self._told
            for worker in self._job.workers:
                if not self._look(worker):
                    self._end_all()
                    return _FAILED
            time.sleep(_NAP_S)
        return _DONE if any(w.has_finished for w in self._job.workers) else _FAILED

    def _take(self, number: int, _: object) -> None:
        self._told = number

    def _start(self, worker: Worker) -> bool:
        worker.began = time.monotonic()
        try:
            self._job.count_start(worker)
            worker.process = subprocess.Popen(
                list(self._job.command),
                env=self._job.environment(worker),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self._say(f"cannot start {self._job.command[0]}: {error}")
            return False
        return True

    def _look(self, worker: Worker) -> bool:
        """False: the job cannot go on."""
        if worker.is_over:
            return True
        if worker.process is None:
            return time.monotonic() < worker.starts_at or self._start(worker)
        code = worker.process.poll()
        if code is None:
            return True
        worker.process = None
        if code == 0:
            worker.is_over = worker.has_finished = True
            with contextlib.suppress(OSError):
                self._job.mark_of(worker).touch()
            return True
        took = time.monotonic() - worker.began
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        ended = f"rank {worker.rank} ended {how} after {took:.0f} s"
        if not self._job.has_joined(worker):
            self._say(f"{ended}, before it had come to the others, who are ended as well")
            return False
        if self._job.is_over():
            self._say(f"{ended}; it is not started again, others have finished")
            worker.is_over = True
            return True
        if worker.restarts >= self._job.restarts:
            self._say(f"{ended}; it is not started again, the others go on")
            worker.is_over = True
            return True
        worker.in_a_row = worker.in_a_row + 1 if took < _SHORT_S else 0
        worker.restarts += 1
        worker.starts += 1
        worker.starts_at = time.monotonic() + pause_s(worker.in_a_row)
        again = f"{worker.restarts} of {self._job.restarts}"
        self._say(f"{ended}; it is started again ({again}), the others go on")
        return True

    def _say(self, text: str) -> None:
        print(f"[launch] {text}", file=sys.stderr, flush=True)

    def _end_all(self) -> None:
        """Passes the signal on, and waits."""
        number = self._told or signal.SIGTERM
        running = [w.process for w in self._job.workers if w.process is not None]
        for process in running:
            _signal(process, number)
        limit = time.monotonic() + _GRACE_S
        for process in running:
            try:
                process.wait(max(0.0, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To all of its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
