"""One series inside a chart: its colour, dashes and marker, its line, band and points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from . import style
from .chart_axes import Range, along, has_place, places
from .chart_values import Chart, Numbers, Series

MOST_POINTS = 400
_FEW_POINTS = 16
_SPACING = 40.0  # points between two markers along a line
_GAP = -1
_AGAIN = (0, (8, 2, 2, 2))
_DASHED, _DASHED_AGAIN = (0, (4, 2.5)), (0, (1.5, 2))
BAND = 0.16


class Extent(NamedTuple):
    """The x axis of a plot: the range along it, and its length in points."""

    shown: Range
    length: float

    def at(self, chart: Chart, x: Numbers) -> Numbers:
        """Where on it, from 0 to 1; NaN for what it has no place for."""
        there = np.where(has_place(x, chart.log_x), x, np.nan)
        low, high = self.shown
        return np.asarray((along(there, chart.log_x) - low) / (high - low))


@dataclass(frozen=True)
class Look:
    """How a series is told from the others, also in grey and by people who see fewer colours.
    Twelve are told apart; more series begin again with the first."""

    colour: str
    dashes: Any
    marker: str
    is_hollow: bool
    offset: float
    """Where along a line its first marker stands, 0 to 1 of a spacing."""
    is_sparse: bool
    """Markers along a long line, too."""

    def line(self) -> dict[str, Any]:
        return {"color": self.colour, "linestyle": self.dashes, "linewidth": 1.4}

    def marks(self) -> dict[str, Any]:
        inside, edge = (style.PAPER, self.colour) if self.is_hollow else (self.colour, style.PAPER)
        size = 5.2 if self.marker in "D^v" else 4.8
        return {
            "linestyle": "none",
            "marker": self.marker,
            "markersize": size,
            "markerfacecolor": inside,
            "markeredgecolor": edge,
            "markeredgewidth": 1.0 if self.is_hollow else 0.5,
        }


class Looks:
    """Looks by the names of series, in the order in which the charts name them first."""

    def __init__(self, charts: list[Chart]) -> None:
        names = [series.coloured_as for chart in charts for series in chart.series]
        self._places = {name: place for place, name in enumerate(dict.fromkeys(names))}

    def of(self, series: Series) -> Look:
        place = self._places[series.coloured_as]
        colours = len(style.SERIES)
        again = (place // colours) % 2 == 1
        dashes: Any = _AGAIN if again else "-"
        if series.dashed:
            dashes = _DASHED_AGAIN if again else _DASHED
        return Look(
            colour=style.SERIES[(place + 1) % colours],  # the first one is the grey of baselines
            dashes=dashes,
            marker="osD^vP"[place % colours],
            is_hollow=again,
            offset=(0.5 + 0.382 * place) % 1.0,
            is_sparse=len(self._places) > 1 and not series.like,
        )


def thinned(chart: Chart, series: Series, extent: Extent) -> Numbers:
    """Indices of the points to draw, -1 for a gap. All points of a short series; of a long one the
    first, the last, and the lowest and highest of each short piece of the x axis; a gap remains
    where a whole piece is missing."""
    seen = places(chart, series)
    every = np.where(seen, np.arange(len(seen)), _GAP)
    if len(every) <= MOST_POINTS:
        return every
    if not seen.any():
        return every[:0]
    pieces = _pieces(chart, series, extent)
    borders = np.flatnonzero(np.diff(pieces)) + 1
    kept = [int(np.flatnonzero(seen)[0])]
    for part in np.split(every, borders):
        there = part[part != _GAP]
        if not len(there):
            kept.append(_GAP)
            continue
        heights = series.y[there]
        kept += sorted((int(there[heights.argmin()]), int(there[heights.argmax()])))
    kept.append(int(np.flatnonzero(seen)[-1]))
    found = np.array(kept)
    return found[np.append(True, found[1:] != found[:-1])]


def _pieces(chart: Chart, series: Series, extent: Extent) -> Numbers:
    """Which piece of the x axis each point belongs to. Pieces are equally long on the picture, and
    of equally many points where x goes back and forth."""
    count = MOST_POINTS // 2 - 1
    size = len(series.x)
    ordered = has_place(series.x, False).all() and (np.diff(series.x) >= 0).all()
    if ordered:
        fraction = np.nan_to_num(extent.at(chart, series.x), nan=0.0)
    else:
        fraction = np.arange(size) / size
    return np.clip(np.floor(fraction * count), 0, count - 1).astype(int)


def draw_spread(axes: Axes, chart: Chart, series: Series, look: Look, extent: Extent) -> None:
    """The band, or error bars where there are points only; to be drawn below all lines."""
    if series.low is None or series.high is None:
        return
    indices = thinned(chart, series, extent)
    x, low, high = (_taken(values, indices) for values in (series.x, series.low, series.high))
    floor, ceiling = axes.get_ylim()
    x = np.where(has_place(high, chart.log_y) & ~np.isnan(low), x, np.nan)
    low, high = np.clip(low, floor, ceiling), np.clip(high, floor, ceiling)
    if not series.points:
        axes.fill_between(x, low, high, color=look.colour, alpha=BAND, linewidth=0)
        return
    y = np.clip(_taken(series.y, indices), low, high)
    axes.errorbar(
        x, y, (y - low, high - y), fmt="none", ecolor=look.colour, elinewidth=0.9, capsize=2
    )


def draw_series(axes: Axes, chart: Chart, series: Series, look: Look, extent: Extent) -> None:
    """The line and the markers."""
    indices = thinned(chart, series, extent)
    x, y = _taken(series.x, indices), _taken(series.y, indices)
    if not series.points:
        width = 1.1 if len(series.x) > MOST_POINTS else 1.4  # noise fills less of the picture
        axes.plot(x, y, **{**look.line(), "linewidth": width}, label=series.name)
    marked = _marked(series, look, extent.at(chart, x) * extent.length, indices != _GAP)
    if len(marked):
        axes.plot(x[marked], y[marked], **look.marks())


def is_marked(series: Series, look: Look) -> bool:
    """Whether a legend shows the marker."""
    return series.points or _is_marked_all_along(series) or look.is_sparse


def _is_marked_all_along(series: Series) -> bool:
    """Few points are measurements, each to be seen; a dashed line is a reference."""
    return not series.dashed and len(series.x) <= _FEW_POINTS


def _marked(series: Series, look: Look, at: Numbers, there: Any) -> Numbers:
    """The points that have a marker: all of a few, points alone, and some along a line. `at`:
    how many points from the left they are."""
    known = np.flatnonzero(there)
    if series.points or _is_marked_all_along(series):
        return known
    padded = np.concatenate(([False], there, [False]))
    marked = set(np.flatnonzero(there & ~padded[:-2] & ~padded[2:]).tolist())
    if look.is_sparse:
        wanted = look.offset * _SPACING
        for k in known.tolist():
            place = float(at[k])
            if place >= wanted:
                marked.add(k)
                wanted += _SPACING * np.floor((place - wanted) / _SPACING + 1)
    return np.array(sorted(marked), dtype=int)


def _taken(values: Numbers, indices: Any) -> Numbers:
    """The values in that order, NaN in gaps."""
    if not len(values):
        return values
    return np.where(indices == _GAP, np.nan, values[indices])
