"""The timeline: what the workers of one host do in the same few milliseconds of several runs."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from . import style
from .compare import Comparison, title
from .figures import FILLS
from .measure import Figures
from .run import Run
from .trace import Span, Trace
from .words import listed

_PANELS = 4
_WORKERS = 4
_LANES = 8
_STEPS = 2
_MOST_SPANS = 4000
_NUMBER = 0.06  # of the width, for the number of a step

_WORK = (0.05, 0.55)  # where of its row a worker's work is, from the top
_EXCHANGES = (0.62, 0.95)


def timeline(comparison: Comparison) -> Markup | None:
    """A panel per run with a trace, AllReduce first; None where no run has one."""
    shown = [
        (run, own, run.trace)
        for run, own in zip(comparison.runs, comparison.figures, strict=True)
        if run.trace and run.trace.steps() and _window(run.trace, _STEPS) > 0
    ]
    shown.sort(key=lambda each: not each[1].is_baseline)
    if not shown:
        return None
    # As long as so many steps of the first panel: of AllReduce where there is one.
    shown = shown[:_PANELS]
    length = min(_window(shown[0][2], _STEPS), *(_readable(trace) for _, _, trace in shown))
    rows = [_rows(trace) for _, _, trace in shown]
    with style.settings():
        figure, panels = style.axes(
            9.2,
            0.5 + sum(0.45 + 0.36 * len(each) for each in rows),
            rows=len(shown),
            sharex=True,
            height_ratios=[len(each) + 0.9 for each in rows],
        )
        for ax, (run, own, trace), workers in zip(panels, shown, rows, strict=True):
            _draw_panel(ax, trace, workers, length)
            ax.set_title(_title(run, own))
        panels[-1].set_xlabel("ms")
        names = listed([f"{title(own)} ({own.label})" for _, own, _ in shown])
        alt = (
            f"Timelines, from the top: {names}, over the same {length / 1e3:.3g} ms. Where a "
            "worker waits it has a hatched bar; exchanges are thin bars below its work."
        )
        return style.to_svg(figure, "timeline", alt)


def _title(run: Run, own: Figures) -> str:
    source = ", simulated" if run.is_simulated else ""
    return f"{title(own)} ({own.label}{source})"


def _first_step(trace: Trace) -> int:
    """The step at which the window opens: past the first ones, which are not like the others."""
    steps = trace.steps()
    return steps[len(steps) // 3]


def _rows(trace: Trace) -> list[int]:
    """The workers of the first host, not too many."""
    workers = sorted(trace.spans)
    first = trace.hosts.get(workers[0])
    return [each for each in workers if trace.hosts.get(each) == first][:_WORKERS]


def _begin(trace: Trace) -> float:
    """When the first of the shown workers begins the step at which the window opens."""
    step = _first_step(trace)
    return min(
        span.begin
        for worker in _rows(trace)
        for span in trace.spans[worker]
        if span.step == step and span.kind != "exchange"
    )


def _window(trace: Trace, steps: int) -> float:
    """µs from the begin of the window until its workers have done so many steps."""
    last = _first_step(trace) + steps - 1
    ends = [
        span.end
        for worker in _rows(trace)
        for span in trace.spans[worker]
        if span.step <= last and span.kind != "exchange"
    ]
    return max(ends) - _begin(trace)


def _readable(trace: Trace) -> float:
    """µs from the begin of the window until there are more spans than can be drawn."""
    begin = _begin(trace)
    later = sorted(s.begin for w in _rows(trace) for s in trace.spans[w] if s.end > begin)
    return later[_MOST_SPANS] - begin if len(later) > _MOST_SPANS else math.inf


def _draw_panel(ax: Any, trace: Trace, workers: list[int], length: float) -> None:
    begin = _begin(trace)
    boxes: dict[str, list[Rectangle]] = {}
    for row, worker in enumerate(workers):
        seen = [s for s in trace.spans[worker] if s.end > begin and s.begin < begin + length]
        lanes = sorted({span.bucket for span in seen if span.kind == "exchange"})
        for span in seen:
            top, bottom = _place(span, lanes)
            left = max(span.begin, begin) - begin
            right = min(span.end, begin + length) - begin
            box = Rectangle((left / 1e3, row + top), (right - left) / 1e3, bottom - top)
            boxes.setdefault(span.kind, []).append(box)
        _mark_steps(ax, seen, row, begin, length)
    for kind, group in boxes.items():
        ax.add_collection(PatchCollection(group, **FILLS[kind]))
    ax.set_xlim(0, length / 1e3)
    ax.set_ylim(len(workers), -0.35)
    ax.set_yticks([row + 0.5 for row in range(len(workers))], [f"worker {w}" for w in workers])
    ax.tick_params(axis="y", length=0)
    ax.grid(True, axis="x")
    ax.set_axisbelow(True)


def _place(span: Span, lanes: list[int]) -> tuple[float, float]:
    """Top and bottom in the row: exchanges have a lane per bucket, the last ones share one."""
    if span.kind != "exchange":
        return _WORK
    count = min(len(lanes), _LANES)
    height = (_EXCHANGES[1] - _EXCHANGES[0]) / count
    lane = min(lanes.index(span.bucket), count - 1)
    return _EXCHANGES[0] + lane * height, _EXCHANGES[0] + (lane + 0.8) * height


def _mark_steps(ax: Any, spans: list[Span], row: int, begin: float, length: float) -> None:
    """A tick where each step begins, with its number above the first row where there is room."""
    starts: dict[int, float] = {}
    for span in spans:
        if span.kind != "exchange":
            starts.setdefault(span.step, span.begin)
    free = 0.0  # where the next number has room
    for step, at in [(step, at - begin) for step, at in starts.items() if at >= begin]:
        ax.plot([at / 1e3] * 2, [row, row + 0.6], color=style.INK, linewidth=0.8)
        if row == 0 and free <= at < (1 - _NUMBER) * length:
            ax.text(at / 1e3, -0.06, f"step {step}", fontsize=7, color=style.INK)
            free = at + _NUMBER * length
