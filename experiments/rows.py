"""The figures of a table: of every method and topology the runs on all seeds, and what they say."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from grid import Case, Experiment, Settings
from plan import Cell, Done, Record, cells, choice, loss_of


@dataclass(frozen=True)
class Spread:
    """Of one figure over seeds: mean, sample standard deviation (None for one seed), and the
    largest minus the smallest."""

    mean: float
    deviation: float | None
    width: float
    count: int


@dataclass(frozen=True)
class Row:
    cell: Cell
    chosen: Settings
    records: dict[int, Record] = field(default_factory=dict)  # by seed; those that converged
    diverged: int = 0

    def values(self, what: str) -> dict[int, float]:
        """By seed: `val_loss`, `bleu`, `top1` (percent) or `disagreement` (the largest of its
        validations, for it ends near 0 where the learning rate does)."""
        found = {seed: value_of(record, what) for seed, record in self.records.items()}
        return {seed: value for seed, value in found.items() if value is not None}


def value_of(record: Record, what: str) -> float | None:
    if what == "bleu":
        return record.get("bleu")
    summary = record["summary"]
    if what == "top1":
        accuracy = summary.get("val_accuracy")
        return None if accuracy is None else 100 * accuracy
    if what == "disagreement":
        return max([summary["disagreement"], *(point[3] for point in record["curve"])])
    return summary.get(what)


def losses_by_seed(row: Row) -> tuple[list[int], list[dict[int, float]]]:
    """The steps that all seeds validated at, and of each seed the validation loss by step."""
    by_seed = [{point[0]: point[1] for point in each["curve"]} for each in row.records.values()]
    return sorted(set.intersection(*(set(points) for points in by_seed))), by_seed


def rows(experiment: Experiment, case: Case, done: Done) -> list[Row]:
    """Those of which at least one run is done, with the settings that tuning chose."""
    found = [row_of(cell, done) for cell in cells(experiment) if cell.case == case]
    return [row for row in found if row is not None]


def row_of(cell: Cell, done: Done) -> Row | None:
    chosen = choice(cell, done)
    if chosen is None:
        return None
    keys = {seed: cell.run(seed, chosen).key for seed in cell.method.seeds}
    records = {seed: done[key] for seed, key in keys.items() if key in done}
    good = {seed: record for seed, record in records.items() if loss_of(record) < math.inf}
    return Row(cell, chosen, good, len(records) - len(good)) if records else None


def spread(values: Mapping[int, float]) -> Spread | None:
    """None where there are no values."""
    numbers = list(values.values())
    if not numbers:
        return None
    deviation = statistics.stdev(numbers) if len(numbers) > 1 else None
    width = max(numbers) - min(numbers)
    return Spread(statistics.fmean(numbers), deviation, width, len(numbers))


def baseline(found: list[Row]) -> Row | None:
    """The AllReduce in float with the lowest mean validation loss; None where there is none."""
    means: list[tuple[float, int]] = []
    for number, row in enumerate(found):
        losses = spread(row.values("val_loss"))
        if losses and row.cell.experiment.is_reference(row.cell.method):
            means.append((losses.mean, number))
    return found[min(means)[1]] if means else None


def differences(row: Row, base: Row, what: str) -> dict[int, float]:
    """Row minus base, on every seed that both have."""
    mine, theirs = row.values(what), base.values(what)
    return {seed: mine[seed] - theirs[seed] for seed in mine if seed in theirs}
