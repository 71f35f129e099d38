"""Whether it is answered right where all-reduce is faster."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from configurations import STEPS_RATIO, Scene
from launching import Bench

CLOSE = 0.05  # to the line, and not counted


@dataclass(frozen=True)
class Side:
    """Seconds per step, measured, of the best all-reduce and the best that gossips."""

    scene: str
    recommended: str
    allreduce: str
    allreduce_s: float
    gossip: str
    gossip_s: float
    steps_ratio: float

    @property
    def balance(self) -> float:
        """Below 1 all-reduce is faster to the same loss."""
        return self.allreduce_s / (self.steps_ratio * self.gossip_s)

    @property
    def is_close(self) -> bool:
        return abs(self.balance - 1) <= CLOSE

    @property
    def takes_allreduce(self) -> bool:
        return averages(self.recommended)

    @property
    def is_right(self) -> bool:
        return self.takes_allreduce == (self.balance < 1)


def averages(method: str) -> bool:
    return method.split(":")[0] in ("allreduce", "ddp")


def best_of_each(candidates: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The best-ranked all-reduce that engines run, and the best-ranked that gossips."""
    allreduce = next(c for c in candidates if c["method"].split(":")[0] == "allreduce")
    gossip = next(c for c in candidates if not averages(c["method"]))
    return allreduce, gossip


def measure_side(bench: Bench, scene: Scene) -> Side:
    plan = bench.plan(scene, STEPS_RATIO)
    seconds = []
    best = best_of_each(plan["candidates"])
    for candidate in best:
        steps, *_ = bench.predict(scene, candidate["method"])
        seconds.append(bench.measure(scene, candidate["method"], steps)["step_s"])
    allreduce, gossip = best
    return Side(
        scene=scene.name,
        recommended=plan["recommended"],
        allreduce=allreduce["method"],
        allreduce_s=seconds[0],
        gossip=gossip["method"],
        gossip_s=seconds[1],
        # With what a codec costs in addition on either side.
        steps_ratio=gossip["steps_ratio"] / allreduce["steps_ratio"],
    )


def agreement(sides: Sequence[Side], allreduce_is_faster: bool) -> tuple[int, int]:
    """How many were answered right, and how many there are on this side of the line."""
    counted = [s for s in sides if not s.is_close and (s.balance < 1) == allreduce_is_faster]
    return sum(side.is_right for side in counted), len(counted)
