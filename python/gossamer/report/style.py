"""How figures look, and how one becomes a part of the page.

Colours are drawn as marks that stand for variables of the page's style sheet, so that light and
dark are the style sheet's business. What a colour tells is always told by a form, too.
"""

from __future__ import annotations

import html
import io
import re
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = "#101112", "#606162", "#d0d1d2", "#fafbfc"
COMPUTE, UPDATE, WAIT, EXCHANGE = "#a00102", "#a00304", "#a00506", "#a00708"
BACKWARD = "#a0090a"
_SERIES = [f"#b0000{i}" for i in range(6)]
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    PAPER: "paper",
    COMPUTE: "forward",
    BACKWARD: "backward",
    UPDATE: "update",
    WAIT: "wait",
    EXCHANGE: "exchange",
    **{mark: f"series-{i}" for i, mark in enumerate(_SERIES)},
}

_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (10, 3)), (0, (3, 1, 1, 1)))
_MARKERS = "soD^vP"
_CSS_DASHES = ("", "7 3", "2 2", "8 3 2 3", "13 4", "4 1.5 1.5 1.5")
_GLYPHS = "■●◆▲▼✚"

_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "hatch.linewidth": 0.8,
}

_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def look(index: int, is_baseline: bool) -> dict[str, Any]:
    """Colour, dashes and marker of run `index`, as keywords of a line."""
    i = index % len(_SERIES)
    dashes = "-" if is_baseline else _DASHES[i]
    return {"color": _SERIES[i], "linestyle": dashes, "marker": _MARKERS[i]}


def swatch(index: int, is_baseline: bool) -> Markup:
    """The same as a small picture, for tables and keys."""
    i = index % len(_SERIES)
    dashes = "" if is_baseline else _CSS_DASHES[i]
    return Markup(
        '<svg class="swatch" viewBox="0 0 34 12" aria-hidden="true" '
        'style="color:var(--series-{0})">'
        '<path d="M0 6H34" stroke="currentColor" stroke-width="2" stroke-dasharray="{1}"/>'
        '<text x="17" y="10" text-anchor="middle" font-size="12" fill="currentColor">{2}</text>'
        "</svg>"
    ).format(i, dashes, _GLYPHS[i])


def axes(width: float, height: float, rows: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure of so many inches and its axes, one below the other. Only inside `settings()`."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    made = figure.subplots(rows, 1, squeeze=False, **options)
    return figure, [row[0] for row in made]


def settings() -> Any:
    """The context in which all figures are made and turned into text."""
    return matplotlib.rc_context({**matplotlib.rcParamsDefault, **_SETTINGS})


def _rounded(number: re.Match[str]) -> str:
    """A hundredth of a point is finer than any screen."""
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def to_svg(figure: Figure, name: str, alt: str) -> Markup:
    """The figure as an element of the page. `name` makes its identifiers unique, `alt` is what
    people hear who do not see it."""
    with matplotlib.rc_context({"svg.hashsalt": name}):
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'\s*xmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace("xlink:href", "href")
    text = re.sub(r' d="[^"]*"', lambda path: _NUMBER.sub(_rounded, path[0]), text)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{name}-", text)
    text = re.sub(r"'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", text)
    for mark, variable in _VARIABLES.items():
        text = text.replace(mark, f"var(--{variable})")
    box = re.search(r'viewBox="([^"]*)"', text)
    assert box, "matplotlib writes a viewBox"
    body = text[text.index(">") + 1 :]
    label = html.escape(alt)
    return Markup(  # matplotlib escapes what it writes
        f'<svg viewBox="{box[1]}" role="img" aria-label="{label}"><title>{label}</title>{body}'
    )
