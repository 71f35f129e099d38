"""Runs the experiments of this folder, goes on where it stopped, and prints their tables."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import emulation
import outcomes
import records
import runner
import tables
from grid import FOLDER, ROOT, Experiment, ExperimentError, Run, every_name, load
from plan import Record, planned, undecided, wanted
from runner import Place


@dataclass(frozen=True)
class Options:
    """What the command line says, for every experiment."""

    place: Place
    results: Path
    wants: Callable[[Run], bool]
    limit: int  # runs; 0: all


def main(arguments: list[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    try:
        options = options_of(args)
        experiments = [load(experiment_file(name)) for name in args.experiments or every_name()]
        return sum(each(experiment, args, options) for experiment in experiments) and 1
    except ExperimentError as error:
        print(f"[experiments] {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("[experiments] stopped; the same command goes on from here", file=sys.stderr)
        return runner.INTERRUPTED


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__)
    add = made.add_argument
    add("experiments", nargs="*", help="names of TOML files here, or paths; default: all of them")
    add("--data", type=Path, default=ROOT.parent / "shared/data", help="folder with the data")
    add("--gossamer", type=Path, default=ROOT / "build/bin/gossamer", help="the program")
    add("--results", type=Path, default=FOLDER / "results", help="folder of the JSON lines")
    add("--runs", type=Path, default=ROOT / "build/experiments", help="folder of the run folders")
    add("--list", action="store_true", help="show the grid and what is done of it")
    add("--table", action="store_true", help="only print the tables")
    add("--only", default="", metavar="WORDS", help="only runs whose name contains this")
    add("--seeds", default="", metavar="1,2", help="only runs with these seeds")
    add("--limit", type=int, default=0, metavar="N", help="at most so many runs; 0: all")
    return made


def options_of(args: argparse.Namespace) -> Options:
    try:
        seeds = tuple(int(word) for word in args.seeds.split(",") if word)
    except ValueError:
        raise ExperimentError(f"--seeds must be like 1,2, got {args.seeds!r}") from None
    if args.limit < 0:
        raise ExperimentError(f"--limit must be at least 0, got {args.limit}")
    place = Place(args.gossamer.absolute(), args.data.absolute(), args.runs.absolute())
    return Options(place, args.results, wanted(args.only, seeds), args.limit)


def experiment_file(name: str) -> Path:
    for path in (FOLDER / f"{name}.toml", Path(name)):
        if path.is_file():
            return path
    raise ExperimentError(f"no experiment {name!r}; there are: {', '.join(every_name())}")


def each(experiment: Experiment, args: argparse.Namespace, options: Options) -> int:
    """The number of runs that failed."""
    path = options.results / f"{experiment.name}.jsonl"
    if args.list:
        show_grid(experiment, records.read(path), options)
        return 0
    failures = 0 if args.table else run_grid(experiment, path, options)
    outcome = outcomes.read(experiment, options.results)
    print(f"\n{tables.document(experiment, outcome.done, outcome.times)}\n")
    return failures


def state(run: Run, done: dict[str, Record], place: Place) -> str:
    if run.key in done:
        return str(done[run.key]["status"])
    folder = place.folder(run)
    if runner.is_trained(folder):
        return "trained"
    return "interrupted" if runner.is_interrupted(folder) else "open"


def show_grid(experiment: Experiment, done: dict[str, Record], options: Options) -> None:
    runs = [run for run in planned(experiment, done) if options.wants(run)]
    report(experiment, done, runs)
    for run in runs:
        print(f"  {state(run, done, options.place):12}{run.name}")
    for cell in undecided(experiment, done):
        print(f"  {'waits':12}{cell.name}: its settings are not chosen yet")


def reason_to_skip(experiment: Experiment, runs: list[Run], options: Options) -> str:
    data = options.place.data
    if not data.is_dir():
        return f"there is no data folder {relative(data)}; name one with --data DIR"
    missing = sorted({file for run in runs for file in runner.missing_files(run, data)})
    if missing:
        return f"{relative(data)} has no {', '.join(missing)}; put it there or name another --data"
    if reason := emulation.reason_against(experiment):
        return reason
    return runner.needs_sacrebleu() if experiment.task == "translation" else ""


def relative(path: Path) -> str:
    return os.path.relpath(path)


def run_grid(experiment: Experiment, path: Path, options: Options) -> int:
    """The number of runs that failed. What tuning has chosen is looked up after every run."""
    failed: set[str] = set()
    count = 0
    while True:
        done = records.read(path)
        runs = [run for run in planned(experiment, done) if options.wants(run)]
        todo = [run for run in runs if run.key not in done and run.key not in failed]
        if count == 0 and todo:
            reason = reason_to_skip(experiment, todo, options)
            if reason:
                print(f"{experiment.name}: skipped: {reason}")
                return 0
        if not todo or (options.limit and count >= options.limit):
            report(experiment, done, runs)
            return len(failed)
        count += 1
        print(f"{experiment.name}: {todo[0].name} ({len(todo)} to do)", flush=True)
        if not run_one(todo[0], path, options.place):
            failed.add(todo[0].key)


def report(experiment: Experiment, done: dict[str, Record], runs: list[Run]) -> None:
    finished = sum(run.key in done for run in runs)
    text = f"{experiment.name}: {finished} of {len(runs)} runs are done"
    waiting = len(undecided(experiment, done))
    print(f"{text}; {waiting} rows are not tuned yet" if waiting else text)


def run_one(run: Run, path: Path, place: Place) -> bool:
    begin = time.monotonic()
    try:
        record = runner.perform(run, place)
    except ExperimentError as error:
        print(f"[experiments] {error}", file=sys.stderr)
        return False
    records.append(path, record)
    runner.tidy(run, place)
    loss = (record["summary"] or {}).get("val_loss")
    print(f"  {record['status']}, val loss {loss}, {time.monotonic() - begin:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
