"""One host's part of a job: its workers, and what they are told."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gossamer.base import files
from gossamer.launching.processes import Process


@dataclass
class Worker:
    """One rank: the process that it is now, or when it is started again."""

    rank: int
    local_rank: int
    process: Process | None = None
    restarts: int = 0  # by this launcher
    in_a_row: int = 0  # of them after a short life
    starts: int = 0  # by any: how often it has been there before
    starts_at: float = 0.0
    began: float = 0.0
    is_over: bool = False
    has_joined: bool = False
    has_finished: bool = False
    has_left: bool = False  # by itself, while the others go on


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
    spares: int = 0
    comes_back: bool = False
    hosts_at_first: int = 0  # from host 0 on; the others join later. 0: all
    workers: list[Worker] = field(default_factory=list)
    earlier: set[str] = field(default_factory=set)  # failures of jobs before this one
    lives_before: list[Path] = field(default_factory=list)  # their members: see lives.py

    def variables_of_all(self) -> dict[str, str]:
        """Of the environment; as torchrun's, and what a worker needs to come back."""
        return {
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
            "WORLD_SIZE": str(self.hosts * self.per_host),
            "LOCAL_WORLD_SIZE": str(self.per_host),
            "GROUP_RANK": str(self.host),
            "MASTER_ADDR": self.master[0],
            "MASTER_PORT": str(self.master[1]),
            "GOSSAMER_MEMBERS": str(self.members),
            "GOSSAMER_LIFE": str(len(self.lives_before)),
            "GOSSAMER_BEGIN": str((self.hosts_at_first or self.hosts) * self.per_host),
        }

    def variables_of(self, worker: Worker) -> dict[str, str]:
        """What is this worker's alone."""
        return {
            "RANK": str(worker.rank),
            "LOCAL_RANK": str(worker.local_rank),
            "GOSSAMER_RESTARTS": str(worker.starts),
        }

    def has_joined(self, worker: Worker) -> bool:
        """Whether it had connected to the others; before that nobody can go on without it. A card
        says whether it was connected; one that does not say it, as of `gossamer train`, was."""
        if not worker.has_joined:
            card = self._card(worker.rank)
            worker.has_joined = card is not None and bool(card.get("connected", True))
        return worker.has_joined

    def is_of_a_part(self, worker: Worker) -> bool:
        """Whether its Gossip is one of several in the job, as where FSDP is inside of hosts."""
        card = self._card(worker.rank)
        return card is not None and not card.get("is_of_all", True)

    def lose_state(self, worker: Worker) -> None:
        """It has ended: its cards say that it has no state of the run any more."""
        for path in self.members.glob(f"*/{worker.rank}.json"):
            with contextlib.suppress(OSError, ValueError):
                card = {**json.loads(path.read_text()), "has_state": False}
                files.write_whole(path, json.dumps(card), 0o600)

    def has_state(self) -> bool:
        """Whether a worker of any host has the state of the run, or may have it."""
        cards = map(self._card, range(self.hosts * self.per_host))
        return any(card is None or card.get("has_state", True) for card in cards)

    def _card(self, rank: int) -> dict[str, Any] | None:
        """Of its first Gossip; None: there is none yet."""
        try:
            card: dict[str, Any] = json.loads((self.members / "0" / f"{rank}.json").read_text())
        except (OSError, ValueError):
            return None
        return card

    def starts_before(self, worker: Worker) -> int:
        """How often other launchers of this host have started it, where it had joined; of a host
        that has not begun with the others at least once, for it comes to a job that runs."""
        if not self.has_joined(worker):
            return 0
        count = self.members / f"{worker.rank}.starts"
        text = count.read_text() if count.exists() else ""
        return int(text) if text.isdecimal() else int(self.joins_later())

    def count_start(self, worker: Worker) -> None:
        self.members.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.members / f"{worker.rank}.starts").write_text(str(worker.starts + 1))

    def is_taken_over(self, worker: Worker) -> bool:
        """Whether another launcher has started this worker meanwhile."""
        count = self.members / f"{worker.rank}.starts"
        return not count.exists() or count.read_text() != str(worker.starts + 1)

    def forget(self, worker: Worker) -> None:
        """What an earlier job has left."""
        for card in self.members.glob(f"*/{worker.rank}.json"):
            card.unlink()
        self.mark_of(worker).unlink(missing_ok=True)
        self.take_leave(worker)

    def begin(self) -> None:
        """What other hosts' launchers said in earlier jobs of this folder is not of this one."""
        for mark in (self._failure_of(self.host), self._end_of(self.host)):
            mark.unlink(missing_ok=True)
        self.earlier = {mark.read_text() for mark in self.members.glob("*.failed")}

    def tell_failure(self, text: str) -> None:
        """To the launchers of other hosts, whose workers wait for those of this one."""
        if self.hosts > 1:
            with contextlib.suppress(OSError):
                self.members.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._failure_of(self.host).write_text(f"{secrets.token_hex(8)} {text}")

    def failure_elsewhere(self) -> str:
        """What another host's launcher says of a start that has failed; empty where none does."""
        for host in range(self.hosts):
            with contextlib.suppress(OSError):
                said = self._failure_of(host).read_text()
                if host != self.host and said not in self.earlier and " " in said:
                    return f"host {host}: {said.partition(' ')[2]}"
        return ""

    def end(self) -> None:
        """The last launcher of a job that has succeeded removes the folder: its cards have the
        token where there is no secret. What is not the job's stays."""
        with contextlib.suppress(OSError):
            self._end_of(self.host).touch()
        if not all(self._is_over(host) for host in range(self.hosts)):
            return
        for members in (self.members, *reversed(self.lives_before)):
            self._empty(members)

    def _empty(self, members: Path) -> None:
        ranks, hosts = range(self.hosts * self.per_host), range(self.hosts)
        of_ranks = ("{}.starts", "{}.finished", "{}.left")
        _remove(members, *(f"[0-9]*/{rank}.json" for rank in ranks))
        _remove(members, *(name.format(rank) for rank in ranks for name in of_ranks))
        _remove(members, *(f"{host}.{kind}" for host in hosts for kind in ("over", "failed")))
        for folder in members.glob("*/"):
            if folder.name.isdecimal():
                _remove(folder, ".*-*", ".*.json.*.tmp")
                with contextlib.suppress(OSError):
                    folder.rmdir()
        with contextlib.suppress(OSError):
            members.rmdir()

    def _is_over(self, host: int) -> bool:
        """Or it has never come."""
        first = host * self.per_host
        ranks = range(first, first + self.per_host)
        has_come = any((self.members / f"{rank}.starts").exists() for rank in ranks)
        return self._end_of(host).exists() or (0 < self.hosts_at_first <= host and not has_come)

    def joins_later(self) -> bool:
        """Whether this host comes to a job that others have begun."""
        return 0 < self.hosts_at_first <= self.host

    def _failure_of(self, host: int) -> Path:
        return self.members / f"{host}.failed"

    def _end_of(self, host: int) -> Path:
        return self.members / f"{host}.over"

    def mark_of(self, worker: Worker) -> Path:
        """Says that its program has ended as it should."""
        return self.members / f"{worker.rank}.finished"

    def take_leave(self, worker: Worker) -> bool:
        """Whether it has said that it leaves; once."""
        mark = self.members / f"{worker.rank}.left"
        has_left = mark.exists()
        mark.unlink(missing_ok=True)
        return has_left

    def is_over(self) -> bool:
        """Whether a worker has finished, on whatever host."""
        return any(self.members.glob("*.finished"))


def _remove(folder: Path, *patterns: str) -> None:
    for pattern in patterns:
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)
