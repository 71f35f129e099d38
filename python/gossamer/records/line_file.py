"""metrics.rank*.jsonl: the lines of one worker in a file, as `gossamer train` writes it."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gossamer._core import IoError
from gossamer.base import files
from gossamer.records import tracing
from gossamer.workers.world import World, own_folder

_encode = json.JSONEncoder(allow_nan=False).encode  # json.dumps would make one for each line


class LineFile:
    """A file that cannot be begun is an IoError; one that cannot be gone on with is a warning, and
    ends there: it must not cost what is being trained. Rank 0 says in run.toml what the run is."""

    def __init__(self, folder: str | os.PathLike[str], world: World, recipe: str) -> None:
        self._path = own_folder(world, folder) / f"metrics.rank{world.rank}.jsonl"
        self._rank = world.rank
        self._recipe = recipe
        self._file: Any = None
        self._has_ended = False
        self._first = 0  # steps of an earlier part of the run, whose lines stay

    def write(self, line: Mapping[str, Any]) -> None:
        """Adds the line."""
        if self._has_ended:
            return
        text = _encode(line) + "\n"
        try:
            if self._file is None:
                self._open()
        except OSError as error:
            raise IoError(
                f"[Gossip] rank {self._rank} could not write its metrics to {self._path}, got "
                f"{error}; look at the folder's rights and its disk, or leave metrics out"
            ) from error
        try:
            self._file.write(text.encode())
        except OSError as error:
            self._has_ended = True
            warnings.warn(
                f"[Gossip] rank {self._rank}: the metrics in {self._path} end before step "
                f"{line['step']}, got {error}; the run goes on without them, look at the disk",
                RuntimeWarning,
                stacklevel=2,
            )

    def restart(self, step: int) -> None:
        """The run goes on after so many steps: lines of later ones go with the next line."""
        self._first = step
        self.close()

    def close(self) -> None:
        """No more lines for now."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def _open(self) -> None:
        """Keeps what an earlier part of the run wrote."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._rank == 0:
            tracing.write_recipe(self._path.parent, self._recipe)
        kept = [line for line in _lines(self._path) if _step_of(line) <= self._first]
        files.write_whole(self._path, "".join(kept))
        self._file = self._path.open("ab", buffering=0)


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    text = files.read_bytes(path, files.LARGEST).decode(errors="replace")
    return text.splitlines(keepends=True)


def _step_of(line: str) -> float:
    """Infinity for what is no whole line of a step."""
    try:
        step = float(files.parse_json(line)["step"]) if line.endswith("\n") else math.inf
        return step if step > 0 else math.inf
    except (ValueError, TypeError, KeyError, OverflowError):
        return math.inf
