"""The folders that a job saves into, which no other job uses meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path
from weakref import WeakValueDictionary

from gossamer import _core

_PATIENCE_S = 1.0
"""So long the system may take to give back the lock of a worker that was killed: its connections
may end before, and whoever goes on without it is here then."""


def _lock(folder: Path) -> _core.FolderLock:
    limit = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _core.FolderLock(str(folder), "a job that saves with gossamer.Gossip")
        except _core.IoError:
            if time.monotonic() > limit:
                raise
        time.sleep(0.02)


class _Held:
    """A lock that several of a process share."""

    def __init__(self, folder: Path) -> None:
        self.lock = _lock(folder)


_held: WeakValueDictionary[tuple[int, str], _Held] = WeakValueDictionary()


class FolderLocks:
    """Those of one Gossip."""

    def __init__(self) -> None:
        self._mine: dict[tuple[int, str], _Held] = {}

    def take(self, folder: Path) -> None:
        """Until ``release``. Raises IoError where another job has it, and says which."""
        place = (os.getpid(), str(folder.resolve()))
        held = self._mine.get(place) or _held.get(place) or _Held(folder)
        self._mine[place] = _held[place] = held

    def check(self) -> None:
        """Before anything is replaced. Raises IoError where another job has taken one over."""
        for held in self._mine.values():
            held.lock.check()

    def release(self) -> None:
        self._mine.clear()
