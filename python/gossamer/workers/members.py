"""The members folder: where a worker that is started again finds the others.

Note [Joining]: the launcher may say in GOSSAMER_BEGIN that fewer ranks begin than there are. The
others have a card from the start, which rank 0 writes: nobody is there yet. When they are started,
they do as one that comes back. Until then they count as lost.

Note [Members]: with GOSSAMER_MEMBERS, a folder that all workers of the job see, each worker puts a
card there when it has connected: where it can be reached, and what the job is. Nothing else is
needed to come back, neither the launcher's store nor any particular worker. A process knows that it
comes back by GOSSAMER_RESTARTS, or torchrun's TORCHELASTIC_RESTART_COUNT, above 0. Who reads the
cards can join the job: they have its token, where that is not made from a secret, and only the
user may read them. A card also says whether its worker has the state of the run: one that comes
back has none until it begins, and one that has ended has none any more, which its launcher writes.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gossamer import _core
from gossamer.base import files

_FOLDER = "GOSSAMER_MEMBERS"
_BEGIN = "GOSSAMER_BEGIN"
_RESTARTS = ("GOSSAMER_RESTARTS", "TORCHELASTIC_RESTART_COUNT")
_BITS_OF_TRIES = 12
_numbers = itertools.count()
_tries = itertools.count()

Card = dict[str, Any]


def is_coming_back() -> bool:
    """Whether this process takes the place of one that was lost."""
    return bool(os.environ.get(_FOLDER)) and restarts() > 0


def restarts() -> int:
    """How often this worker has been started before."""
    said = [os.environ.get(name, "") for name in _RESTARTS]
    return max([int(text) for text in said if text.isdecimal()], default=0)


def how_many_begin(size: int) -> int:
    """Of so many ranks; the launcher's word."""
    said = os.environ.get(_BEGIN, "")
    return min(int(said), size) if said.isdecimal() and int(said) > 0 else size


def next_generation() -> int:
    """Of a worker that comes back; higher at each call, and in each process that is started for it.
    See Note [Generations]."""
    return (restarts() << _BITS_OF_TRIES) + next(_tries)


def who_has_finished() -> int | None:
    """A rank whose program has ended as it should, so that the job is over; None: not known."""
    marks = Path(os.environ[_FOLDER]).glob("*.finished")
    return next((int(mark.stem) for mark in sorted(marks) if mark.stem.isdecimal()), None)


def mark_as_left(rank: int) -> None:
    """It has gone, and the job goes on. Raises IoError."""
    folder = os.environ.get(_FOLDER)
    if not folder:
        return
    try:
        (Path(folder) / f"{rank}.left").touch()
    except OSError as error:
        raise _core.IoError(
            f"[Gossip] rank {rank} could not say in {folder} that it leaves, got {error}; look at "
            f"{_FOLDER}, a folder that all workers of the job see"
        ) from error


def next_place() -> Path | None:
    """Where the cards of this process's next Gossip are; None: nobody wants them."""
    folder = os.environ.get(_FOLDER)
    return Path(folder) / str(next(_numbers)) if folder else None


def seat() -> tuple[int, int]:
    """Rank and number of workers of a process that comes back, as its launcher says them."""
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        raise RuntimeError(
            f"[Gossip] a worker that comes back needs RANK and WORLD_SIZE beside {_FOLDER}, got "
            f"{os.environ.get('RANK')!r} and {os.environ.get('WORLD_SIZE')!r}; start it with "
            "`gossamer launch`, or set them as they were"
        ) from None


def put(place: Path, rank: int, card: Card) -> None:
    """Only this user may read it. Raises IoError."""
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.write_whole(place / f"{rank}.json", json.dumps(card), 0o600)
    except OSError as error:
        raise _core.IoError(
            f"[Gossip] rank {rank} could not put its card into {place}, got {error}; look at "
            f"{_FOLDER}, a folder that all workers of the job see"
        ) from error


def say_state(place: Path | None, rank: int) -> None:
    """This worker, which has come back, has the state of the run now. Raises IoError."""
    assert place is not None
    card = json.loads((place / f"{rank}.json").read_text())
    put(place, rank, {**card, "has_state": True})


def nobody_has_state(place: Path | None, size: int) -> bool:
    """Whether all workers have lost the state of the run, so that none can be given it."""
    assert place is not None
    return not any(card.get("has_state", True) for card in read(place, size).values())


def read(place: Path, size: int) -> Mapping[int, Card]:
    """The cards by rank. Raises IoError where one is missing."""
    cards = {}
    for rank in range(size):
        try:
            cards[rank] = json.loads((place / f"{rank}.json").read_text())
        except (OSError, ValueError) as error:
            raise _core.IoError(
                f"[Gossip] this worker comes back and found no card of rank {rank} in {place}, got "
                f"{error}; {_FOLDER} must be the folder that the job began with"
            ) from error
    return cards
