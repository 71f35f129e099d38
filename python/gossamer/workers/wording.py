"""Ranks and errors in the sentences that workers say."""

from __future__ import annotations

from collections.abc import Sequence

MOST_LISTED = 8


def listed(ranks: Sequence[int]) -> str:
    """ "rank 3", "ranks 0, 1", and of many the first ones."""
    shown = ", ".join(map(str, ranks[:MOST_LISTED]))
    more = f" and {len(ranks) - MOST_LISTED} more" if len(ranks) > MOST_LISTED else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"


def first_line(error: object) -> str:
    """Of what it says; its kind where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]
