"""topology="auto": the method that `gossamer plan` recommends for the job's cluster.

Note [One plan for all]: rank 0 alone reads the files and ranks; its choice is what every rank
takes, so other hosts need no files and ranks cannot differ.
"""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

from gossamer import _core
from gossamer.session.settings import Settings
from gossamer.workers.cards import exchange
from gossamer.workers.world import World


def decide(world: World, settings: Settings) -> tuple[Settings, tuple[str, ...]]:
    """The settings with the recommended method in them, and sentences that say why. Collective.

    ``update`` stays what it is, except that averaging gradients has none in the backward. Raises on
    rank 0 IoError or ValueError for files that cannot be read or are of another cluster, on the
    others the same that names rank 0.
    """
    problem: Exception | None = None
    card: dict[str, Any] = {}
    try:
        if world.rank == 0:
            assert settings.plan is not None
            card = _choose(world, Path(settings.plan))
    except Exception as error:
        problem = error
    card = exchange(world, "plan", card, problem, settings.timeout_s)[0]
    method = _core.Method(card["method"])
    if world.rank == 0:
        warnings.warn(f"[Gossip] {' '.join(card['sentences'])}", stacklevel=4)
    return _with(settings, method, world, card["link_rates"]), tuple(card["sentences"])


def _choose(world: World, folder: Path) -> dict[str, Any]:
    ranking = _core.rank_methods(str(folder / "cluster.toml"), str(folder / "workload.toml"))
    planned, here = list(ranking.workers_per_host), list(world.workers_per_host)
    if planned != here:
        raise ValueError(
            f"[Gossip] the plan is for {_words(planned)}, got a job on {_words(here)}; start the "
            f"job on the hosts of {folder / 'cluster.toml'}, or make it anew for these"
        )
    return {
        "method": ranking.recommended,
        "link_rates": list(ranking.link_rates),
        "sentences": [f"topology auto: {_said(ranking.recommended)}.", *ranking.reasons],
    }


def _said(recommended: str) -> str:
    if _core.Method(recommended).pattern != "ddp":
        return recommended
    return (
        f"{recommended}, which a Gossip runs as its own all-reduce; DistributedDataParallel may be "
        "faster"
    )


def _words(workers: list[int]) -> str:
    noun = "host" if len(workers) == 1 else "hosts"
    return f"{len(workers)} {noun} with {', '.join(map(str, workers))} workers"


def _with(
    settings: Settings, method: _core.Method, world: World, link_rates: list[float]
) -> Settings:
    if method.averages_gradients:
        parts: dict[str, Any] = {"topology": "complete", "pattern": "allreduce", "update": "step"}
    else:
        hosts = list(world.workers_per_host)
        parts = {"topology": method.schedule(hosts, link_rates=link_rates), "late": method.late}
        if method.late == "skip":
            parts["staleness"] = method.staleness
        if method.update == "backward":
            parts["update"] = method.update
    return dataclasses.replace(settings, plan=None, codec=method.codec, **parts)
