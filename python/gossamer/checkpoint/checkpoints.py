"""Checkpoints of all workers: a file for each, and a manifest that makes them one whole.

Note [Whole or not at all]: every worker writes a file of a new name. When all have, the lowest rank
of each host replaces the manifest, which keeps the former one beside it; when all of these have,
what the new manifest does not name is removed. So whenever a save is interrupted, there is on every
host a manifest with its files, and one that all hosts have, which is the one that load() takes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gossamer._core import IoError
from gossamer.base import files
from gossamer.checkpoint import rank_files, rank_means
from gossamer.checkpoint.folder_locks import FolderLocks
from gossamer.session.team import Team
from gossamer.step.carried import Carried
from gossamer.tensors import parameters
from gossamer.tensors.trained import Trained
from gossamer.workers.world import World, is_lowest_of_host, own_folder

_MANIFEST = "manifest.json"
_FORMER = "manifest-former.json"
_FORMAT = {"format": "gossip checkpoint", "version": 1}

_LARGEST_MANIFEST = 100_000_000  # it names every parameter

Manifest = dict[str, Any]


@contextlib.contextmanager
def _as_problem(problems: list[Exception], rank: int, what: str, path: Path) -> Iterator[None]:
    """Keeps an exception for the others to hear of; the system's with what, who and a remedy."""
    try:
        yield
    except OSError as error:
        text = str(error)
        if not isinstance(error, IoError):
            text = (
                f"[Gossip] rank {rank} could not {what} {path}, got {text}; look at the folder's "
                "rights, its disk and whether this host sees it"
            )
        problems.append(IoError(text))
    except Exception as error:
        problems.append(error)


def _about(trained: Trained) -> list[str]:
    """What has to be the same in a checkpoint that is loaded, a line each."""
    optimizer = f"optimizer {type(trained.optimizer).__name__}"
    return [optimizer, *parameters.describe(trained.model, trained.everything())]


def _found(world: World, folder: str | os.PathLike[str]) -> Path:
    """Where to read: this group's place, else what all ranks saved, else the only group's."""
    places = [own_folder(world, folder), Path(folder)]
    groups = list(Path(folder).glob("group*"))
    if len(groups) == 1:
        places += groups
    return next((place for place in places if (place / _MANIFEST).exists()), places[0])


# Saving.


def _taken(team: Team, trained: Trained, folders: FolderLocks, path: Path) -> list[str]:
    """The folder is this job's before any rank writes into it: another job removes what it does not
    know. Gives what has to be the same on all ranks."""
    problems: list[Exception] = []
    rank = team.session.world.rank
    with _as_problem(problems, rank, "use", path):
        path.mkdir(parents=True, exist_ok=True)
        if rank == 0:
            folders.take(path)
    if problems:
        raise problems[0]
    return _about(trained)


def save(
    team: Team,
    trained: Trained,
    carried: Carried,
    folders: FolderLocks,
    folder: str | os.PathLike[str],
) -> None:
    """See Gossip.save. What is ``carried`` is read in here."""
    team.refuse_inside("save()")
    trained.refuse_shards("save()")
    world, step = team.session.world, team.engine.steps_done
    path = own_folder(world, folder)
    taken = partial(_taken, team, trained, folders, path)
    team.agree("save()", taken, compares_steps=True)
    tell = partial(team.exchange, "save()")
    name = f"rank{world.rank}-{uuid.uuid4().hex}.safetensors"
    problems: list[Exception] = []
    card: dict[str, Any] = {"rank": world.rank, "name": name}
    with _as_problem(problems, world.rank, "write", path / name):
        content = rank_files.collect(
            trained.model, trained.optimizer, trained.everything(), carried.sent
        )
        row = team.session.row(trained.rule)
        for (vector, i), values in carried.state.items():
            content.put(rank_files.pattern_key(row.name, vector, i), values)
        rank_files.write(path / name, content)
        del content
        card["bytes"] = (path / name).stat().st_size
        card["sha256"] = rank_files.sha256_of(path / name)
    try:
        cards = tell(card=card, problem=next(iter(problems), None))
    except Exception:
        with contextlib.suppress(OSError):
            (path / name).unlink(missing_ok=True)
        raise
    old: list[Path] = []
    if is_lowest_of_host(world):
        manifest = {**_FORMAT, **_described(trained, step, carried, cards)}
        with _as_problem(problems, world.rank, "replace", path / _MANIFEST):
            folders.check()
            _replace_manifest(path, _seal(manifest))
            old = _unnamed(path, {card["name"] for card in cards})
    tell(card={}, problem=next(iter(problems), None))
    for file in old:  # nobody has begun another save yet when this list was made
        _remove(file, world.rank)
    team.engine.barrier()  # all have read the cards: whose process holds them may end now


