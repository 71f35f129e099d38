"""Processes that have imported torch already, from which a worker that is lost is forked."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gossamer.launching.processes import Forked, Process

_WITH_A_VALUE = ("-W", "-X")
_PAUSE_S = 1.0  # a worker that has just come back needs the processors more
_TO_FORK_S = 10.0


def spare_command(command: Sequence[str]) -> list[str] | None:
    """What a spare process of this command is started with; None where the command is not `python
    [options] train.py` or `python [options] -m module`."""
    if not command or not re.fullmatch(r"python[0-9.]*", Path(command[0]).name):
        return None
    place = 1
    while place < len(command) and command[place].startswith("-") and command[place] != "-m":
        if not re.fullmatch(r"-([bBdEiIOPqsSuv]+|[WX].*)", command[place]):
            return None
        place += 2 if command[place] in _WITH_A_VALUE else 1
    words = list(command[place:])
    if not words or words == ["-m"]:
        return None
    return [*command[:place], "-m", "gossamer.launching.spare_process", *words]


class _Spare:
    """One of them, and the socket that is its stdin: see spare_process."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str]) -> None:
        self._channel, its = socket.socketpair()
        with its:
            self.parent = subprocess.Popen(
                list(command),
                env={**os.environ, **variables},
                stdin=its.fileno(),
                start_new_session=True,
            )
        self._is_ready = False

    def is_ready(self) -> bool:
        """Whether it has imported all."""
        if not self._is_ready:
            self._is_ready = self._heard(0.0) is not None
        return self._is_ready

    def become(self, variables: Mapping[str, str]) -> Process | None:
        """The worker with these variables: a fork, or the spare itself; None where it has ended."""
        with contextlib.suppress(OSError):
            self._channel.sendall(json.dumps(dict(variables)).encode() + b"\n")
        said = self._heard(_TO_FORK_S)
        if said is None:  # a worker runs only once it has been said
            self.parent.kill()
            self.parent.wait()
            said = self._heard(0.0)
        if said is None:
            return None
        return self.parent if int(said) == self.parent.pid else Forked(int(said))

    def _heard(self, timeout_s: float) -> str | None:
        """Its next line."""
        self._channel.settimeout(timeout_s)
        line = b""
        try:
            while not line.endswith(b"\n"):
                part = self._channel.recv(1)
                if not part:
                    return None
                line += part
        except OSError:
            return None
        return line.decode().strip()

    def close(self) -> None:
        """It ends, unless it is a worker now."""
        self._channel.close()


class Spares:
    """So many of them. One that cannot be forked becomes the worker itself, and is replaced."""

    def __init__(self, count: int, command: Sequence[str], variables: Mapping[str, str]) -> None:
        """`variables`: of the environment, the same for all workers."""
        self._count, self._command = count, list(command)
        self._variables = dict(variables)
        self._waiting: list[_Spare] = []
        self._starts_at = 0.0

    def look(self) -> None:
        """Starts what is missing, one at a time; a spare that has ended by itself is not replaced,
        for the next one would end as well."""
        for spare in [spare for spare in self._waiting if spare.parent.poll() is not None]:
            self._waiting.remove(spare)
            spare.close()
            self._count -= 1
            print(
                f"[launch] a spare has ended by itself with exit code {spare.parent.returncode}; "
                "it is not replaced",
                file=sys.stderr,
                flush=True,
            )
        if len(self._waiting) >= self._count or time.monotonic() < self._starts_at:
            return
        self._starts_at = time.monotonic() + _PAUSE_S
        try:
            self._waiting.append(_Spare(self._command, self._variables))
        except OSError:
            self._count = 0

    def pids(self) -> set[int]:
        return {spare.parent.pid for spare in self._waiting}

    def is_ready(self) -> bool:
        return any(spare.is_ready() for spare in self._waiting)

    def is_importing(self) -> bool:
        """One will be ready, sooner than a process that is started now."""
        return bool(self._waiting) and not self.is_ready()

    def take(self, variables: Mapping[str, str]) -> Process | None:
        """A process that is the worker with these variables now; None where none is ready."""
        for spare in [spare for spare in self._waiting if spare.is_ready()]:
            worker = spare.become(variables)
            if worker is not None and spare.parent.poll() is None and worker != spare.parent:
                return worker
            self._waiting.remove(spare)
            spare.close()
            self._starts_at = time.monotonic() + _PAUSE_S
            if worker is not None:
                return worker
        return None

    def end(self) -> None:
        for spare in self._waiting:
            spare.parent.kill()
        for spare in self._waiting:
            spare.parent.wait()
            spare.close()
        self._waiting.clear()
