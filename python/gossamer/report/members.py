"""Which workers were there in which step, of a run in which some were lost or came back."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from markupsafe import Markup
from matplotlib.ticker import MaxNLocator

from . import style
from .figures import thinned
from .measure import Figures
from .metrics import Metrics
from .run import Run
from .words import listed, milliseconds

_MOST_WORKERS = 64
_MOST_EVENTS = 20
_MOST_NAMES = 4  # of lost workers in a sentence
_COLUMNS = 160
_ROW, _LOW_ROW = 0.28, 0.1  # inches per worker: of a few, and of many


@dataclass
class Stay:
    """From its first step to its last one, without a gap."""

    rank: int
    first: int
    last: int


@dataclass
class Members:
    """The picture of a run, and its events in words."""

    label: str
    svg: Markup
    events: list[str]
    more_events: int


def stays_of(metrics: Metrics) -> list[Stay]:
    """By rank, then by step."""
    found: list[Stay] = []
    for rank, steps in sorted(metrics.own_step_ms.items()):
        for step in sorted(steps):
            if found and found[-1].rank == rank and found[-1].last == step - 1:
                found[-1].last = step
            else:
                found.append(Stay(rank, step, step))
    return found


def deaths(stays: list[Stay], last: int) -> list[Stay]:
    """Those that ended before the run did, whose last step was `last`: more than one step earlier,
    since the workers need not stop in the same one."""
    return [stay for stay in stays if stay.last < last - 1]


def returns(stays: list[Stay]) -> list[Stay]:
    """Those that follow another one of the same worker."""
    return [after for before, after in pairwise(stays) if before.rank == after.rank]


def values(run: Run) -> dict[str, Any]:
    """For JSON: which workers were lost after which step, and came back with which."""
    metrics = run.metrics
    stays = stays_of(metrics) if metrics and metrics.lost else []
    gone = deaths(stays, metrics.steps[-1]) if metrics and stays else []
    return {
        "lost": [{"worker": stay.rank, "last_step": stay.last} for stay in gone],
        "back": [{"worker": stay.rank, "first_step": stay.first} for stay in returns(stays)],
        "anew": [{"step": step, "workers": among} for step, among in _anew(metrics)],
    }


def _anew(metrics: Metrics | None) -> list[tuple[int, list[int]]]:
    """After which steps the topology was formed anew, and among whom."""
    return sorted(metrics.anew.items()) if metrics else []


def sentence(run: Run) -> str:
    """Who was lost, in a line; empty where nobody could go on without another one."""
    metrics = run.metrics
    if metrics is None or not metrics.steps:
        return ""
    if not metrics.lost:
        goes_on = run.setting("algorithm", "lost") == "go_on"
        return f"{run.name}: no worker was lost." if goes_on else ""
    stays, last = stays_of(metrics), metrics.steps[-1]
    gone = deaths(stays, last)
    if not gone:
        return f"{run.name}: no worker ended early, but some did not hear each other for a while."
    ranks = sorted({stay.rank for stay in gone})
    who = f"{len(ranks)} workers were"
    if len(ranks) <= _MOST_NAMES:
        names = listed([str(rank) for rank in ranks])
        who = f"worker {names} was" if len(ranks) == 1 else f"workers {names} were"
    often = f" ({len(gone)} times in all)" if len(gone) > len(ranks) else ""
    back = f"{len(returns(stays)) or 'none'} came back"
    left = sum(stay.last >= last - 1 for stay in stays)
    workers = len(metrics.own_step_ms)
    return f"{run.name}: {who} lost{often}, {back}; {left} of {workers} were there at the end."


def members(run: Run, own: Figures, index: int) -> Members | None:
    """None where nobody was lost, or it is not recorded."""
    metrics = run.metrics
    if metrics is None or not metrics.lost or len(metrics.own_step_ms) > _MOST_WORKERS:
        return None
    stays = stays_of(metrics)
    last = metrics.steps[-1]
    gone, back = deaths(stays, last), returns(stays)
    ranks = sorted(metrics.own_step_ms)
    has_loss = any(value is not None for value in metrics.loss)
    rows = max(_LOW_ROW, min(_ROW, 6.0 / len(ranks))) * len(ranks) + 0.3
    heights = [rows, 0.8, 1.2] if has_loss else [rows, 0.8]
    with style.settings():
        figure, panels = style.axes(
            9.2, 0.9 + sum(heights), rows=len(heights), sharex=True, height_ratios=heights
        )
        usual = median(ms for steps in metrics.own_step_ms.values() for ms in steps.values())
        _draw_stays(panels[0], metrics, stays, ranks, usual)
        _mark(panels[0], [(s.last + 1, ranks.index(s.rank)) for s in gone], style.WAIT, "x")
        _mark(panels[0], [(s.first, ranks.index(s.rank)) for s in back], style.EXCHANGE, "o")
        for step, _ in _anew(metrics):
            panels[0].axvline(step + 0.5, color=style.INK, linestyle=":", linewidth=1)
        panels[0].set_title(f"{own.label}: who was there")
        _draw_count(panels[1], metrics)
        if has_loss:
            places = [float(step) for step in metrics.steps]
            panels[2].plot(*thinned(places, metrics.loss), color=style.SERIES[1], linewidth=1.2)
            panels[2].set_ylabel("loss")
        for ax in panels:
            ax.grid(True, axis="x")
            ax.set_axisbelow(True)
        panels[-1].set_xlabel("steps")
        alt = (
            f"The workers of {own.label} by step: {_counted(len(gone), 'was', 'lost')}, "
            f"{_counted(len(back), 'came', 'back')}; the median step takes {milliseconds(usual)}"
        )
        svg = style.to_svg(figure, f"members-{index}", alt)
    events = _events(metrics, gone, back)
    return Members(own.label, svg, events[:_MOST_EVENTS], max(0, len(events) - _MOST_EVENTS))


def _counted(count: int, verb: str, end: str) -> str:
    verb = "were" if verb == "was" and count != 1 else verb
    return f"{count or 'none'} {verb} {end}"


def _draw_stays(
    ax: Any, metrics: Metrics, stays: list[Stay], ranks: list[int], usual: float
) -> None:
    """A bar per stay; where steps took longer than usual, it is covered from below."""
    width = max(1, -(-metrics.steps[-1] // _COLUMNS))
    for stay in stays:
        row = ranks.index(stay.rank)
        ax.barh(
            *(row, stay.last - stay.first + 1),
            left=stay.first - 0.5,
            height=0.7,
            color=style.COMPUTE,
            linewidth=0,
        )
        own = metrics.own_step_ms[stay.rank]
        for first in range(stay.first, stay.last + 1, width):
            last = min(first + width - 1, stay.last)
            slowest = max(own[step] for step in range(first, last + 1))
            share = 1 - usual / slowest if slowest > 1.5 * usual else 0.0
            if share > 0:
                left, size = first - 0.5, last - first + 1
                bottom = row + 0.35 - 0.7 * share
                ax.bar(
                    *(left, 0.7 * share, size, bottom),
                    align="edge",
                    color=style.WAIT,
                    linewidth=0,
                )
    ax.set_ylim(len(ranks) - 0.5, -0.5)
    every = max(1, len(ranks) // 16)
    shown = range(0, len(ranks), every)
    ax.set_yticks(list(shown), [f"worker {ranks[row]}" for row in shown])
    ax.tick_params(axis="y", length=0)


def _mark(ax: Any, places: list[tuple[int, int]], color: str, marker: str) -> None:
    if places:
        xs, ys = zip(*places, strict=True)
        look = {"color": color, "linestyle": "none", "markersize": 6, "markeredgewidth": 1.6}
        ax.plot(xs, ys, marker=marker, fillstyle="none", clip_on=False, **look)


def _draw_count(ax: Any, metrics: Metrics) -> None:
    count = [sum(step in own for own in metrics.own_step_ms.values()) for step in metrics.steps]
    ax.step(metrics.steps, count, where="mid", color=style.INK, linewidth=1.2)
    ax.set_ylim(0, len(metrics.own_step_ms) + 0.5)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    ax.set_ylabel("workers")


def _events(metrics: Metrics, gone: list[Stay], back: list[Stay]) -> list[str]:
    """In the order of their steps."""
    found = []
    for stay in gone:
        by = sorted(
            {each.by for each in metrics.lost if each.rank == stay.rank and _is_of(each.step, stay)}
        )
        seen = f", seen by {listed([str(rank) for rank in by])}" if by else ""
        found.append((stay.last, f"worker {stay.rank} did step {stay.last} last{seen}"))
    for stay in back:
        found.append((stay.first, f"worker {stay.rank} is back from step {stay.first} on"))
    for step, among in _anew(metrics):
        words = f"after step {step} the topology is formed anew among {len(among)} workers"
        found.append((step, words))
    return [words for _, words in sorted(found)]


def _is_of(step: int, stay: Stay) -> bool:
    """Whether a loss noticed in this step is that of the stay's end: a neighbour that is behind may
    notice it some steps earlier."""
    return step >= stay.last - 2
