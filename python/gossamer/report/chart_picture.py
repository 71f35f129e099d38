"""Charts side by side in one picture. Lengths are points; words make a picture higher."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.transforms import Affine2D, Transform

from . import style
from .chart_axes import TICK_SIZE, labels_of, set_up, shown_range, x_range, y_range
from .chart_curves import BAND, Extent, Looks, draw_series, draw_spread, is_marked
from .chart_text import text_width, wrapped
from .chart_values import Chart, Series

WIDTH = 331.0
_PLOT = 178.0
_PAD = 10.0
_HEADING, _TITLE, _WORDS = 12.0, 9.5, 8.0
_LINE = 1.35  # of the size of letters, from line to line
_SWATCH, _SWATCH_GAP, _ENTRY_GAP = 22.0, 6.0, 14.0


@dataclass
class _Legend:
    """Entries in columns of one width, read downwards."""

    entries: list[Series]
    width: float
    rows: int = 0
    names: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.entries:
            return
        around = _SWATCH + _SWATCH_GAP + _ENTRY_GAP
        widest = around + max(text_width(each.name, _WORDS) for each in self.entries)
        columns = max(1, min(int(self.width / widest), len(self.entries)))
        self.rows = -(-len(self.entries) // columns)
        self.width = min(widest, self.width)
        room = self.width - around + 0.01  # more than the widest, in spite of rounding
        self.names = [wrapped(each.name, room, _WORDS) for each in self.entries]

    @property
    def row_height(self) -> float:
        return _LINE * _WORDS * max((len(lines) for lines in self.names), default=0) + 1.5

    @property
    def height(self) -> float:
        return self.rows * self.row_height + 6 if self.rows else 0.0


class _Cell:
    """What one chart needs besides its plot."""

    def __init__(self, chart: Chart, has_legend: bool) -> None:
        room = WIDTH - 2 * _PAD
        self.chart = chart
        self.title = wrapped(chart.title, room, _TITLE, "bold")
        self.caption = wrapped(chart.caption, room, _WORDS)
        self.x_label = wrapped(chart.x, room - 50, _WORDS)
        self.y_label = wrapped(chart.y, _PLOT, _WORDS)
        self.legend = _Legend(chart.entries() if has_legend else [], room)

    @property
    def above(self) -> float:
        words = _LINE * (_TITLE * len(self.title) + _WORDS * len(self.caption))
        return _PAD + words + 5

    @property
    def under(self) -> float:
        """From the plot down to the legend."""
        return 4 + _LINE * (TICK_SIZE + _WORDS * len(self.x_label)) + 2

    @property
    def below(self) -> float:
        return self.under + self.legend.height + _PAD


def picture(title: str, charts: list[Chart], columns: int, looks: Looks | None = None) -> Figure:
    """At most `columns` charts per row. A name has the same look in all of them; one legend stands
    below where all have the same names. Only inside style.settings()."""
    looks = looks or Looks(charts)
    wide = max(1, min(columns, len(charts)))
    width = wide * WIDTH
    shared = _shared(charts)
    cells = [_Cell(chart, has_legend=not shared) for chart in charts]
    rows = [cells[k : k + wide] for k in range(0, len(cells), wide)]
    heading = wrapped(title, width - 2 * _PAD, _HEADING, "bold")
    legend = _Legend(shared, width - 2 * _PAD)
    top = _PAD + _LINE * _HEADING * len(heading) if heading else 0.0
    # The plots of a row stand side by side, however many words each has.
    aboves = [max(cell.above for cell in row) for row in rows]
    heights = [
        above + _PLOT + max(cell.below for cell in row)
        for above, row in zip(aboves, rows, strict=True)
    ]
    height = top + sum(heights) + (legend.height + _PAD if shared else 0.0)
    paper = _Paper(width, max(height, _PAD))
    paper.write(heading, _PAD, _PAD, _HEADING, weight="bold")
    for row, above, high in zip(rows, aboves, heights, strict=True):
        for k, cell in enumerate(row):
            _draw_chart(paper, cell, looks, k * WIDTH, top + above)
        top += high
    _draw_legend(paper, legend, looks, _PAD, top)
    return paper.figure


def _shared(charts: list[Chart]) -> list[Series]:
    """The entries of a legend for all charts; none where they differ, or there is one chart."""
    entries = [chart.entries() for chart in charts]
    names = [sorted((s.name, s.points, s.dashed) for s in each) for each in entries]
    return entries[0] if len(charts) > 1 and all(each == names[0] for each in names) else []


class _Paper:
    """A figure whose places are points from its upper left corner."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure = Figure(figsize=(width / 72, height / 72))
        FigureCanvasSVG(self.figure)

    @property
    def points(self) -> Transform:
        turned = Affine2D().scale(1 / 72, -1 / 72).translate(0, self.height / 72)
        return turned + self.figure.dpi_scale_trans

    def write(self, lines: list[str], x: float, y: float, size: float, **look: Any) -> None:
        """Lines of words from the height y on downwards."""
        for k, words in enumerate(lines):
            baseline = y + size * (1 + _LINE * k)
            self.figure.text(x, baseline, words, transform=self.points, fontsize=size, **look)