def _remove(file: Path, rank: int) -> None:
    """An old file that stays is a warning: the next save tries again."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        warnings.warn(
            f"[Gossip] rank {rank} could not remove {file} of an earlier save, got {error}; the "
            "next save tries again",
            RuntimeWarning,
            stacklevel=4,
        )


def _described(
    trained: Trained, step: int, carried: Carried, cards: list[dict[str, Any]]
) -> Manifest:
    keys = ("rank", "name", "bytes", "sha256")
    return {
        "step": step,
        "losses": carried.losses,
        "workers": len(cards),
        "model": _about(trained),
        "files": [{key: card[key] for key in keys} for card in cards],
    }


def _replace_manifest(path: Path, text: str) -> None:
    now = path / _MANIFEST
    if now.exists():
        former = files.read_bytes(now, _LARGEST_MANIFEST).decode()
        files.write_whole(path / _FORMER, former, is_synced=True)
    files.write_whole(now, text, is_synced=True)


def _unnamed(path: Path, names: set[str]) -> list[Path]:
    """What earlier saves left."""
    left = [path / _FORMER]
    for pattern in ("rank*-*.tmp", "manifest*.tmp", ".manifest*.tmp"):
        left += path.glob(pattern)
    return left + [each for each in path.glob("rank*-*.safetensors") if each.name not in names]


def _seal(manifest: Manifest) -> str:
    """The manifest's text, with a checksum of itself."""
    digest = hashlib.sha256(json.dumps(manifest).encode()).hexdigest()
    return json.dumps({**manifest, "sha256": digest}, indent=1) + "\n"


# Loading.


def load(team: Team, trained: Trained, folder: str | os.PathLike[str]) -> tuple[int, Carried]:
    """See Gossip.load; what is under way has to be started anew.

    Returns the step to start at, and what to go on from.
    """
    team.refuse_inside("load()")
    trained.refuse_shards("load()")
    team.agree("load()")
    world = team.session.world
    path = _found(world, folder)
    tell = partial(team.exchange, "load()")
    problems: list[Exception] = []
    found: dict[str, Manifest] = {}
    with _as_problem(problems, world.rank, "read", path):
        found = _manifests(path, world.rank)
    cards = tell(card={"found": list(found)}, problem=next(iter(problems), None))
    common = [each for each in cards[0]["found"] if all(each in c["found"] for c in cards)]
    if not common:
        raise ValueError(
            f"[Gossip] rank {world.rank}: the hosts have different checkpoints in {path}; copy one "
            "of them, manifest and files, to all hosts"
        )
    manifest = found[common[0]]
    names = [path / file["name"] for file in manifest["files"]]
    is_same_size = manifest["workers"] == world.size
    means: rank_means.Means | None = None
    with _as_problem(problems, world.rank, "read", path):
        _check_model(trained, manifest, path, world.rank)
        for file in manifest["files"]:
            if not is_same_size or file["rank"] == world.rank:
                _check_file(path / file["name"], file, world.rank)
        if not is_same_size:
            means = rank_means.means_of(names)
    tell(card={}, problem=next(iter(problems), None))
    team.engine.quiesce()  # nothing may travel while it changes
    put = partial(
        rank_files.restore,
        model=trained.model,
        optimizer=trained.optimizer,
        named=trained.everything(),
    )
    carried = Carried()
    with _as_problem(problems, world.rank, "read", path):  # the others hear of it, and do not wait
        if means is not None:
            put(means.document, means.read)
        else:
            with rank_files.opened(names[world.rank]) as (document, file):
                put(document, file.get_tensor)
                carried = _carried(team, trained, file)
    tell(card={}, problem=next(iter(problems), None))
    losses = [(int(at), float(loss)) for at, loss in manifest.get("losses", [])]
    return int(manifest["step"]), carried._replace(losses=losses)


