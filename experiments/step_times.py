"""How long a step of a method takes on a cluster: results/step_times.json, written by hand from
what a benchmark found."""

import json
from dataclasses import dataclass
from pathlib import Path

from grid import ExperimentError
from plan import Cell


@dataclass(frozen=True)
class StepTimes:
    """Milliseconds by `method@topology`, or by topology for all methods on it; AllReduce by the
    method's name, or as DDP."""

    ms: dict[str, float]
    gamma: float
    cluster: str
    source: str  # the command that measured it

    def of(self, cell: Cell) -> float | None:
        names = [f"{cell.method.name}@{cell.topology}", cell.topology]
        if not cell.topology:
            names = [cell.method.name, "DDP"]
        return next((self.ms[name] for name in names if name in self.ms), None)


def read(path: Path, experiment: str) -> StepTimes | None:
    """None where nobody has measured them for this experiment."""
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text()).get(experiment)
        return None if found is None else StepTimes(**found)
    except (ValueError, TypeError, AttributeError) as error:
        raise ExperimentError(
            f"{path.name}: {experiment} has no step times: {error}; it needs "
            "gamma, cluster, source and ms"
        ) from error
