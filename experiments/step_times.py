"""How long a step of a method takes on the emulated cluster: results/step_times.json.

    experiments/step_times.py measured.json ... [--predicted predicted.json]

takes it from what bench/cluster/run.py --json measured and bench/cluster/predict.py --json said.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from grid import FOLDER, Experiment, ExperimentError, every_name, load
from plan import Cell

FILE = "step_times.json"


@dataclass(frozen=True)
class StepTimes:
    """Milliseconds by `method@topology`, or by topology for all methods on it; AllReduce by the
    method's name; in float also as DDP."""

    ms: dict[str, float]
    gamma: float
    cluster: str
    source: str  # who measured it, after "milliseconds per step"
    predicted_ms: dict[str, float] = field(default_factory=dict)

    def of(self, cell: Cell) -> float | None:
        return look_up(self.ms, cell)

    def predicted_of(self, cell: Cell) -> float | None:
        return look_up(self.predicted_ms, cell)


def look_up(ms: dict[str, float], cell: Cell) -> float | None:
    names = [f"{cell.method.name}@{cell.topology}", cell.topology]
    if not cell.topology:
        names = [cell.method.name]
        if cell.experiment.is_reference(cell.method):
            names.append("DDP")
    return next((ms[name] for name in names if name in ms), None)


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


def collected(
    experiment: Experiment, measured: Iterable[dict[str, Any]], predicted: Iterable[dict[str, Any]]
) -> StepTimes | None:
    """Those of the setting and the contenders that [time] names, medians where measured more than
    once; None where it names none, or the setting was not measured."""
    setting = experiment.time.get("setting")
    runs = [part for part in measured if part["setting"]["name"] == setting]
    if setting is None or not runs:
        return None
    rounds: dict[str, list[float]] = {}
    for row in (row for part in runs for row in part["rows"] if row["status"] == "ok"):
        rounds.setdefault(row["contender"], []).append(row["seconds"])
    seconds = {name: statistics.median(found) for name, found in rounds.items()}
    expected = {
        each["contender"]: each["predicted_s"] for each in predicted if each["setting"] == setting
    }

    def by_name(found: dict[str, float]) -> dict[str, float]:
        contenders = experiment.time.get("contenders", {})
        return {
            name: round(1e3 * found[contender], 1)
            for name, contender in contenders.items()
            if contender in found
        }

    return StepTimes(
        ms=by_name(seconds),
        gamma=experiment.time["gamma"],
        cluster=runs[0]["setting"]["hosts"],
        source=f"of `bench/cluster/run.py --settings '{setting}'`, AllReduce's those of "
        "DistributedDataParallel",
        predicted_ms=by_name(expected),
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("measured", nargs="+", type=Path, help="files of bench/cluster/run.py")
    parser.add_argument("--predicted", type=Path, help="the file of bench/cluster/predict.py")
    parser.add_argument("--results", type=Path, default=FOLDER / "results")
    args = parser.parse_args(arguments)
    path = args.results / FILE
    try:
        measured = [
            part for file in args.measured for part in json.loads(file.read_text())["settings"]
        ]
        predicted = json.loads(args.predicted.read_text()) if args.predicted else []
        every = json.loads(path.read_text()) if path.exists() else {}
        for name in every_name():
            found = collected(load(FOLDER / f"{name}.toml"), measured, predicted)
            if found is not None:
                every[name] = asdict(found)
                print(f"{name}: {', '.join(found.ms)}")
        path.write_text(json.dumps(every, indent=1) + "\n")
    except (ExperimentError, OSError, ValueError, KeyError) as error:
        print(f"[step_times] {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
