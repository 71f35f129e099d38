"""Saves all workers: a file for each, and a manifest that makes them one whole.

See Note [Whole or not at all] in gossamer/checkpoint/save.h. What is done there in steps is done
here by all workers together: nobody begins a step before all have ended the one before.
"""

from __future__ import annotations

import secrets
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from gossamer import _core
from gossamer._core import IoError
from gossamer.checkpoint import worker_file
from gossamer.checkpoint.folder_locks import FolderLocks
from gossamer.checkpoint.problems import as_problem, together
from gossamer.session.team import Team
from gossamer.step.carried import Carried
from gossamer.tensors import shards
from gossamer.tensors.trained import Trained
from gossamer.workers.world import is_lowest_of_host, ranks_of_host

_ATTEMPTS = 3


def save(
    team: Team,
    trained: Trained,
    carried: Carried,
    folders: FolderLocks,
    path: Path,
    keep: int,
) -> None:
    """See Gossip.save, which refuses blocks. What is ``carried`` is read in here."""
    shards.reshard(trained.model)
    with together(trained.tensors, team.session.world.copies, "save"):
        for again in range(_ATTEMPTS):
            try:
                begun = _saved(team, trained, carried, folders, path, keep)
                break
            except _FewerError:
                if again == _ATTEMPTS - 1:
                    raise
    begun.prune(keep)
    with team.within("save()"):
        team.engine.barrier()  # all have read the cards: whose process holds them may end now


class _FewerError(IoError):
    """A worker was lost in the middle, so that its file is not there, or in nobody's list."""


def _saved(
    team: Team, trained: Trained, carried: Carried, folders: FolderLocks, path: Path, keep: int
) -> _Begun:
    if team.session.settings.lost == "go_on":
        team.exchange("save()", {})  # who is present
    taken = partial(_taken, team, trained, folders, path, keep)
    team.agree("save()", taken, compares_steps=True)
    first = team.exchange("save()", {"attempt": secrets.token_hex(8), "created": now()})[0]
    begun = _Begun(team, path, first["attempt"])
    try:
        begun.begin(folders)
        files = begun.write(trained, carried)
        begun.commit(described(team, trained, carried, first["created"], files), folders)
    except Exception:
        begun.abandon()
        raise
    return begun


def _taken(team: Team, trained: Trained, folders: FolderLocks, path: Path, keep: int) -> list[str]:
    """The folder is this job's before any rank writes into it: another job removes what it does not
    know. Gives what has to be the same on all ranks."""
    if not isinstance(keep, int) or keep < 1:
        raise ValueError(
            f"[Gossip] save() must keep at least 1 checkpoint, got {keep!r}; the newest is always "
            "kept"
        )
    problems: list[Exception] = []
    rank = team.session.world.rank
    with as_problem(problems, rank, "use the folder"):
        if rank == min(team.present):
            path.mkdir(parents=True, exist_ok=True)
            folders.take(path, _job_of(team))
    if problems:
        raise problems[0]
    return [f"keep {keep}", worker_file.optimizer_word(trained), *worker_file.model_lines(trained)]


def _job_of(team: Team) -> str:
    """Where workers go on for each other; empty: one of them has the folder from start to end."""
    transport = team.session.transport
    if transport is None or team.session.settings.lost != "go_on":
        return ""
    return transport.job


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def described(
    team: Team, trained: Trained, carried: Carried, created: str, files: list[tuple[int, int]]
) -> _core.Manifest:
    return _core.Manifest(
        step=team.engine.steps_done,
        created=created,
        optimizer=worker_file.optimizer_word(trained),
        pattern=team.session.settings.pattern,
        model=worker_file.model_lines(trained),
        groups=len(trained.optimizers.param_groups),
        losses=carried.losses,
        files=files,
    )


class _Begun:
    """One worker's part of a save under way. Its methods are collective, but for ``abandon``."""

    def __init__(self, team: Team, path: Path, attempt: str) -> None:
        self._team = team
        self._world = team.session.world
        self._path = str(path)
        self._attempt = attempt
        self._present = list(team.present)
        step = team.engine.steps_done
        self._temporary = _core.temporary_checkpoint(self._path, step, attempt)
        self._commits = False
        self._is_alone = False  # as the one who commits

    def begin(self, folders: FolderLocks) -> None:
        problems: list[Exception] = []
        with as_problem(problems, self._world.rank, "begin a checkpoint"):
            folders.check()
            if is_lowest_of_host(self._world, self._present):
                step = self._team.engine.steps_done
                _, self._commits = _core.begin_checkpoint(self._path, step, self._attempt)
        cards = self._tell(problems, {"commits": self._commits})
        committers = sum(card["commits"] for card in cards)
        self._is_alone = committers == 1
        if committers == 0:
            raise IoError(
                f"[Gossip] rank {self._world.rank}: nobody has made {self._temporary}, which was "
                "there; look at the disk, and whether its folders can be made at all"
            )

    def write(self, trained: Trained, carried: Carried) -> list[tuple[int, int]]:
        """Length and checksum of the files of all ranks."""
        problems: list[Exception] = []
        written = (0, 0)
        with as_problem(problems, self._world.rank, "write its file"):
            pattern = self._team.session.row(trained.rule).name
            content = worker_file.collect(trained, carried, pattern)
            place = self._present.index(self._world.rank)
            written = content.write(self._temporary, place)
        cards = self._tell(problems, {"written": written})
        return [(int(card["written"][0]), int(card["written"][1])) for card in cards]

    def commit(self, manifest: _core.Manifest, folders: FolderLocks) -> None:
        problems: list[Exception] = []
        if self._commits:
            here = [] if self._is_alone else self._places_here()
            with as_problem(problems, self._world.rank, "commit the checkpoint"):
                folders.check()
                _core.commit_checkpoint(self._temporary, self._path, manifest, here)
        self._tell(problems, {})

    def abandon(self) -> None:
        if self._commits:
            _core.abandon_checkpoint(self._temporary)

    def prune(self, keep: int) -> None:
        """An old checkpoint that stays is a warning: the next save tries again."""
        if not self._commits:
            return
        try:
            _core.prune_checkpoints(self._path, keep)
        except IoError as error:
            warnings.warn(
                f"[Gossip] rank {self._world.rank} could not remove an earlier checkpoint, which "
                f"the next save tries again: {error}",
                RuntimeWarning,
                stacklevel=4,
            )

    def _places_here(self) -> list[int]:
        """Of the files that workers of this host have written."""
        here = ranks_of_host(self._world)
        return [place for place, rank in enumerate(self._present) if rank in here]

    def _tell(self, problems: list[Exception], card: dict[str, Any]) -> list[dict[str, Any]]:
        cards = self._team.exchange("save()", card, next(iter(problems), None))
        if self._team.present != self._present:
            raise _FewerError(
                f"[Gossip] rank {self._world.rank}: workers were lost in save(), which left "
                f"{len(self._team.present)} of {len(self._present)}; nothing of it counts, save "
                "again"
            )
        return cards
