"""Processes that a launcher waits for: its own, and those that a spare has forked for it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Set
from typing import Protocol

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <sys/prctl.h>
_NAP_S = 0.02


class Process(Protocol):
    """What both kinds have, as subprocess.Popen has it."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...


class Forked:
    """A process that another one has forked and left to this one, see adopt_orphans()."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, minus the signal that ended it; None while it runs."""
        if self._code is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        limit = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if limit is not None and time.monotonic() > limit:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(_NAP_S)
        return code


def adopt_orphans() -> None:
    """Whoever descends from this process is its child from when its own parent has ended."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def bury_orphans(known: Set[int]) -> None:
    """Collects those that have ended and are none of the known processes, whose end others look at:
    data loaders of a killed worker, and in a container, where this is the first process, all."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in known:
            return
        os.waitpid(ended.si_pid, os.WNOHANG)
