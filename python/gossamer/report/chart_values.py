"""Figures as the program's JSON has them: curves, points and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .errors import BROKEN, ReportError

Numbers = np.ndarray[Any, np.dtype[np.float64]]

# What XML has no place for: control characters, halves of surrogates, two that are no characters.
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@dataclass
class Series:
    """One curve. What JSON has null for is NaN: a point without a place, where the line has a gap.
    `like` names the series whose colour this one takes."""

    name: str
    x: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    points: bool = False
    dashed: bool = False
    like: str = ""

    @property
    def coloured_as(self) -> str:
        return self.like or self.name


@dataclass
class Chart:
    """One pair of axes."""

    title: str
    caption: str
    x: str
    y: str
    log_x: bool
    log_y: bool
    series: list[Series]

    def entries(self) -> list[Series]:
        """What a legend lists: series with a name, alike ones once."""
        found = {(s.name, s.points, s.dashed): s for s in reversed(self.series) if s.name}
        return list(reversed(found.values()))

    def described(self) -> str:
        """`Loss: error against step; ring, torus`."""
        axes = f"{self.y} against {self.x}" if self.x and self.y else ""
        said = ": ".join(part for part in (self.title, axes) if part)
        names = ", ".join(dict.fromkeys(each.name for each in self.entries()))
        return "; ".join(part for part in (said, names) if part) or "Chart"


@dataclass
class Figure:
    """What stands under one heading."""

    name: str = ""
    title: str = ""
    text: str = ""
    charts: list[Chart] = field(default_factory=list)
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    columns: int = 2


def figures_of(found: Any) -> list[Figure]:
    """Those of an object, or of a list of objects. Raises ReportError."""
    try:
        return [_figure(each) for each in (found if isinstance(found, list) else [found])]
    except ReportError:
        raise
    except BROKEN as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ReportError(
            f"these are not figures: {what}", None, "give what `gossamer lab figure --json` prints"
        ) from error


def _figure(found: dict[str, Any]) -> Figure:
    columns = int(found.get("columns", 2))
    if columns < 1:
        raise ReportError("columns must be 1 or more", columns)
    return Figure(
        name=_text(found.get("figure")),
        title=_text(found.get("title")),
        text=_text(found.get("text")),
        charts=[_chart(each) for each in found.get("charts", [])],
        header=[_text(cell) for cell in found.get("header", [])],
        rows=[[_text(cell) for cell in row] for row in found.get("rows", [])],
        columns=columns,
    )


def _chart(found: dict[str, Any]) -> Chart:
    chart = Chart(
        title=_text(found.get("title")),
        caption=_text(found.get("caption")),
        x=_text(found.get("x")),
        y=_text(found.get("y")),
        log_x=bool(found.get("log_x", False)),
        log_y=bool(found.get("log_y", False)),
        series=[_series(each) for each in found["series"]],
    )
    for series in chart.series:
        _check_lengths(series, chart)
    return chart


def _series(found: dict[str, Any]) -> Series:
    low, high = found.get("low"), found.get("high")
    return Series(
        name=_text(found.get("name")),
        x=_numbers(found["x"]),
        y=_numbers(found["y"]),
        low=None if low is None else _numbers(low),
        high=None if high is None else _numbers(high),
        points=bool(found.get("points", False)),
        dashed=bool(found.get("dashed", False)),
        like=_text(found.get("like")),
    )


def _check_lengths(series: Series, chart: Chart) -> None:
    count = len(series.x)
    spread = [len(bound) for bound in (series.low, series.high) if bound is not None]
    if len(series.y) == count and spread in ([], [count, count]):
        return
    low, high = ("none" if bound is None else len(bound) for bound in (series.low, series.high))
    raise ReportError(
        f"series '{series.name}' of '{chart.title}' needs one y (and low and high or neither) "
        "per x",
        f"x {count}, y {len(series.y)}, low {low}, high {high}",
    )


def _numbers(values: list[float | None]) -> Numbers:
    if not isinstance(values, list):
        raise TypeError(f"a list of numbers is needed, got {values!r}")
    return np.array([np.nan if value is None else float(value) for value in values])


def _text(value: Any) -> str:
    """As text that every page and picture takes."""
    return "" if value is None else _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", str(value))
