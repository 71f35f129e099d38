"""Sets runs beside each other: which may be compared, and what the comparison says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .measure import Figures, figures_of
from .run import Prediction, Run
from .words import listed, milliseconds, plain, share

_TASK = ("data", "model")
_LINKS_AGREE = 0.02  # without a word
_LINKS_ALIKE = 0.15  # with a remark
_MEASURED = "compute_ms"  # of [cluster]: what it leads to are the links, which are compared
_SHORT = {"alternating_exponential_ring": "AER", "aer": "AER"}


@dataclass
class Difference:
    """A setting in which runs differ; values by run, None where the run does not say."""

    key: str
    values: list[Any]


@dataclass
class Pair:
    """A prediction beside what was measured; each in ms or bytes, None: not known."""

    label: str
    source: str
    rows: list[tuple[str, float | None, float | None]]


@dataclass
class Comparison:
    """All that the page says in words and tables."""

    runs: list[Run]
    figures: list[Figures]
    baselines: list[Figures | None]
    headline: str
    remarks: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    is_one_task: bool = True

    def share_of(self, index: int) -> float | None:
        """Time per step over that of the AllReduce run; None where there is nothing to compare."""
        own, baseline = self.figures[index], self.baselines[index]
        if baseline is None or baseline is own or not baseline.step_ms or own.step_ms is None:
            return None
        return own.step_ms / baseline.step_ms


def compare(runs: list[Run]) -> Comparison:
    """Figures and words for the runs, in the order in which they were named."""
    figures = [figures_of(run) for run in runs]
    differences = _differences(runs)
    is_one_task = not any(each.key.split(".")[0] in _TASK for each in differences)
    result = Comparison(
        runs,
        figures,
        [_baseline(index, runs, figures) for index in range(len(runs))],
        headline="",
        differences=differences,
        pairs=_pairs(runs, figures),
        is_one_task=is_one_task,
    )
    why_not = _why_not_comparable(result)
    if why_not:
        result.baselines = [None] * len(runs)
        result.remarks.append(why_not)
    result.remarks += _leave_out_other_links(result)
    result.headline = _headline(result)
    result.remarks += _remarks(result)
    return result


def title(figures: Figures) -> str:
    """What people call the method of a run."""
    if figures.is_baseline:
        return "AllReduce"
    name = figures.topology or figures.label
    return _SHORT.get(name, name.replace("_", " "))


def _baseline(index: int, runs: list[Run], figures: list[Figures]) -> Figures | None:
    """Simulated runs are compared with a simulated AllReduce, measured ones with a measured, and
    each with one of its own cluster: so runs for several gammas may stand in one report."""
    own = figures[index]
    for run, each in zip(runs, figures, strict=True):
        is_alike = each.is_simulated == own.is_simulated and _are_on_one_cluster(run, runs[index])
        if is_alike and each.is_baseline and each.step_ms:
            return each
    return None


def _are_on_one_cluster(one: Run, other: Run) -> bool:
    """As far as both say; runs of one name are not told apart by what they measured."""
    settings = [run.recipe.get("cluster") for run in (one, other)]
    if not all(isinstance(each, dict) for each in settings):
        return True
    first, second = (
        {key: value for key, value in each.items() if key != _MEASURED}
        for each in settings
        if isinstance(each, dict)
    )
    return first == second


def _differences(runs: list[Run]) -> list[Difference]:
    """Settings that not all runs have alike; a section that a run has not is not compared."""
    keys = {
        (section, key): None
        for run in runs
        for section, part in run.recipe.items()
        if isinstance(part, dict)
        for key in part
    }
    found = []
    for section, key in keys:
        saying = [run for run in runs if section in run.recipe]
        if len({repr(run.setting(section, key)) for run in saying}) > 1:
            values = [run.setting(section, key) for run in runs]
            found.append(Difference(f"{section}.{key}", values))
    return found


def _why_not_comparable(comparison: Comparison) -> str:
    keys = [each.key for each in comparison.differences]
    task = [key for key in keys if key.split(".")[0] in _TASK]
    if task:
        return (
            f"The runs are of different tasks: they differ in {listed(task)}. So their loss curves "
            "and their times per step are not compared."
        )
    cluster = [
        key for key in keys if key.split(".")[0] == "cluster" and key != f"cluster.{_MEASURED}"
    ]
    if cluster:
        if any(comparison.share_of(index) is not None for index in range(len(comparison.runs))):
            return ""
        return (
            f"The runs had different clusters: they differ in {listed(cluster)}. So their times "
            "per step are not compared."
        )
    workers = {each.workers for each in comparison.figures if each.workers}
    if len(workers) > 1:
        return (
            f"The runs had {listed([str(each) for each in sorted(workers)])} workers, so their "
            "times per step are not compared."
        )
    return ""


def _leave_out_other_links(comparison: Comparison) -> list[str]:
    """Each run of --gamma measures the compute time anew and emulates links for it."""
    remarks = []
    for index, own in enumerate(comparison.figures):
        baseline = comparison.baselines[index]
        if baseline is None or not own.link_bytes_per_s or not baseline.link_bytes_per_s:
            continue
        rates = sorted((own.link_bytes_per_s, baseline.link_bytes_per_s))
        if rates[1] <= (1 + _LINKS_AGREE) * rates[0]:
            continue
        text = (
            f"{own.label}: the emulated links had {plain(8e-6 * own.link_bytes_per_s)} Mbit/s, "
            f"those of AllReduce {plain(8e-6 * baseline.link_bytes_per_s)} Mbit/s"
        )
        remedy = "--compute-ms or --link-rate gives all runs the same"
        if rates[1] <= (1 + _LINKS_ALIKE) * rates[0]:
            remarks.append(f"{text}; a part of the difference in time is theirs; {remedy}.")
        else:
            comparison.baselines[index] = None
            remarks.append(f"{text}, so the times per step are not compared; {remedy}.")
    return remarks


def _headline(comparison: Comparison) -> str:
    shares = [
        (part, own)
        for index, own in enumerate(comparison.figures)
        if (part := comparison.share_of(index)) is not None and not own.is_baseline
    ]
    if shares:
        part, own = min(shares, key=lambda each: each[0])
        simulated = " (simulated)" if own.is_simulated else ""
        same = [each for each in comparison.figures if title(each) == title(own)]
        name = title(own) if len(same) == 1 else f"{title(own)} ({own.label})"
        return f"{name} takes {share(part)} of AllReduce's time per step{simulated}"
    timed = [own for own in comparison.figures if own.step_ms is not None]
    if len(timed) == 1 and len(comparison.figures) == 1:
        return f"{title(timed[0])} takes {milliseconds(timed[0].step_ms)} per step"
    return f"{len(comparison.figures)} runs, none compared with AllReduce"


def _remarks(comparison: Comparison) -> list[str]:
    remarks = []
    for index, own in enumerate(comparison.figures):
        part, baseline = comparison.share_of(index), comparison.baselines[index]
        if part is None or baseline is None or own.is_baseline:
            continue
        change = "less" if part <= 1 else "more"
        text = (
            f"{own.label}: {milliseconds(own.step_ms)} per step instead of "
            f"{milliseconds(baseline.step_ms)}, {share(abs(1 - part))} {change}"
        )
        if comparison.is_one_task and own.val_loss is not None and baseline.val_loss is not None:
            after = f"after {own.steps} steps" if own.steps else "at the end"
            same = "" if own.steps == baseline.steps else f" after {baseline.steps}"
            text += (
                f"; validation loss {plain(own.val_loss, 4)} {after}, AllReduce "
                f"{plain(baseline.val_loss, 4)}{same}"
            )
        remarks.append(text + ".")
    if not any(own.is_baseline for own in comparison.figures):
        remarks.append(
            "None of the runs is an AllReduce: there is no speed-up to state. Train one with "
            "--pattern allreduce and name its folder too."
        )
    return remarks


def _pairs(runs: list[Run], figures: list[Figures]) -> list[Pair]:
    """Predictions of a run's own folder, else of a simulation of the same method."""
    pairs = []
    for run, own in zip(runs, figures, strict=True):
        if own.is_simulated:
            continue
        simulated = [
            _simulated(other, its)
            for other, its in zip(runs, figures, strict=True)
            if its.is_simulated and _method(its) == _method(own)
        ]
        prediction = run.prediction or next(filter(None, simulated), None)
        if prediction:
            pairs.append(Pair(run.name, prediction.source, _rows(prediction, own)))
    return pairs


