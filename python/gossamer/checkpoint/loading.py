"""Goes on from what all workers have saved.

The hosts tell each other which checkpoints they have, for each may have a disk of its own, and take
the newest that all have. Nothing is changed on any rank before all have found what they need.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import torch

from gossamer import _core
from gossamer._core import IoError
from gossamer.checkpoint import worker_file
from gossamer.checkpoint.problems import as_problem, together
from gossamer.checkpoint.worker_file import Restored, Source, WorkerFile, understood
from gossamer.checkpoint.worker_means import means_of
from gossamer.session.session import Session
from gossamer.session.team import Team
from gossamer.step.carried import Carried
from gossamer.tensors import beside, shards
from gossamer.tensors.trained import Trained
from gossamer.workers.world import World, own_folder

_Which = tuple[int, int]
"""Step and checksum, which are the same on all hosts that have the same checkpoint."""

_Checkpoint = tuple[str, _core.Manifest]
"""Its path, and what it says of itself."""

_Checkpoints = dict[_Which, _Checkpoint]


def load(team: Team, trained: Trained, folder: str | os.PathLike[str]) -> tuple[int, Carried]:
    """See Gossip.load; what is under way has to be started anew.

    Returns the step to start at, and what to go on from.
    """
    team.refuse_inside("load()")
    shards.reshard(trained.model)
    mates = (trained.tensors, team.session.world.copies)
    problems: list[Exception] = []
    there = _there(team, trained, folder, problems)
    with together(*mates, "load"):
        found, step, carried = _looked_into(team, trained, _newest(team, folder, there, problems))
    with team.within("load()"):
        team.engine.quiesce()  # nothing may travel while it changes
    with together(*mates, "load"):
        with as_problem(problems, team.session.world.rank, "load the checkpoint"):
            found.put(trained.optimizers)
            shards.reshard(trained.model)
        # The others hear of it, and do not wait.
        team.exchange("load()", {}, next(iter(problems), None))
    return step, carried


def _looked_into(
    team: Team, trained: Trained, checkpoint: _Checkpoint
) -> tuple[Restored, int, Carried]:
    """What is to be put in place, which fits on all ranks, and what ``load`` returns."""
    world = team.session.world
    path, manifest = checkpoint
    problems: list[Exception] = []
    with as_problem(problems, world.rank, "load the checkpoint"):
        check_model(trained, manifest)
        source = _source(world, path, manifest)
        _check_beside(trained, source)
        with understood(path):
            found = worker_file.restored(source, trained)
            check_state(trained, found)
            carried = carried_in(team.session, trained, source, Carried(losses=manifest.losses))
    team.exchange("load()", {}, next(iter(problems), None))
    return found, manifest.step, carried


# Which checkpoint.


def _there(
    team: Team, trained: Trained, folder: str | os.PathLike[str], problems: list[Exception]
) -> _Checkpoints:
    """The checkpoints here, of steps that are there for all shards, or copies. Collective over
    these."""
    world = team.session.world
    found: _Checkpoints = {}
    with as_problem(problems, world.rank, "find a checkpoint"):
        found = _found(world, folder)
    steps = shards.said_by_all([step for step, _ in found], trained.tensors, world.copies)
    common = {which: at for which, at in found.items() if all(which[0] in each for each in steps)}
    if found and not common:
        problems.append(
            IoError(
                f"[Gossip] rank {world.rank}: no step in {folder} has been saved for all shards or "
                "copies of the model; copy the folders of all groups of ranks to all hosts"
            )
        )
    return common


def _newest(
    team: Team,
    folder: str | os.PathLike[str],
    found: _Checkpoints,
    problems: list[Exception],
) -> _Checkpoint:
    """That all workers have. Collective."""
    team.agree("load()")
    cards = team.exchange("load()", {"found": list(found)}, next(iter(problems), None))
    orders = [[(int(step), int(checksum)) for step, checksum in c["found"]] for c in cards]
    common = next((each for each in orders[0] if all(each in order for order in orders)), None)
    if common is None:
        raise ValueError(
            f"[Gossip] rank {team.session.world.rank}: the hosts have different checkpoints in "
            f"{folder}; copy one of them, manifest and files, to all hosts"
        )
    return found[common]


def _found(world: World, folder: str | os.PathLike[str]) -> _Checkpoints:
    """The checkpoints here whose manifests are sound, the newest first. IoError where the newest is
    not: what is lost by an older one is for the user to say."""
    found: _Checkpoints = {}
    paths = _paths(world, Path(folder))
    for path in paths:
        try:
            manifest = _core.read_checkpoint(path)
        except IoError:
            if path == paths[0]:
                raise
            continue
        found.setdefault((manifest.step, manifest.checksum), (path, manifest))
    if not found:
        raise IoError(
            f"[Gossip] rank {world.rank} could not find a checkpoint in {folder}, got none with a "
            "manifest.json; look at the path, and whether this host sees it"
        )
    return found


def _paths(world: World, folder: Path) -> list[str]:
    """In this group's place, else in what all ranks saved, else in the only group's; or the one
    checkpoint that ``folder`` is."""
    places = [own_folder(world, folder), folder]
    groups = list(folder.glob("group*"))
    if len(groups) == 1:
        places += groups
    for place in places:
        paths = _core.checkpoints_in(str(place))
        if paths:
            return paths
        if (place / "manifest.json").exists():
            return [str(place)]
    return []


# What is in it.


def check_model(trained: Trained, manifest: _core.Manifest) -> None:
    manifest.require_same_model(
        worker_file.optimizer_word(trained), worker_file.model_lines(trained)
    )
    groups = len(trained.optimizers.param_groups)
    if manifest.groups not in (0, groups):
        raise ValueError(
            f"the checkpoint is of an optimizer with {manifest.groups} groups of parameters, got "
            f"one with {groups}; make the groups as they were when it was saved"
        )


def _check_beside(trained: Trained, source: Source) -> None:
    there = {*source.keys()}
    for key, _ in worker_file.beside_tensors(trained):
        if key not in there:
            raise ValueError(
                f"the checkpoint has no {key}, which mix_state has now; load it with the mix_state "
                "that it was saved with"
            )


def _source(world: World, path: str, manifest: _core.Manifest) -> Source:
    if manifest.workers != world.size:
        return means_of(path, manifest)
    file = _core.open_worker_file(path, manifest, world.rank)
    with understood(path):
        return WorkerFile(file)


def check_state(trained: Trained, found: Restored) -> None:
    """What a fused optimizer keeps must be what the engine, or torch's own step, can take."""
    rule = trained.kept
    if rule is None:
        return
    for parameter, entry in found.state:
        for vector in rule.state:
            value = entry.get(vector)
            if value is not None and value.shape != parameter.shape:
                raise ValueError(
                    f"{vector} of {list(value.shape)} for a parameter of {list(parameter.shape)}"
                )
        if rule.counts and "step" in entry:
            int(entry["step"])


