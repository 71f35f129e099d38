"""The timeline: what the workers of several runs do in the same stretch of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup
from matplotlib.collections import LineCollection
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from . import style
from .compare import Comparison, title
from .figures import FILLS
from .measure import Figures
from .run import Run
from .trace import Span
from .window import Choice, Window, window_of
from .words import listed

_PANELS = 4
_LANES = 8
_INCHES = 9.2  # of a picture that is as wide as the page
_PAGE_REM = 42  # below this width of the page, the picture scrolls
_STEPS_PER_PAGE = 12  # of the first panel; with more steps it scrolls, too
_ROW, _LOW_ROW = 0.36, 0.15  # inches per worker: of a few, and of very many
_ROWS_INCHES = 9.0  # that all rows take together before they become low
_NUMBER = 0.55  # inches that the number of a step takes, with its word
_BARE_NUMBER = 0.2
_EDGE = 0.05  # inches; edges between narrower buckets are not drawn

_WORK = (0.05, 0.55)  # where of its row a worker's work is, from the top
_EXCHANGES = (0.62, 0.95)

Box = tuple[float, float, float, float]  # left and right in ms, top and bottom in rows


@dataclass
class Timeline:
    """The picture, how wide the page must at least show it, and what it shows in words."""

    svg: Markup
    least_rem: int
    note: str


def timeline(comparison: Comparison, choice: Choice) -> Timeline | None:
    """A panel per run with a trace, AllReduce first; None where no run has one. Raises ReportError
    where a trace has not the step from which on it is to be drawn."""
    shown: list[tuple[Run, Figures, Window]] = []
    for run, own in zip(comparison.runs, comparison.figures, strict=True):
        window = window_of(run.trace, choice, run.name) if run.trace else None
        if window and window.length > 0:
            shown.append((run, own, window))
    shown.sort(key=lambda each: not each[1].is_baseline)
    if not shown:
        return None
    shown = shown[:_PANELS]
    # As long as so many steps of the first panel: of AllReduce where there is one.
    wanted = shown[0][2].length
    length = min(wanted, *(window.readable for _, _, window in shown))
    pages = max(1.0, (choice.steps or 1) / _STEPS_PER_PAGE)
    rows = [len(window.workers) for _, _, window in shown]
    height = max(_LOW_ROW, min(_ROW, _ROWS_INCHES / sum(rows)))
    with style.settings():
        figure, panels = style.axes(
            _INCHES * pages,
            0.5 + sum(0.45 + height * count for count in rows),
            rows=len(shown),
            sharex=True,
            height_ratios=[height * count + 0.35 for count in rows],
        )
        for ax, (run, own, window) in zip(panels, shown, strict=True):
            _draw_panel(ax, window, length, _INCHES * pages)
            ax.set_title(_title(run, own))
        panels[-1].set_xlabel("ms")
        names = listed([f"{title(own)} ({own.label})" for _, own, _ in shown])
        alt = (
            f"Timelines, from the top: {names}, over the same {length / 1e3:.3g} ms. Where a "
            "worker waits it has a hatched bar; exchanges are thin bars below its work."
        )
        svg = style.to_svg(figure, "timeline", alt)
    windows = [window for _, _, window in shown]
    return Timeline(svg, round(_PAGE_REM * pages), _note(windows, length < wanted))


def _title(run: Run, own: Figures) -> str:
    source = ", simulated" if run.is_simulated else ""
    return f"{title(own)} ({own.label}{source})"


def _note(windows: list[Window], is_cut: bool) -> str:
    """What is not shown of the workers and of the time."""
    words = []
    most = max(windows, key=lambda window: len(window.trace.spans))
    if len(most.workers) < len(most.trace.spans):
        words.append(
            f"Of {len(most.trace.spans)} workers, the first {len(most.workers)} are drawn; "
            "--workers says how many."
        )
    if is_cut:
        words.append("It ends early: there is more than can be drawn.")
    return " ".join(words)


def _draw_panel(ax: Any, window: Window, length: float, inches: float) -> None:
    boxes: dict[str, list[Box]] = {}
    rows = len(window.workers)
    for row, worker in enumerate(window.workers):
        seen = [s for s in window.spans[worker] if s.begin < window.begin + length]
        lanes = sorted({span.bucket for span in seen if span.kind == "exchange"})
        for span in seen:
            top, bottom = _place(span, lanes)
            left = max(span.begin - window.begin, 0.0) / 1e3
            right = min(span.end - window.begin, length) / 1e3
            boxes.setdefault(span.kind, []).append((left, right, row + top, row + bottom))
    for kind, group in boxes.items():
        # One path for all: a picture of a thousand boxes stays small.
        ax.add_patch(PathPatch(_path(group), **FILLS[kind]))
    _mark_buckets(ax, boxes.get("backward", []), _EDGE * length / 1e3 / inches)
    _mark_steps(ax, window, length, inches)
    hosts = [window.trace.hosts.get(worker) for worker in window.workers]
    borders = [row for row in range(1, rows) if hosts[row] != hosts[row - 1]]
    if len(borders) < rows - 1:  # hosts with several workers
        ax.hlines(borders, 0, length / 1e3, color=style.MUTED, linewidth=0.5)
    ax.set_xlim(0, length / 1e3)
    ax.set_ylim(rows, -0.35)
    ax.set_yticks([row + 0.5 for row in range(rows)], [f"worker {w}" for w in window.workers])
    ax.tick_params(axis="y", length=0)
    ax.grid(True, axis="x")
    ax.set_axisbelow(True)


def _path(boxes: list[Box]) -> Path:
    corners = [
        corner
        for left, right, top, bottom in boxes
        for corner in ((left, top), (right, top), (right, bottom), (left, bottom), (left, top))
    ]
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    return Path(corners, codes * len(boxes))


def _place(span: Span, lanes: list[int]) -> tuple[float, float]:
    """Top and bottom in the row: exchanges have a lane per bucket, the last ones share one."""
    if span.kind != "exchange":
        return _WORK
    count = min(len(lanes), _LANES)
    height = (_EXCHANGES[1] - _EXCHANGES[0]) / count
    lane = min(lanes.index(span.bucket), count - 1)
    return _EXCHANGES[0] + lane * height, _EXCHANGES[0] + (lane + 0.8) * height


def _mark_buckets(ax: Any, boxes: list[Box], least: float) -> None:
    """Edges between buckets of a backward pass, where most are wide enough to be told apart."""
    widths = sorted(right - left for left, right, _, _ in boxes)
    if not widths or widths[len(widths) // 2] < least:
        return
    edges = [
        ((box[1], box[2]), (box[1], box[3]))
        for box, following in pairwise(boxes)
        if box[1] == following[0]
    ]
    ax.add_collection(LineCollection(edges, colors=style.PAPER, linewidths=0.5))


def _mark_steps(ax: Any, window: Window, length: float, inches: float) -> None:
    """A short line where each step begins, with its number above the first row where it fits."""
    lines = []
    for row, worker in enumerate(window.workers):
        starts = list(_starts(window.spans[worker], window.begin, length))
        lines += [((at / 1e3, row), (at / 1e3, row + 0.6)) for _, at in starts]
        if row == 0:
            _number_steps(ax, starts, length, inches)
    ax.add_collection(LineCollection(lines, colors=style.INK, linewidths=0.8))


def _starts(spans: list[Span], begin: float, length: float) -> Iterable[tuple[int, float]]:
    """Steps, and in µs behind `begin` when they start."""
    starts: dict[int, float] = {}
    for span in spans:
        if span.kind != "exchange":
            starts.setdefault(span.step, span.begin - begin)
    return ((step, at) for step, at in starts.items() if 0 <= at < length)


def _number_steps(ax: Any, starts: list[tuple[int, float]], length: float, inches: float) -> None:
    free = 0.0  # where the next number has room
    is_wide = len(starts) * _NUMBER < inches
    for step, at in starts:
        has_word = is_wide or free == 0.0
        room = (_NUMBER if has_word else _BARE_NUMBER) * length / inches
        if free <= at and at + room < length:
            words = f"step {step}" if has_word else f"{step}"
            ax.text(at / 1e3, -0.06, words, fontsize=7, color=style.INK)
            free = at + room
