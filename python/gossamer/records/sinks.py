"""Where a tracker puts lines of metrics: values by name, and what happens where it cannot."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

Values = dict[str, float | str]


@dataclass(frozen=True)
class Sink:
    """What one rank's tracker does. Make one for a tracker that Gossamer does not know.

    Args:
        name: what warnings call it.
        write: takes the number of steps done, and values by name. What was not finite is nan.
        restart: takes the number of steps after which the run goes on: values of later steps have
            not been. By default it does nothing.
        close: ends it, once. By default it does nothing.

    Example::

        sink = gossamer.trackers.Sink("the console", lambda step, values: print(step, values))
        gossamer.trackers.follow(gossip, sink, every=10)
    """

    name: str
    write: Callable[[int, Values], None]
    restart: Callable[[int], None] = lambda step: None
    close: Callable[[], None] = lambda: None


class Tracker:
    """Follows the metrics of a rank for a sink. The first error of the sink is a warning, and its
    end: it must not cost what is being trained."""

    def __init__(self, sink: Sink, rank: int, every: int) -> None:
        self._sink = sink
        self._rank = rank
        self._every = every
        self._has_failed = False

    def write(self, line: Mapping[str, Any]) -> None:
        """The line of each ``every``-th step, and each that tells of more than its step."""
        step = int(line["step"])
        if step % self._every == 0 or not _is_usual(line):
            self._try(partial(self._sink.write, step, values_of(line)), f"before step {step}")

    def restart(self, step: int) -> None:
        """The run goes on after so many steps."""
        self._try(partial(self._sink.restart, step), f"after step {step}")

    def close(self) -> None:
        """Closes the sink, also one that has failed."""
        if self._has_failed:
            with contextlib.suppress(Exception):
                self._sink.close()
        self._try(self._sink.close, "at its close")

    def _try(self, call: Callable[[], None], where: str) -> None:
        if self._has_failed:
            return
        try:
            call()
        except Exception as error:
            self._has_failed = True
            warnings.warn(
                f"[trackers] rank {self._rank}: {self._sink.name} ends {where}, got "
                f"{type(error).__name__}: {error}; the run goes on without it",
                RuntimeWarning,
                stacklevel=4,
            )


def values_of(line: Mapping[str, Any]) -> Values:
    """All of a line but its step. Bytes of an edge are ``sent_bytes/rank1``; a lost worker is
    ``lost/rank1``, which is 1, and 0 from where it is back. ``workers`` are those that the rounds
    are among from there on."""
    found: Values = {}
    for name, value in line.items():
        if name == "edges":
            for edge in value:
                found[f"sent_bytes/rank{edge['peer']}"] = edge["sent"]
                found[f"received_bytes/rank{edge['peer']}"] = edge["received"]
        elif name in ("lost", "back") and isinstance(value, list):
            found |= {f"lost/rank{rank}": int(name == "lost") for rank in value}
        elif name == "among":
            found["workers"] = len(value)
        elif name != "step":
            found[name] = math.nan if value is None else value
    return found


def _is_usual(line: Mapping[str, Any]) -> bool:
    """Whether every step has such a line."""
    return "step_ms" in line and not any(name in line for name in ("lost", "back", "among"))
