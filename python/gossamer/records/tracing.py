"""What a Gossip leaves for Perfetto and `gossamer report`: its last steps, moment by moment."""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from pathlib import Path

from gossamer import _core
from gossamer._core import IoError
from gossamer.base import files
from gossamer.session.session import Session
from gossamer.workers.world import World, is_lowest_of_host, own_folder

_MARK = "# Written by gossamer.Gossip for `gossamer report`.\n"


def prepare_folder(name: str, folder: str | os.PathLike[str] | None) -> None:
    """Makes the folder where there is to be a trace, or metrics, so that it fails at the start and
    not at the end. Raises IoError."""
    if folder is None:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IoError(
            f"[Gossip] the folder of the {name} cannot be made, got {error}; give {name}= another "
            "one"
        ) from error


class Trace:
    """Of one worker; all of it does nothing where ``folder`` is None. ``recipe``: see below."""

    def __init__(
        self, folder: str | os.PathLike[str] | None, steps: int, world: World, recipe: str
    ) -> None:
        self.recorder: _core.Recorder | None = None
        if folder is None:
            return
        self._rank, self._hosts = world.rank, world.workers_per_host
        self._recipe = recipe
        self.recorder = _core.Recorder(world.rank, steps)
        self._folder = own_folder(world, folder)
        self._process = os.getpid()
        if is_lowest_of_host(world, range(world.size)):
            with contextlib.suppress(OSError):  # then writing says it
                self._folder.mkdir(exist_ok=True)
            _core.remove_traces(str(self._folder))

    def resume(self) -> None:
        """What was done until now belongs to no step."""
        if self.recorder is not None:
            self.recorder.resume()

    def write(self) -> None:
        """Writes the file of this rank; rank 0 also what the run was. A failure is a warning: it
        must not cost what has been trained."""
        if self.recorder is None or os.getpid() != self._process:
            return
        try:
            self.recorder.write(str(self._folder), self._rank, self._hosts)
            if self._rank == 0:
                write_recipe(self._folder, self._recipe)
        except OSError as error:
            warnings.warn(
                f"[Gossip] rank {self._rank} could not write its trace: {error}",
                RuntimeWarning,
                stacklevel=3,
            )


def recipe(session: Session, optimizer: str) -> str:
    """What runs are compared by, as in the run.toml of `gossamer train`."""
    workers = session.world.workers_per_host
    is_even = len(set(workers)) == 1
    per_host = str(workers[0]) if is_even else ",".join(map(str, workers))
    algorithm = {**method(session, optimizer), "lost": session.settings.lost}
    lines = ["[cluster]", f"hosts = {len(workers)}", f"per_host = {json.dumps(per_host)}"]
    lines += ["[algorithm]", *(f"{key} = {json.dumps(value)}" for key, value in algorithm.items())]
    return _MARK + "\n".join(lines) + "\n"


def method(session: Session, optimizer: str) -> dict[str, str]:
    """What every step does, by the words of a recipe."""
    settings = session.settings
    is_allreduce = settings.pattern == "allreduce"
    return {
        "topology": "complete" if is_allreduce else settings.topology_name,
        "pattern": settings.pattern,
        "optimizer": optimizer,
        "codec": settings.codec,
        "update": settings.update,
        "late": settings.late,
    }


def write_recipe(folder: Path, text: str) -> None:
    """The folder's run.toml, whole or not at all, and not in place of somebody else's."""
    path = folder / "run.toml"
    if path.exists():
        with files.opened(path) as file:
            if file.read(len(_MARK)) != _MARK.encode():
                return
    files.write_whole(path, text)
