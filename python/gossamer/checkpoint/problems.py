"""What keeps one rank from saving or loading, told to all of them before anybody goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gossamer._core import IoError


@contextlib.contextmanager
def as_problem(problems: list[Exception], rank: int, what: str) -> Iterator[None]:
    """Keeps an exception for the others to hear of; says who could not do what."""
    try:
        yield
    except Exception as error:
        problems.append(_said_by(rank, what, error))


def _said_by(rank: int, what: str, error: Exception) -> Exception:
    text = str(error)
    if text.startswith("[Gossip]") or not isinstance(error, OSError | ValueError):
        return error
    kind = IoError if isinstance(error, OSError) else ValueError
    if isinstance(error, OSError) and not isinstance(error, IoError):
        text += "; look at the folder's rights, its disk and whether this host sees it"
    return kind(f"[Gossip] rank {rank} could not {what}: {text}")
