"""The axes of a chart: what range they show, and which ticks they have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, Formatter, Locator, MaxNLocator, NullFormatter

from .chart_text import text_width, tick_words
from .chart_values import Chart, Numbers, Series

TICK_SIZE = 7.5

_HUGE = 1e300
_TINY = 1e-300
_MARGIN = 0.04
_EXACT = 1e-9
_STRIDES = (1, 2, 3, 5, 10, 20, 50, 100, 200)

Range = tuple[float, float]


def has_place(values: Numbers, log: bool) -> Any:
    """Which values an axis has a place for: finite ones below 1e300, on a log axis positive."""
    with np.errstate(invalid="ignore"):
        return (np.abs(values) <= _HUGE) & ((values >= _TINY) if log else True)


def places(chart: Chart, series: Series) -> Any:
    """Which points of the series are seen."""
    return has_place(series.x, chart.log_x) & has_place(series.y, chart.log_y)


def along(values: Any, log: bool) -> Any:
    """Where along the axis: the values, or their logarithms to base 10."""
    return np.log10(values) if log else values


def x_range(chart: Chart) -> Range | None:
    """Of all points that are seen, along the axis; None: there are none."""
    found = [along(each.x[places(chart, each)], chart.log_x) for each in chart.series]
    return _hull(np.concatenate(found)) if found else None


def y_range(chart: Chart) -> Range | None:
    """Of the lines and, as far as that does not make them flat, of their bands."""
    lines: list[Numbers] = []
    bands: list[Numbers] = []
    for series in chart.series:
        seen = places(chart, series)
        lines.append(along(series.y[seen], chart.log_y))
        for bound in (series.low, series.high):
            if bound is not None:
                bound = bound[seen]
                bands.append(along(bound[has_place(bound, chart.log_y)], chart.log_y))
    line = _hull(np.concatenate(lines)) if lines else None
    band = _hull(np.concatenate(bands)) if bands else None
    if line is None or band is None:
        return line
    most = max(line[1] - line[0], 1.0) if chart.log_y else line[1] - line[0]
    least, greatest = min(line[0], band[0]), max(line[1], band[1])
    if most == 0:
        return least, greatest
    return max(least, line[0] - most), min(greatest, line[1] + most)


def _hull(values: Numbers) -> Range | None:
    return (float(values.min()), float(values.max())) if len(values) else None


def shown_range(data: Range, log: bool) -> Range:
    """What an axis shows of data in that range along it: a little more on both sides, from zero
    where the data come close to it, a range around the value where there is only one."""
    low, high = data
    margin = _MARGIN * (high - low)
    if log:
        return (low - 0.5, high + 0.5) if high - low < 1e-6 else (low - margin, high + margin)
    largest = max(abs(low), abs(high))
    if largest < _TINY:
        return -1.0, 1.0
    # Below a millionth the labels would need more digits than fit.
    if high - low < 1e-6 * largest:
        return low - 0.1 * largest, high + 0.1 * largest
    starts_at_zero = 0 <= low <= 0.2 * high
    ends_at_zero = 0 >= high >= 0.2 * low
    return 0.0 if starts_at_zero else low - margin, 0.0 if ends_at_zero else high + margin


def set_up(axes: Axes, is_x: bool, shown: Range, log: bool, length: float) -> None:
    """Range, ticks and labels of the x or the y axis, which is so many points long."""
    axis: Axis = axes.xaxis if is_x else axes.yaxis
    if log:
        (axes.set_xscale if is_x else axes.set_yscale)("log", nonpositive="mask")
    low, high = (10.0 ** min(max(end, -307.0), 307.0) if log else end for end in shown)
    (axes.set_xlim if is_x else axes.set_ylim)(low, high)
    axis.set_major_locator(_locator(shown, log, length, is_x))
    axis.set_minor_locator(FixedLocator(_between(shown, length) if log else []))
    axis.set_major_formatter(_Words(log))
    axis.set_minor_formatter(NullFormatter())


def labels_of(axis: Axis) -> list[str]:
    """The words along the axis."""
    low, high = axis.get_view_interval()
    seen = [float(tick) for tick in axis.get_majorticklocs() if low <= tick <= high]
    return axis.get_major_formatter().format_ticks(seen)


class _Words(Formatter):
    """All labels of an axis together, so that they have equally many decimals."""

    def __init__(self, log: bool) -> None:
        self._log = log

    def __call__(self, x: float, pos: int | None = None) -> str:
        return self.format_ticks([x])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return tick_words([float(f"{value:.12g}") for value in values], self._log)


def _locator(shown: Range, log: bool, length: float, is_x: bool) -> Locator:
    """The most ticks for which labels do not come close to each other."""
    span = shown[1] - shown[0]
    if log and span < 2:
        fine = _decades(shown, 1, (1, 2, 5))
        if len(fine) >= 3 and _are_apart(fine, shown, True, length, is_x):
            return FixedLocator(fine)
    if log and (span >= 2 or len(_decades(shown, 1, (1,))) > 1):
        sets = [_decades(shown, stride, (1,)) for stride in _STRIDES]
        return FixedLocator(
            next((each for each in sets if _are_apart(each, shown, True, length, is_x)), sets[-1])
        )
    ends = (10.0 ** shown[0], 10.0 ** shown[1]) if log else shown
    for count in range(max(int(length / (44 if is_x else 26)), 2), 1, -1):
        locator = MaxNLocator(count, steps=[1, 2, 5, 10])
        if _are_apart(_inside(locator.tick_values(*ends), ends), shown, log, length, is_x):
            break
    return locator


def _inside(ticks: Any, ends: Range) -> list[float]:
    slack = _EXACT * (ends[1] - ends[0])
    return [float(tick) for tick in ticks if ends[0] - slack <= tick <= ends[1] + slack]


def _decades(shown: Range, stride: int, factors: Sequence[int]) -> list[float]:
    first = math.floor(shown[0] / stride) * stride
    found = [
        float(f"{factor}e{exponent}")
        for exponent in range(first, math.ceil(shown[1]) + 1, stride)
        for factor in factors
        if shown[0] - _EXACT <= exponent + math.log10(factor) <= shown[1] + _EXACT
    ]
    return [value for value in found if 1e-307 <= value <= 1e307]


def _between(shown: Range, length: float) -> list[float]:
    """Minor ticks of a log axis."""
    decade = length / (shown[1] - shown[0])
    if decade < 3:
        return []
    return _decades(shown, 1, (1,) if decade < 18 else range(1, 10))


def _are_apart(ticks: Sequence[float], shown: Range, log: bool, length: float, is_x: bool) -> bool:
    if not ticks:
        return True
    words = _Words(log).format_ticks(ticks)
    wide = [text_width(word, TICK_SIZE) if is_x else TICK_SIZE for word in words]
    at = (np.asarray(along(np.asarray(ticks), log)) - shown[0]) / (shown[1] - shown[0]) * length
    gap = 8 if is_x else 6
    return all(
        at[k + 1] - at[k] >= (wide[k] + wide[k + 1]) / 2 + gap for k in range(len(ticks) - 1)
    )