def _draw_chart(paper: _Paper, cell: _Cell, looks: Looks, left: float, begin: float) -> None:
    """The chart whose plot begins at that height."""
    chart = cell.chart
    end, top = begin + _PLOT, begin - cell.above
    paper.write(cell.title, left + _PAD, top + _PAD, _TITLE, weight="bold")
    caption_at = top + _PAD + _LINE * _TITLE * len(cell.title)
    paper.write(cell.caption, left + _PAD, caption_at, _WORDS, color=style.MUTED)
    x, y = x_range(chart), y_range(chart)
    if x is None or y is None:
        middle = (left + WIDTH / 2, (begin + end) / 2)
        paper.figure.text(
            *middle, "no data", transform=paper.points, ha="center", color=style.MUTED
        )
    else:
        x, y = shown_range(x, chart.log_x), shown_range(y, chart.log_y)
        _draw_plot(paper, cell, looks, (left, begin, end), (x, y))
    _draw_legend(paper, cell.legend, looks, left + _PAD, end + cell.under)


def _draw_plot(
    paper: _Paper,
    cell: _Cell,
    looks: Looks,
    place: tuple[float, float, float],
    ranges: tuple[tuple[float, float], tuple[float, float]],
) -> None:
    chart = cell.chart
    (left, top, bottom), (x, y) = place, ranges
    axes = paper.figure.add_axes((0, 0, 1, 1))
    axes.set_axisbelow(True)
    axes.grid(True)
    axes.tick_params(labelsize=TICK_SIZE, length=3, width=0.6)
    axes.tick_params(which="minor", length=1.8, width=0.5)
    set_up(axes, False, y, chart.log_y, bottom - top)
    numbers = max((text_width(word, TICK_SIZE) for word in labels_of(axes.yaxis)), default=0.0)
    begin = left + _PAD + _LINE * _WORDS * len(cell.y_label) + numbers + 8
    end = left + WIDTH - _PAD - 6
    axes.set_position(
        (
            begin / paper.width,
            1 - bottom / paper.height,
            (end - begin) / paper.width,
            (bottom - top) / paper.height,
        )
    )
    set_up(axes, True, x, chart.log_x, end - begin)
    extent = Extent(x, end - begin)
    for series in chart.series:
        draw_spread(axes, chart, series, looks.of(series), extent)
    for series in chart.series:
        draw_series(axes, chart, series, looks.of(series), extent)
    middle = (begin + end) / 2
    under = bottom + 4 + _LINE * TICK_SIZE
    paper.write(cell.x_label, middle, under, _WORDS, ha="center")
    for k, words in enumerate(cell.y_label):
        at = (left + _PAD + _WORDS * (1 + _LINE * k), (top + bottom) / 2)
        paper.figure.text(*at, words, transform=paper.points, rotation=90, ha="right", va="center")


def _draw_legend(paper: _Paper, legend: _Legend, looks: Looks, left: float, top: float) -> None:
    figure, points = paper.figure, paper.points
    for k, (series, lines) in enumerate(zip(legend.entries, legend.names, strict=True)):
        x = left + (k // legend.rows) * legend.width
        y = top + 6 + (k % legend.rows) * legend.row_height
        middle = y + 0.55 * _WORDS
        look = looks.of(series)
        if series.low is not None and not series.points:
            box = Rectangle((x, middle - 4), _SWATCH, 8, color=look.colour, alpha=BAND, lw=0)
            box.set_transform(points)
            figure.add_artist(box)
        if not series.points:
            ends = ([x, x + _SWATCH], [middle, middle])
            figure.add_artist(Line2D(*ends, transform=points, **look.line()))
        if is_marked(series, look):
            spot = ([x + _SWATCH / 2], [middle])
            figure.add_artist(Line2D(*spot, transform=points, **look.marks()))
        paper.write(lines, x + _SWATCH + _SWATCH_GAP, y, _WORDS)