def _simulated(run: Run, own: Figures) -> Prediction | None:
    """What a simulation says, in its words or by its trace."""
    if run.prediction or not own.step_ms:
        return run.prediction
    return Prediction(
        step_s=1e-3 * own.step_ms,
        compute_s=1e-3 * own.parts.compute_ms if own.parts else None,
        exposed_s=None if own.exposed_ms is None else 1e-3 * own.exposed_ms,
        bytes_per_host_per_step=[] if own.bytes_per_host is None else [own.bytes_per_host],
        source="simulator",
    )


def _method(figures: Figures) -> tuple[Any, ...]:
    topology = _SHORT.get(figures.topology, figures.topology)
    return topology, figures.pattern, figures.codec, figures.workers, figures.hosts


def _rows(prediction: Prediction, own: Figures) -> list[tuple[str, float | None, float | None]]:
    sent = prediction.bytes_per_host_per_step
    parts = own.parts
    compute = parts.compute_ms if parts and parts.update_ms is not None else None
    return [
        ("step, ms", 1e3 * prediction.step_s, own.step_ms),
        ("compute, ms", _ms(prediction.compute_s), compute),
        ("exposed communication, ms", _ms(prediction.exposed_s), own.exposed_ms),
        ("bytes per host and step", sum(sent) / len(sent) if sent else None, own.bytes_per_host),
    ]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds
