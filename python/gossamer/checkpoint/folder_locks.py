"""The folders that a job saves into, which no other job uses meanwhile."""

from __future__ import annotations

import os
from pathlib import Path
from weakref import WeakValueDictionary

from gossamer import _core


class _Held:
    """A lock that several of a process share."""

    def __init__(self, folder: Path, job: str) -> None:
        self.lock = _core.FolderLock(str(folder), "a job that saves with gossamer.Gossip", job)


_held: WeakValueDictionary[tuple[int, str], _Held] = WeakValueDictionary()


class FolderLocks:
    """Those of one Gossip."""

    def __init__(self) -> None:
        self._mine: dict[tuple[int, str], _Held] = {}

    def take(self, folder: Path, job: str = "") -> None:
        """Until ``release``. Raises IoError where another job has it, and says which. ``job``: its
        workers' common word, where one of them goes on for another one, which may hold it still."""
        place = (os.getpid(), str(folder.resolve()))
        held = self._mine.get(place) or _held.get(place) or _Held(folder, job)
        self._mine[place] = _held[place] = held

    def check(self) -> None:
        """Before anything is replaced. Raises IoError where another job has taken one over."""
        for held in self._mine.values():
            held.lock.check()

    def release(self) -> None:
        self._mine.clear()
