"""Processes that have imported torch already, and wait to become a worker that is lost."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_WITH_A_VALUE = ("-W", "-X")
_PAUSE_S = 1.0  # a worker that has just come back needs the processors more


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


class Spares:
    """So many of them, each replaced a while after it was taken."""

    def __init__(self, count: int, command: Sequence[str], variables: Mapping[str, str]) -> None:
        """`variables`: of the environment, the same for all workers."""
        self._count, self._command = count, list(command)
        self._variables = dict(variables)
        self._waiting: list[subprocess.Popen[bytes]] = []
        self._starts_at = 0.0

    def look(self) -> None:
        """Starts what is missing, one at a time; a spare that has ended by itself is not replaced,
        for the next one would end as well."""
        if len(self._waiting) >= self._count or time.monotonic() < self._starts_at:
            return
        self._starts_at = time.monotonic() + _PAUSE_S
        try:
            spare = subprocess.Popen(
                self._command,
                env={**os.environ, **self._variables},
                stdin=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError:
            self._count = 0
            return
        self._waiting.append(spare)

    def take(self, variables: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
        """One that is the worker with these variables from now on; None where there is none."""
        while self._waiting:
            spare = self._waiting.pop(0)
            self._starts_at = time.monotonic() + _PAUSE_S
            if spare.poll() is not None:
                self._count -= 1
                print(
                    f"[launch] a spare has ended by itself with exit code {spare.returncode}; it "
                    "is not replaced",
                    file=sys.stderr,
                    flush=True,
                )
                continue
            assert spare.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                spare.stdin.write(json.dumps(dict(variables)).encode())
                spare.stdin.close()
            return spare
        return None

    def end(self) -> None:
        for spare in self._waiting:
            spare.kill()
        for spare in self._waiting:
            spare.wait()
        self._waiting.clear()
