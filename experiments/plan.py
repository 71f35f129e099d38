"""Which runs an experiment still needs: first those that tune, then the best on all seeds."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grid import Case, Experiment, Method, Run, Settings

Record = dict[str, Any]
Done = Mapping[str, Record]  # by key


@dataclass(frozen=True)
class Cell:
    """A method on a topology in a case: what a row of the table is about."""

    experiment: Experiment
    case: Case
    method: Method
    topology: str

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.case.name, self.method.name, self.topology)))

    def run(self, seed: int, chosen: Settings) -> Run:
        return Run(self.experiment, self.case, self.method, self.topology, seed, chosen)


def cells(experiment: Experiment) -> list[Cell]:
    return [
        Cell(experiment, case, method, topology)
        for case in experiment.cases
        for method in experiment.methods
        for topology in method.topologies
    ]


def tuned_cell(cell: Cell) -> Cell:
    """The cell whose choice this one takes."""
    named = [each for each in cell.experiment.methods if each.name == cell.method.tune_with]
    method = named[0] if named else cell.method
    graphs = (method.tune_on, cell.topology, *method.topologies)
    graph = next(graph for graph in graphs if graph in method.topologies)
    return Cell(cell.experiment, cell.case, method, graph)


def tuning_runs(cell: Cell) -> list[Run]:
    """Those that choose for this cell; none where there is nothing to choose."""
    if not cell.method.choices:
        return []
    at = tuned_cell(cell)
    return [
        at.run(seed, candidate)
        for candidate in at.method.candidates()
        for seed in cell.experiment.tune_seeds
    ]


def loss_of(record: Record) -> float:
    """Infinite where the run diverged."""
    loss = (record.get("summary") or {}).get("val_loss")
    if record["status"] != "ok" or loss is None or not math.isfinite(loss):
        return math.inf
    return float(loss)


def mean_tuning_loss(cell: Cell, candidate: Settings, done: Done) -> float | None:
    """Over the seeds of the tuning; None while one is missing."""
    at = tuned_cell(cell)
    tried = at.method.as_in(candidate)
    found = [done.get(at.run(seed, tried).key) for seed in cell.experiment.tune_seeds]
    losses = [loss_of(record) for record in found if record is not None]
    return sum(losses) / len(losses) if len(losses) == len(found) else None


def choice(cell: Cell, done: Done) -> Settings | None:
    """The best candidate by mean final validation loss; None while it is not known or if none
    converged."""
    candidates = cell.method.candidates()
    if len(candidates) == 1:
        return candidates[0]
    losses = [mean_tuning_loss(cell, candidate, done) for candidate in candidates]
    known = [math.inf if loss is None else loss for loss in losses]
    if None in losses or min(known) == math.inf:
        return None
    return candidates[known.index(min(known))]


def at_the_edge(cell: Cell, chosen: Settings) -> list[str]:
    """The settings of which an end of the list was the best: beyond it may be a better one."""
    choices = cell.method.choices
    return [
        key
        for key, values in choices.items()
        if len(values) > 1 and chosen[key] in (values[0], values[-1])
    ]


def planned(experiment: Experiment, done: Done) -> list[Run]:
    """All runs that are known to be needed, each once, in the order in which they are done. One
    seed after the other, so that a grid that is stopped has whole tables of fewer seeds."""
    runs: dict[str, Run] = {}
    every = cells(experiment)
    for cell in every:
        runs |= {run.key: run for run in tuning_runs(cell)}
    chosen = [(cell, choice(cell, done)) for cell in every]
    for seed in sorted({seed for method in experiment.methods for seed in method.seeds}):
        for cell, settings in chosen:
            if settings is not None and seed in cell.method.seeds:
                run = cell.run(seed, settings)
                runs.setdefault(run.key, run)
    return list(runs.values())


def undecided(experiment: Experiment, done: Done) -> list[Cell]:
    """Cells whose runs are not known yet."""
    return [cell for cell in cells(experiment) if choice(cell, done) is None]


def wanted(only: str, seeds: tuple[int, ...]) -> Callable[[Run], bool]:
    """The choice of a command line: words of a run's name, and its seeds; empty: all."""
    return lambda run: only.lower() in run.name.lower() and (not seeds or run.seed in seeds)
