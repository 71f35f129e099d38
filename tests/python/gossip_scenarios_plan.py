"""What the workers of the Gossip tests do: topology="auto"."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gossip_scenarios_basic import gossiping
from gossip_scenarios_ends import attempt
from gossip_support import mlp, train
from torch.optim import SGD

from gossamer import Gossip


def plan_of(rank: int, name: str) -> Path:
    """Where the files are; on other ranks than 0 there are none."""
    return Path(os.environ["GOSSAMER_TEST_FOLDER"]) / (name if rank == 0 else "nowhere")


def planned(rank: int, size: int) -> Any:
    """By plan: what was taken, and what was said."""
    found = {}
    for name in ("slow", "fast", "int8"):
        for update in ("step", "backward"):
            model = mlp()
            optimizer = SGD(model.parameters(), lr=0.1)
            options = {"topology": "auto", "plan": plan_of(rank, name), "update": update}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with gossiping(model, optimizer, **options) as gossip:
                    train(model, optimizer, range(3), rank)
                    schedule, settings = gossip._run.session.schedule, gossip._run.session.settings
                    found[f"{name} {update}"] = {
                        "plan": gossip.plan,
                        "pattern": settings.pattern,
                        "codec": settings.codec,
                        "late": settings.late,
                        "update": settings.update,
                        "matrices": [schedule.matrix(t) for t in range(12)],
                        "steps": gossip.stats()["steps"],
                        "said": [str(each.message) for each in caught],
                    }
    return found


def unplanned(rank: int, size: int) -> Any:
    """How it fails where the plan is of another cluster, or rank 0 has none."""
    found = {}
    for name in ("others", "nowhere"):
        model = mlp()
        optimizer = SGD(model.parameters(), lr=0.1)
        where = plan_of(rank, name)
        found[name] = attempt(lambda: Gossip(model, optimizer, topology="auto", plan=where))  # noqa: B023
    return found


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function for function in (planned, unplanned)
}
