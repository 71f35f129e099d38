"""The table of times: steps as long as on the emulated cluster, with the losses of the runs."""

from dataclasses import dataclass

import emulation
from grid import Experiment
from rows import Row, baseline, losses_by_seed, spread
from step_times import StepTimes


@dataclass(frozen=True)
class TimeRow:
    """Of a row of the results. `reached_at`: the step of the first validation at which the mean
    loss over the seeds is at most what the best AllReduce ends with; None: it never is."""

    row: Row
    ms: float
    predicted_ms: float | None
    steps: int
    reached_at: int | None


def mean_curve(row: Row) -> dict[int, float]:
    """Validation loss by step, the mean over the seeds."""
    steps, by_seed = losses_by_seed(row)
    return {step: sum(points[step] for points in by_seed) / len(by_seed) for step in steps}


def time_rows(found: list[Row], times: StepTimes) -> list[TimeRow]:
    """The best AllReduce first, then the others that have a step time."""
    base = baseline(found)
    if base is None or times.of(base.cell) is None:
        return []
    ends = spread(base.values("val_loss"))
    others = [
        row
        for row in found
        if row.records and not row.cell.experiment.is_reference(row.cell.method)
    ]
    made = []
    for row in [base, *others]:
        ms = times.of(row.cell)
        curve = mean_curve(row)
        if ms is None or ends is None or not curve:
            continue
        reached = next((step for step, loss in curve.items() if loss <= ends.mean), None)
        made.append(TimeRow(row, ms, times.predicted_of(row.cell), max(curve), reached))
    return made


def own_times(experiment: Experiment, found: list[Row]) -> StepTimes | None:
    """Of runs that trained on the emulated cluster themselves: means over seeds."""
    if "rate" not in experiment.time:
        return None
    ms = {}
    for row in found:
        mean = spread(row.values("ms_per_step"))
        if mean is not None:
            cell = row.cell
            ms[f"{cell.method.name}@{cell.topology}" if cell.topology else cell.method.name] = (
                mean.mean
            )
    return StepTimes(
        ms=ms,
        gamma=experiment.time["gamma"],
        cluster=emulation.hosts_of(experiment),
        source=f"of these runs, on links of {experiment.time['rate']}",
    )
