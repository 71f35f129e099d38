"""Moments of runs with lost="go_on": what may befall them, and who must finish nevertheless."""

from collections.abc import Sequence

import training

TIMEOUT_S = 20.0  # a silent worker is given up long before
FAULTS = (
    *("kill", "kill", "freeze", "unplug", "short freeze", "short unplug"),
    "kill store",  # of the launcher, in a process of its own
)
HOWS = tuple(
    {"topology": topology, "pattern": pattern, "update": update, "late": late, "lost": "go_on"}
    for topology, pattern, update, late in (
        ("alternating_exponential_ring", "cwa", "step", "wait"),
        ("complete", "cwa", "backward", "wait"),
        ("ring", "atc", "step", "wait"),
        ("ring", "gradient_gossip", "step", "wait"),
        ("complete", "allreduce", "step", "wait"),
        ("one_peer_exponential", "gradient_tracking", "step", "wait"),
        ("ring", "extra", "backward", "wait"),
        ("alternating_exponential_ring", "cwa", "step", "skip"),
    )
)


def trains(phase: str) -> bool:
    """Whether a worker is past the start, which needs all."""
    return phase in training.PHASES and training.PHASES.index(phase) >= training.PHASES.index(
        "train"
    )


def away(fault: str, rank: int, hosts: Sequence[int]) -> list[int]:
    """Who need not finish; ``hosts``: of each rank. Of two parts the larger one goes on, of equal
    ones that with rank 0."""
    if fault in ("kill", "freeze"):
        return [rank]
    if fault != "unplug":
        return []
    cut_off = [each for each, host in enumerate(hosts) if host == hosts[rank]]
    others = [each for each, host in enumerate(hosts) if host != hosts[rank]]
    is_small = len(cut_off) < len(others) or (len(cut_off) == len(others) and 0 in others)
    return cut_off if is_small else others
