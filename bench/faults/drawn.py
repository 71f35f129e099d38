"""What may befall a training run, drawn by seed and number."""

import random
from dataclasses import dataclass
from typing import Any

import going_on
import hosts
import training

SHORT_S = (0.2, 1.2)
LAYOUTS = ("4x1", "2x2", "2x3", "1x4")
FAULTS = ("kill", "kill", "freeze", "freeze", "unplug", "unplug", "short freeze", "short unplug")
HOWS = (
    {"topology": "alternating_exponential_ring", "pattern": "cwa", "update": "step"},
    {"topology": "complete", "pattern": "cwa", "update": "backward"},
    {"topology": "one_peer_exponential", "pattern": "atc", "update": "step"},
    {"topology": "complete", "pattern": "allreduce", "update": "step"},
)


@dataclass(frozen=True)
class Moment:
    """What is to happen; the same for the same seed and number."""

    number: int
    layout: str
    how: dict[str, Any]
    agent: bool  # the store is in a process of its own, as torchrun's, not in rank 0
    fault: str
    rank: int  # whom it befalls; of an unplugging: whose host
    phase: str  # the fault comes after its beginning; empty: after the start
    after_s: float
    short_s: float


def draw(seed: int, number: int, usual_s: float, loaders: int = 0, lost: str = "error") -> Moment:
    goes_on = lost == "go_on"
    dice = random.Random(f"{seed}/{number}")
    layout = dice.choice(LAYOUTS)
    size = sum(hosts.clusters.parse_hosts(layout))
    faults = going_on.FAULTS if goes_on else FAULTS
    fault = dice.choice([each for each in faults if layout != "1x4" or "unplug" not in each])
    phase = dice.choice(("", "", *training.PHASES))
    return Moment(
        number,
        layout,
        {
            **dice.choice(going_on.HOWS if goes_on else HOWS),
            "closes": dice.random() < 0.5,
            "loaders": loaders,
        },
        dice.random() < 0.7 or fault == "kill store",
        fault,
        dice.randrange(size),
        phase,
        dice.uniform(0, usual_s) if not phase else dice.uniform(0, 0.08),
        dice.uniform(*SHORT_S),
    )
