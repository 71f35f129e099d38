"""Which Gossamer and which torch each worker runs, and what it means that they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from gossamer import _built
from gossamer._series import series_of
from gossamer.workers.wording import listed

Versions = Mapping[str, str]
_UNKNOWN = "one that does not say its version"


def own() -> dict[str, str]:
    """Of this worker, as it tells the others."""
    return {"gossamer": _built.VERSION, "torch": str(torch.__version__)}


def other_gossamers(told: Mapping[int, Versions]) -> str:
    """What is wrong where workers, by rank, have different versions of Gossamer: they may exchange
    other messages in the same step, or average with other weights. Empty where nothing is."""
    found = _differing(told, "gossamer", str)
    return found and (
        f"all workers must run the same Gossamer, got {found}; install one version on all hosts"
    )


def other_torches(told: Mapping[int, Versions]) -> str:
    """What may go wrong where workers, by rank, have different series of torch. Nothing of Gossamer
    depends on it. Empty where nothing may."""
    found = _differing(told, "torch", series_of)
    return found and (
        f"workers run different torches, {found}: Gossamer's messages are the same, but torch's "
        "own collectives and its random numbers may not be, nor a state that one saves and another "
        "loads; install one series of torch on all hosts"
    )


def _differing(told: Mapping[int, Versions], name: str, kind: Callable[[str], str]) -> str:
    """Which ranks have which version, the most frequent first; empty where all are of a kind."""
    ranks: dict[str, list[int]] = {}
    for rank, versions in told.items():
        ranks.setdefault(versions.get(name, _UNKNOWN), []).append(rank)
    if len({kind(version) for version in ranks}) <= 1:
        return ""
    ordered = sorted(ranks.items(), key=lambda each: -len(each[1]))
    return " and ".join(f"{version} on {listed(here)}" for version, here in ordered)