def carried_in(session: Session, trained: Trained, source: Source, carried: Carried) -> Carried:
    """State of another pattern is left where it is, and there is none in the means over workers."""
    keys, row = set(source.keys()), session.row(trained.rule)
    mixed, state = {}, {}
    for name, parameter in _mixed(trained):
        key = _core.mixed_key(name)
        if key in keys:
            mixed[name] = _real_like(parameter, key, source)
    for name, parameter, _ in trained.everything():
        for vector in row.kept_state:
            key = _core.pattern_key(row.name, vector, name)
            if key in keys:
                state[vector, name] = _real_like(parameter, key, source)
    return carried._replace(mixed=mixed, state=state)


def _mixed(trained: Trained) -> Iterator[tuple[str, torch.Tensor]]:
    """What is mixed once all is loaded; an entry of state with the parameter that it is like."""
    for name, parameter, _ in trained.everything():
        yield name, parameter
        for key in trained.wanted.names:
            yield beside.title(key, name), parameter
    for name, tensor, _ in trained.wanted.given:
        yield name, tensor


def _real_like(parameter: torch.Tensor, key: str, source: Source) -> torch.Tensor:
    """Of what is here of the parameter."""
    found, here = source.tensor(key), shards.local_of(parameter)
    wanted = (*here.shape, 2) if here.is_complex() else tuple(here.shape)
    if tuple(found.shape) != wanted:
        raise ValueError(f"{key} of {list(found.shape)} for {list(wanted)}")
    return found
