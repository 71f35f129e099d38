"""What workers do with checkpoints of `gossamer train`."""

import json
import os
from pathlib import Path
from typing import Any

import torch
from checkpoint_models import model_like
from gossip_scenarios_basic import gossiping
from gossip_support import newest

MOMENTUM = 0.9


def handed_on(rank: int, size: int) -> Any:
    """Loads what the command has saved and saves it for the command, by pattern."""
    place = Path(os.environ["GOSSAMER_TEST_FOLDER"])
    steps = {}
    for run in sorted(place.glob("*-run")):
        pattern = run.name.removesuffix("-run")
        folder = run / "checkpoints"
        model = model_like(json.loads((newest(folder) / "manifest.json").read_text()))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=MOMENTUM)
        with gossiping(model, optimizer, topology="ring", pattern=pattern) as gossip:
            gossip.load(folder)
            gossip.save(place / f"{pattern}-other" / "checkpoints")
            steps[pattern] = gossip.stats()["steps"]
    return steps


SCENARIOS = {"handed_on": handed_on}
