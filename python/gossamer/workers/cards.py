"""What ranks tell each other between steps: a card from each to all, through the group's store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gossamer import _core
from gossamer._core import IoError
from gossamer.workers.board import Waiting, next_number
from gossamer.workers.world import World, board_of

Card = dict[str, Any]

_KINDS: dict[str, type[Exception]] = {"IoError": IoError, "ValueError": ValueError}


def exchange(
    world: World, operation: str, card: Card, problem: Exception | None, timeout_s: float
) -> list[Card]:
    """The cards of all ranks, in their order, if none of them has a problem.

    Collective. Raises ``problem``; on the other ranks an IoError where it is one and a ValueError
    else, which tells of it; TransportError for a rank that is not there within ``timeout_s``.
    """
    if world.size == 1:
        if problem is not None:
            raise problem
        return [card]
    board = board_of(world, timeout_s)
    place = f"gossamer/cards/{next_number(board, world.rank, world.size)}"
    board.set(f"{place}/{world.rank}", json.dumps(told(operation, card, problem)))
    if problem is not None:
        raise problem
    deadline = _core.seconds_awake() + timeout_s
    late = (
        f"has not come to {operation} within {timeout_s:g} s; every rank of the group must call it "
        "after equally many steps; if it only takes longer, raise timeout_s of Gossip"
    )
    all_told: dict[int, Card] = {}
    for peer in range(world.begins):
        who = Waiting(world.rank, peer, operation, deadline, timeout_s)
        all_told[peer] = json.loads(board.read(f"{place}/{peer}", who, late))
    return checked(world.rank, operation, all_told)


def checked(rank: int, operation: str, all_told: Mapping[int, Card]) -> list[Card]:
    """The cards in what all have ``told``, by rank; raises what ``exchange`` does."""
    for peer, other in all_told.items():
        if other["operation"] != operation:
            raise ValueError(
                f"[Gossip] rank {rank}: {operation} is collective, got {other['operation']} "
                f"on rank {peer}; call the same methods in the same order on every rank"
            )
    for peer, other in all_told.items():
        if other["problem"] is not None:
            kind, text = other["problem"]
            is_its_own = text.startswith(f"[Gossip] rank {peer}")
            text = text if is_its_own else f"[Gossip] rank {peer} could not {operation}: {text}"
            raise _KINDS[kind](text)
    return [other["card"] for other in all_told.values()]


def told(operation: str, card: Card, problem: Exception | None) -> Card:
    """What a rank tells the others."""
    kind = "IoError" if isinstance(problem, OSError) else "ValueError"
    return {
        "operation": operation,
        "card": card,
        "problem": None if problem is None else (kind, str(problem)),
    }
