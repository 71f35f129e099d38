"""State from a neighbour: what a worker that comes back is given by one that is there.

It is a checkpoint of one worker, which travels instead of lying on a disk: what can be saved can be
handed over, with the same bits.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from gossamer import _core
from gossamer.checkpoint import loading, saving, worker_file
from gossamer.checkpoint.worker_file import WorkerFile, understood
from gossamer.session.session import Session, begin
from gossamer.session.settings import Settings
from gossamer.session.team import Team
from gossamer.step.back import Back
from gossamer.step.carried import Carried
from gossamer.step.run import Run
from gossamer.tensors import trained
from gossamer.tensors.trained import Trained
from gossamer.workers import members
from gossamer.workers.world import World

_MANIFEST, _FILE = "manifest.json", "worker-00000.safetensors"
_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 60.0  # between tries of one that comes back
_REFUSAL_S = 2.0  # of one that had no state to give
_BESIDE_BYTES = 1 << 20  # of manifest and heads, at most
_HEAD = 8  # bytes of the length of each part before the file


class Refusals:
    """How long this worker, which had no state to give, does not try again: a worker that comes
    back asks every few seconds, and what is packed in vain costs time."""

    def __init__(self) -> None:
        self._until_s = 0.0
        self._pause_s = _REFUSAL_S

    def is_on(self, now_s: float) -> bool:
        return now_s < self._until_s

    def add(self, now_s: float) -> None:
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        self._until_s = now_s + self._pause_s


_refusals: WeakKeyDictionary[Run, Refusals] = WeakKeyDictionary()


def give(run: Run) -> None:
    """Between two steps: to all who wait for it. They alone wait for its way to them."""
    engine = run.team.engine
    guests = engine.waiting_for_state
    if not guests:
        return
    state = b""
    refusals = _refusals.setdefault(run, Refusals())
    if not refusals.is_on(time.monotonic()):
        try:
            state = _packed(run.team, run.trained, run.carried(), run.handed_over.states())
        except Exception as error:  # would end this worker, where the other one can ask elsewhere
            here = run.session.world.rank
            print(f"[Gossip] rank {here}: has no state for rank {guests}: {error}", file=sys.stderr)
            refusals.add(time.monotonic())
    for rank in guests:
        engine.give_state(rank, state)


def come_back(world: World, settings: Settings, found: Trained, made: Callable[..., Run]) -> Run:
    """This worker comes back: model and optimizer are as those of a worker that is there, and the
    others have agreed on the step to begin with. ``made`` makes its Run.

    Where nobody can be reached, or they do not agree, it tries again for ``timeout_s``, unless one
    has finished or nobody is left. Raises TransportError then, IoError or ValueError for a state
    that does not fit.
    """
    limit = time.monotonic() + settings.timeout_s
    has_said = False
    pause_s = _PAUSE_S
    while True:
        begun = begin(world, settings, found.rule)
        has_state = False
        try:
            back = _take(begun, found)
            has_state = True
            run = made(begun, back.trained, back=back)
        except _core.TransportError as error:
            if begun.transport is not None:
                begun.transport.stop()
            _refuse_where_all_is_over(world, error)
            if time.monotonic() > limit:
                raise
            if not has_said:
                print(f"[Gossip] rank {world.rank}: {error}; it tries again", file=sys.stderr)
            has_said = True
        else:
            members.say_state(world.members, world.rank)
            return run
        if has_state:  # the others are there
            pause_s = _PAUSE_S
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _refuse_where_all_is_over(world: World, error: Exception) -> None:
    finished = members.who_has_finished()
    if finished is not None:
        raise RuntimeError(
            f"[Gossip] rank {world.rank} comes back, but rank {finished} has finished, so the job "
            "is over; nothing is left to do"
        ) from error
    if members.nobody_has_state(world.members, world.size):
        raise RuntimeError(
            f"[Gossip] rank {world.rank} comes back, but no other worker has the state of the run "
            "any more; start the job again, from its last checkpoint"
        ) from error


def _take(session: Session, found: Trained) -> Back:
    assert session.transport is not None
    world = session.world
    here = [rank for rank in _of_host(session) if rank != world.rank]
    others = [rank for rank in range(world.size) if rank != world.rank and rank not in here]
    arrival = _core.Arrival(session.transport, [*here, *others], session.settings.timeout_s)
    carried, beside = _put(session, found, arrival.take_state())
    now = trained.read(found.model, found.optimizers, found.wanted, is_plain=False)
    return Back(now, carried, beside, arrival)


def _of_host(session: Session) -> range:
    return saving.ranks_of_host(session.world)


def _packed(team: Team, found: Trained, carried: Carried, beside: Sequence[Any]) -> bytes:
    content = worker_file.collect(found, carried, team.session.row(found.rule).name)
    folder = _core.MemoryFolder(content.nbytes + _BESIDE_BYTES)  # gone at the end
    temporary, _ = _core.begin_checkpoint(folder.path, team.engine.steps_done, "handed-over")
    written = content.write(temporary, 0)
    manifest = saving.described(team, found, carried, saving.now(), [written])
    path = Path(_core.commit_checkpoint(temporary, folder.path, manifest, [0]))
    heads = [(path / _MANIFEST).read_bytes(), json.dumps(beside).encode()]
    sized = [len(head).to_bytes(_HEAD, "big") + head for head in heads]
    return b"".join([*sized, (path / _FILE).read_bytes()])


def _unpacked(state: bytes) -> tuple[bytes, list[Any], bytes]:
    """The manifest, what is handed over beside, and the worker's file."""
    heads = []
    for _ in range(2):
        end = _HEAD + int.from_bytes(state[:_HEAD], "big")
        heads.append(state[_HEAD:end])
        state = state[end:]
    return heads[0], json.loads(heads[1]), state


def _put(session: Session, found: Trained, state: bytes) -> tuple[Carried, list[Any]]:
    said, beside, content = _unpacked(state)
    folder = _core.MemoryFolder(len(state))  # gone at the end
    place = Path(folder.path)
    (place / _MANIFEST).write_bytes(said)
    (place / _FILE).write_bytes(content)
    manifest = _core.read_checkpoint(folder.path)
    loading.check_model(found, manifest)
    source = WorkerFile(_core.open_worker_file(folder.path, manifest, 0))
    with understood("the state of a neighbour"):
        restored = worker_file.restored(source, found)
        loading.check_state(found, restored)
        losses = Carried(losses=manifest.losses)
        carried = loading.carried_in(session, found, source, losses)
    restored.put(found.optimizers)
    return carried, beside