def _carried(team: Team, trained: Trained, file: Any) -> Carried:
    """State of another pattern is left where it is."""
    keys = set(file.keys())
    row, numbers = team.session.row(trained.rule), range(len(trained.everything()))
    sent = {i: f"sent/{i}" for i in numbers}
    state = {
        (name, i): rank_files.pattern_key(row.name, name, i)
        for name in row.kept_state
        for i in numbers
    }
    return Carried(
        {i: file.get_tensor(key) for i, key in sent.items() if key in keys},
        {which: file.get_tensor(key) for which, key in state.items() if key in keys},
    )


def _manifests(path: Path, rank: int) -> dict[str, Manifest]:
    """The manifest, and the former one that an interrupted save left, by their checksums."""
    found: dict[str, Manifest] = {}
    problems: list[Exception] = []
    for name in (_MANIFEST, _FORMER):
        with _as_problem(problems, rank, "read", path / name):
            manifest = files.parse_json(_sound(path / name, rank))
            found[manifest["sha256"]] = manifest
    if not found:
        raise problems[0]
    return found


def _sound(path: Path, rank: int) -> str:
    """The text of a manifest that is what it was when it was written."""
    text = files.read_bytes(path, _LARGEST_MANIFEST).decode(errors="replace")
    manifest: Any = None
    with contextlib.suppress(ValueError):
        manifest = files.parse_json(text)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("sha256"), str):
        manifest = {}
    kept = {key: value for key, value in manifest.items() if key != "sha256"}
    if not _is_whole(kept) or _seal(kept) != text:
        raise IoError(
            f"[Gossip] rank {rank}: the manifest {path} is damaged, or of something else, got "
            f"{len(text)} characters; take another checkpoint"
        )
    if kept["version"] != _FORMAT["version"]:
        raise ValueError(
            f"[Gossip] rank {rank}: {path} must be a {_FORMAT['format']} of version "
            f"{_FORMAT['version']}, got {files.printable(kept.get('format'))} of version "
            f"{files.printable(kept.get('version'))}; "
            "load it with the release that saved it"
        )
    return text


def _is_whole(kept: Manifest) -> bool:
    """Whether it has what a manifest of this format has, in any version."""
    if any(key not in kept for key in _FORMAT) or kept["format"] != _FORMAT["format"]:
        return False
    if kept["version"] != _FORMAT["version"]:
        return True
    model, cards, losses = kept.get("model"), kept.get("files"), kept.get("losses", [])
    return (
        all(type(kept.get(key)) is int for key in ("step", "workers"))
        and isinstance(model, list)
        and isinstance(cards, list)
        and len(cards) == kept["workers"]
        and all(_is_card(card, rank) for rank, card in enumerate(cards))
        and isinstance(losses, list)
        and all(isinstance(each, list) and len(each) == 2 for each in losses)
    )


def _is_card(card: Any, rank: int) -> bool:
    return (
        isinstance(card, dict)
        and card.get("rank") == rank
        and type(card.get("bytes")) is int
        and isinstance(card.get("sha256"), str)
        and isinstance(card.get("name"), str)
        and Path(card["name"]).name == card["name"]
    )


def _check_model(trained: Trained, manifest: Manifest, path: Path, rank: int) -> None:
    for saved, here in zip_longest(manifest["model"], _about(trained), fillvalue="nothing"):
        if saved != here:
            raise ValueError(
                f"[Gossip] rank {rank}: the checkpoint {path} is of another model "
                f"or optimizer: it has {files.printable(saved)}, got {here}; build what it was "
                "saved from, or load a checkpoint of this"
            )


def _check_file(path: Path, file: dict[str, Any], rank: int) -> None:
    """Raises IoError for a file that is not there or not what the manifest says."""
    remedy = "; copy it again from where it was saved, or take another checkpoint"
    if not path.exists():
        raise IoError(
            f"[Gossip] rank {rank}: the file of rank {file['rank']} is missing, got no {path}; "
            "with another number of workers every host must see the files of all ranks"
        )
    size = path.stat().st_size
    if size != file["bytes"]:
        raise IoError(
            f"[Gossip] rank {rank}: {path} must have {file['bytes']} bytes, got {size}{remedy}"
        )
    digest = rank_files.sha256_of(path)
    if digest != file["sha256"]:
        raise IoError(
            f"[Gossip] rank {rank}: {path} must have the sha256 {file['sha256'][:16]}…, got "
            f"{digest[:16]}…{remedy}"
        )
