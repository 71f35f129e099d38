"""Who is waited for, said on the screen.

See Note [Roll call] in gossamer/engine/roll_call.h for those that wait in a step.
"""

from __future__ import annotations

import sys

from gossamer import _core

_PATIENCE_S = 10.0


def begin(transport: _core.Transport, peers: list[int], rank: int, *, compares_steps: bool) -> None:
    """From now on the peers hear what this worker has come to."""

    def report(missing: list[int], where: str) -> None:
        say_waiting(rank, missing, where)

    transport.begin_roll_call(
        peers, compares_steps=compares_steps, report=report, patience_s=_PATIENCE_S
    )


def say_changes(rank: int, report: _core.StepReport) -> None:
    """A line for each worker that this one goes on without, and that comes back. The lowest rank
    says for whom the topology is formed anew."""
    for lost in report.lost:
        _say(
            f"rank {rank}: goes on without rank {lost.rank}, lost in step {report.step}: {lost.why}"
        )
    for back in report.back:
        _say(f"rank {rank}: rank {back.rank} is back from step {back.steps + 1} on")
    if report.among and rank == report.among[0]:
        ranks = ", ".join(map(str, report.among))
        _say(f"rank {rank}: after step {report.step} the topology is formed anew among: {ranks}")


def _say(text: str) -> None:
    print(f"[Gossip] {text}", file=sys.stderr, flush=True)


def say_waiting(rank: int, missing: list[int], where: str) -> None:
    """A line for whoever looks why nothing happens."""
    whom = f"rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
    _say(f"rank {rank}: waiting for {whom} in {where}")
