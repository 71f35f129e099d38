"""The figures of a run: from its summary, else from its metrics, else from its trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .metrics import Metrics
from .run import Run
from .trace import Span, Trace

COMPUTE = ("forward", "backward")


@dataclass
class Parts:
    """Where the time of a step went, means over workers and steps. What is hidden ran beside
    compute and update; the other three are the step, one after the other."""

    compute_ms: float
    update_ms: float | None  # None: in compute_ms
    exposed_ms: float
    hidden_ms: float | None  # None: not recorded

    @property
    def step_ms(self) -> float:
        return self.compute_ms + (self.update_ms or 0.0) + self.exposed_ms


@dataclass
class Figures:
    """One row of the table of runs; None: the run has no data for it."""

    label: str
    topology: str
    pattern: str
    codec: str
    workers: int | None
    hosts: int | None
    steps: int | None
    warm_up: int  # of a simulation: steps before those
    step_ms: float | None
    samples_per_s: float | None  # of all workers together
    exposed_ms: float | None
    bytes_per_host: float | None
    val_loss: float | None
    disagreement: float | None
    parts: Parts | None
    is_simulated: bool
    link_bytes_per_s: float | None

    @property
    def is_baseline(self) -> bool:
        return self.pattern in ("allreduce", "ddp")


def figures_of(run: Run) -> Figures:
    """What is known of the run."""
    summary, metrics, trace = run.summary, run.metrics, run.trace
    parts = parts_of_trace(trace) if trace else None
    if parts is None and metrics:
        parts = _parts_of_metrics(metrics)
    checks = metrics.checks if metrics else []
    workers = summary.get("workers") or (metrics.workers if metrics else None)
    if workers is None and trace:
        workers = len(trace.spans)
    step_ms, exposed_ms = summary.get("ms_per_step"), summary.get("exposed_ms")
    if step_ms is None and metrics:
        known = warmed_up(metrics.steps)
        step_ms = _mean(metrics.step_ms[-known:])
        exposed_ms = _mean(metrics.exposed_ms[-known:])
    prediction = run.prediction
    if step_ms is None and parts:
        step_ms, exposed_ms = parts.step_ms, parts.exposed_ms
    if step_ms is None and prediction:
        step_ms = 1e3 * prediction.step_s
        exposed_ms = None if prediction.exposed_s is None else 1e3 * prediction.exposed_s
    sent = summary.get("bytes_per_host_per_step")
    if sent is None and trace:
        sent = _bytes_of_trace(trace)
    if sent is None and prediction and prediction.bytes_per_host_per_step and run.is_simulated:
        sent = _mean(prediction.bytes_per_host_per_step)
    return Figures(
        label=run.name,
        topology=str(summary.get("topology") or run.setting("algorithm", "topology", "")),
        pattern=str(summary.get("pattern") or run.setting("algorithm", "pattern", "")),
        codec=str(run.setting("algorithm", "codec", "")),
        workers=workers,
        hosts=_hosts(run),
        steps=_steps(run),
        warm_up=trace.warm_up if trace and trace.asked_steps else 0,
        step_ms=step_ms,
        samples_per_s=_samples_per_s(run, step_ms),
        exposed_ms=exposed_ms,
        bytes_per_host=sent,
        val_loss=_first(summary.get("val_loss"), *(each.val_loss for each in checks[::-1])),
        disagreement=_first(
            summary.get("disagreement"), *(each.disagreement for each in checks[::-1])
        ),
        parts=parts,
        is_simulated=run.is_simulated,
        link_bytes_per_s=summary.get("link_bytes_per_s"),
    )


def _samples_per_s(run: Run, step_ms: float | None) -> float | None:
    """What the lines count, else the batch that run.toml asks for, over the time of a step."""
    counted = run.metrics.samples if run.metrics else []
    samples = _mean(counted[-warmed_up(counted) :]) if counted else None
    if samples is None:
        asked = run.setting("data", "global_batch")
        samples = float(asked) if isinstance(asked, int) and run.metrics else None
    return 1e3 * samples / step_ms if samples and step_ms else None


def warmed_up(steps: Sequence[object]) -> int:
    """How many of the steps count: not the first three, or the first quarter where that is less."""
    return max(1, len(steps) - min(3, len(steps) // 4))


def _counted(trace: Trace, steps: list[int]) -> list[int]:
    """Those after the warm-up where the trace says how long it is."""
    after = [step for step in steps if step >= trace.warm_up] if trace.asked_steps else []
    return after or steps[-warmed_up(steps) :]


def parts_of_trace(trace: Trace) -> Parts | None:
    """Means over the workers and the steps that count; None where no step is whole."""
    steps = trace.steps()
    if not steps:
        return None
    counted = set(_counted(trace, steps))
    sums = dict.fromkeys(("compute", "update", "wait", "hidden"), 0.0)
    for spans in trace.spans.values():
        own = [span for span in spans if span.step in counted]
        busy = [span for span in own if span.kind in (*COMPUTE, "update")]
        for span in own:
            kind = "compute" if span.kind in COMPUTE else span.kind
            if kind in sums:
                sums[kind] += span.end - span.begin
        exchanges = merged(span for span in spans if span.kind == "exchange")
        sums["hidden"] += overlap(exchanges, merged(busy))
    scale = 1e-3 / (len(trace.spans) * len(counted))
    return Parts(*(scale * sums[key] for key in sums))


def merged(spans: Iterable[Span]) -> list[tuple[float, float]]:
    """The union of the spans as intervals in ascending order."""
    union: list[tuple[float, float]] = []
    for begin, end in sorted((span.begin, span.end) for span in spans):
        if union and begin <= union[-1][1]:
            union[-1] = union[-1][0], max(union[-1][1], end)
        else:
            union.append((begin, end))
    return union


def overlap(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> float:
    """The length that two unions of intervals have in common."""
    total, i, j = 0.0, 0, 0
    while i < len(one) and j < len(other):
        total += max(0.0, min(one[i][1], other[j][1]) - max(one[i][0], other[j][0]))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return total


def sent_per_step(run: Run) -> tuple[dict[tuple[int, int], float], str]:
    """Bytes per step by (from, to), and where that is from; empty where nothing is known."""
    if run.trace and run.trace.sent and (steps := len(run.trace.steps())):
        return {edge: count / steps for edge, count in run.trace.sent.items()}, "trace"
    if run.metrics and run.metrics.sent and run.metrics.steps:
        steps = len(run.metrics.steps)
        return {edge: count / steps for edge, count in run.metrics.sent.items()}, "metrics"
    return {}, ""


def host_of_workers(run: Run, workers: int) -> list[int]:
    """The host of each worker, as the trace or run.toml says; all on one where neither does."""
    if run.trace and run.trace.hosts.keys() >= set(range(workers)):
        return [run.trace.hosts[worker] for worker in range(workers)]
    hosts = run.setting("cluster", "hosts")
    words = str(run.setting("cluster", "per_host", "")).split(",")
    counts = [int(word) for word in words if word.strip().isdecimal()]
    if isinstance(hosts, int) and counts:
        counts = counts * hosts if len(counts) == 1 else counts
        dealt = [host for host, count in enumerate(counts) for _ in range(count)]
        if len(dealt) >= workers:
            return dealt[:workers]
    return [0] * workers


def _steps(run: Run) -> int | None:
    if run.summary.get("steps"):
        return int(run.summary["steps"])
    if run.metrics and run.metrics.steps:
        return run.metrics.steps[-1]
    if run.trace and run.trace.asked_steps:
        return run.trace.asked_steps
    steps = run.trace.steps() if run.trace else []
    return steps[-1] + 1 if steps else None  # the first one is 0, and may not be in the trace


def _hosts(run: Run) -> int | None:
    hosts = run.setting("cluster", "hosts")
    if hosts is None and run.trace:
        hosts = len(set(run.trace.hosts.values()))
    return hosts if isinstance(hosts, int) else None


def _bytes_of_trace(trace: Trace) -> float | None:
    hosts, steps = len(set(trace.hosts.values())), len(trace.steps())
    if not trace.sent or not steps:
        return None
    crossing = sum(
        count
        for (sender, receiver), count in trace.sent.items()
        if trace.hosts.get(sender) != trace.hosts.get(receiver)
    )
    return crossing / steps / hosts


def _parts_of_metrics(metrics: Metrics) -> Parts | None:
    known = warmed_up(metrics.steps)
    step_ms, exposed_ms = _mean(metrics.step_ms[-known:]), _mean(metrics.exposed_ms[-known:])
    if step_ms is None or exposed_ms is None:
        return None
    return Parts(step_ms - exposed_ms, None, exposed_ms, None)


def _mean(values: list[float] | list[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)
