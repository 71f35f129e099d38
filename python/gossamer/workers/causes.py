"""Who is behind it that a worker ends by an error, where each of several waits for another one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from gossamer._core import TransportError
from gossamer.workers.board import Board

_SOON_S = 1.0
_NAP_S = 0.02
_LATE, _UNHEARD = "deadline passed", "nothing has been heard of worker"
_ENDED = "gossamer/ended"


def first_to_end(rank: int, error: TransportError, board_of: Callable[[float], Board]) -> int:
    """Whom the error's peer has lost, or waits for, and so on to one that names nobody.

    Each says in the store before it ends whom its own error names. Where a deadline has passed they
    all do so within a moment, for which this waits, unless the peer is known to say nothing. Of
    some that wait for each other the peer is named. A store that does not answer at once is left
    alone.
    """
    is_late = _LATE in error.reason and _UNHEARD not in error.reason
    limit = time.monotonic() + (_SOON_S if is_late else 0)
    named = [rank, error.peer]
    with contextlib.suppress(Exception):  # the error that is on its way matters more
        board = board_of(_SOON_S)
        board.set(f"{_ENDED}/{rank}", str(error.peer))
        while True:
            said = board.look(f"{_ENDED}/{named[-1]}")
            if said and int(said) in named:
                return error.peer
            if said:
                named.append(int(said))
            elif time.monotonic() > limit:
                return named[-1]
            else:
                time.sleep(_NAP_S)
    return error.peer
