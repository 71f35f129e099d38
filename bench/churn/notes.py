"""What the workers write down while they train, a line of JSON each, and how it is read."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any


class Notes:
    """Of one process, which is the worker of this rank from now on."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._file: IO[str] = (folder / f"notes-{rank}.jsonl").open("a")
        self._enough = folder / "enough"
        self._add(what="imported", pid=os.getpid())

    def step(self, step: int) -> None:
        """The worker has done so many steps, its last one just now."""
        self._add(step=step)

    def among(self, after: int, ranks: Sequence[int]) -> None:
        """After this step the topology is formed anew among these."""
        self._add(after=after, among=list(ranks))

    def apart(self, after: int, apart: float) -> None:
        """How far all workers are apart after this step."""
        self._add(after=after, apart=apart)

    def loss(self, loss: float) -> None:
        """Of the average over all workers, on what nobody trains with."""
        self._add(loss=loss)

    def is_enough(self, step: int) -> bool:
        """Now, or after the step that all end with."""
        if not self._enough.exists():
            return False
        return step >= int(self._enough.read_text() or 0)

    def _add(self, **what: Any) -> None:
        self._file.write(json.dumps({"at": time.monotonic(), **what}) + "\n")
        self._file.flush()


def end_all(folder: Path, step: int = 0) -> None:
    """All end; with a step, together after it."""
    (folder / "new").write_text(str(step))
    (folder / "new").rename(folder / "enough")


def read(folder: Path, rank: int) -> list[dict[str, Any]]:
    """A killed process may have left half a line, to which the next one adds its first."""
    path = folder / f"notes-{rank}.jsonl"
    found: list[dict[str, Any]] = []
    for line in path.read_text().split("\n") if path.exists() else []:
        begin = line.rfind('{"at"')
        try:
            found.append(json.loads(line[max(begin, 0) :]))
        except json.JSONDecodeError:
            continue
    return found
