"""What experiments have come to, for the scripts that show it."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import records
import step_times
from grid import FOLDER, Experiment, ExperimentError, every_name, load
from plan import Done
from step_times import StepTimes


@dataclass(frozen=True)
class Outcome:
    experiment: Experiment
    done: Done
    times: StepTimes | None  # measured on the emulated cluster; None: not


def read(experiment: Experiment, results: Path) -> Outcome:
    """From a folder like `results/`."""
    return Outcome(
        experiment,
        records.read(results / f"{experiment.name}.jsonl"),
        step_times.read(results / step_times.FILE, experiment.name),
    )


def run(
    parser: argparse.ArgumentParser,
    arguments: list[str] | None,
    show: Callable[[Outcome, argparse.Namespace], None],
) -> int:
    """The exit code of a script that shows the experiments named on its command line, or all."""
    parser.add_argument("experiments", nargs="*", help="names; default: all of them")
    parser.add_argument("--results", type=Path, default=FOLDER / "results")
    args = parser.parse_args(arguments)
    try:
        for name in args.experiments or every_name():
            show(read(load(FOLDER / f"{name}.toml"), args.results), args)
    except ExperimentError as error:
        print(f"[experiments] {error}", file=sys.stderr)
        return 2
    return 0
