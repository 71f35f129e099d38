"""How figures look, and how one becomes a part of a page or a file of its own.

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
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

COLOURS = {
    "paper": ("#ffffff", "#14171a"),
    "panel": ("#f6f7f8", "#1d2125"),
    "ink": ("#16191d", "#eceff2"),
    "muted": ("#5c636b", "#a3abb4"),
    "grid": ("#dfe3e7", "#343a41"),
    "series-0": ("#3c4650", "#c3cad1"),
    "series-1": ("#0063b2", "#62b5ff"),
    "series-2": ("#b34700", "#ff9d66"),
    "series-3": ("#00735c", "#40cda6"),
    "series-4": ("#8f3a84", "#e39ad8"),
    "series-5": ("#7a6200", "#dcc14a"),
    "forward": ("#7cc0ee", "#9fd3f7"),
    "backward": ("#1f78b4", "#3f8fd0"),
    "update": ("#e3b505", "#f0cc42"),
    "wait": ("#c2410c", "#ff8f5c"),
    "exchange": ("#00875f", "#2fc493"),
}
"""By the name of the variable: in the light, in the dark."""

INK, MUTED, GRID, PAPER = "#101112", "#606162", "#d0d1d2", "#fafbfc"
COMPUTE, UPDATE, WAIT, EXCHANGE = "#a00102", "#a00304", "#a00506", "#a00708"
BACKWARD = "#a0090a"
SERIES = [f"#b0000{i}" for i in range(6)]
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
    **{mark: f"series-{i}" for i, mark in enumerate(SERIES)},
}

DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (10, 3)), (0, (3, 1, 1, 1)))
MARKERS = "soD^vP"
_CSS_DASHES = ("", "7 3", "2 2", "8 3 2 3", "13 4", "4 1.5 1.5 1.5")
_GLYPHS = "■●◆▲▼✚"
_FONTS = "system-ui, sans-serif"
_PX_PER_POINT = 1.6  # of a picture in a file: letters of 8 points are 13 pixels high

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
    i = index % len(SERIES)
    dashes = "-" if is_baseline else DASHES[i]
    return {"color": SERIES[i], "linestyle": dashes, "marker": MARKERS[i]}


def swatch(index: int, is_baseline: bool) -> Markup:
    """The same as a small picture, for tables and keys."""
    i = index % len(SERIES)
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


def light(mark: str) -> str:
    """What stands for the mark in the light."""
    return COLOURS[_VARIABLES[mark]][0]


def light_settings() -> Any:
    """As settings(), with light colours in place of marks: for pictures that are no SVG as well."""
    colours = {key: light(value) for key, value in _SETTINGS.items() if value in _VARIABLES}
    return matplotlib.rc_context({**matplotlib.rcParamsDefault, **_SETTINGS, **colours})


def _rounded(number: re.Match[str]) -> str:
    """A hundredth of a point is finer than any screen."""
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def variables() -> str:
    """The colours for the style sheet of a page."""
    light, dark = (
        "".join(f" --{name}: {pair[i]};" for name, pair in COLOURS.items()) for i in (0, 1)
    )
    follow = "@media (prefers-color-scheme: dark)"
    return f":root {{ color-scheme: light dark;{light} }}\n{follow} {{ :root {{{dark} }} }}\n"


def _drawn(figure: Figure, name: str) -> tuple[str, tuple[float, float]]:
    """What matplotlib writes between the tags of the SVG element, and the size in points."""
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
    text = re.sub(r"'DejaVu Sans'[^;\"]*", _FONTS, text)
    box = re.search(r'viewBox="0 0 (\S+) (\S+)"', text)
    assert box, "matplotlib writes a viewBox"
    return text[text.index(">") + 1 :], (float(box[1]), float(box[2]))


def to_svg(figure: Figure, name: str, alt: str) -> Markup:
    """The figure as an element of the page. `name` makes its identifiers unique, `alt` is what
    people hear who do not see it."""
    body, (width, height) = _drawn(figure, name)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(href="|url\()#', rf"\1#{name}-", body)
    for mark, variable in _VARIABLES.items():
        body = body.replace(mark, f"var(--{variable})")
    label = html.escape(alt)
    return Markup(  # matplotlib escapes what it writes
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{label}">'
        f"<title>{label}</title>{body}"
    )


def to_file(figure: Figure, name: str, alt: str) -> str:
    """The figure as a file of its own, as wide as there is room for. It follows the light or dark
    setting of its reader; programs that know no style sheets show the light one."""
    body, (width, height) = _drawn(figure, name)
    dark = []
    for mark, variable in _VARIABLES.items():
        in_light, instead = COLOURS[variable]
        body = body.replace(mark, in_light)
        if in_light not in body and mark != PAPER:
            continue
        dark += [
            f'[style*="{part}: {in_light}"] {{ {part}: {instead} !important; }}'
            for part in ("fill", "stroke")
        ]
    label = html.escape(alt)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="100%" '
        f'style="max-width:{_PX_PER_POINT * width:.0f}px" role="img" aria-label="{label}">\n'
        f"<title>{label}</title>\n"
        "<style>@media (prefers-color-scheme: dark) {\n" + "\n".join(dark) + "\n}</style>\n"
        f'<rect width="100%" height="100%" style="fill: {COLOURS["paper"][0]}"/>{body}'
    )


def to_pdf(figure: Figure) -> bytes:
    """The figure for a paper, in its light colours; the same bytes for the same figure."""
    for artist in figure.findobj():
        for what in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            read, write = (getattr(artist, f"{verb}_{what}", None) for verb in ("get", "set"))
            if read is None or write is None:
                continue
            mark = _mark_of(read())
            if mark in _VARIABLES:
                write(light(mark))
    out = io.BytesIO()
    with matplotlib.rc_context({"pdf.fonttype": 42}):
        figure.savefig(out, format="pdf", metadata={"CreationDate": None})
    return out.getvalue()


def _mark_of(colour: Any) -> str:
    """As a mark is written; empty for what is no single colour."""
    try:
        return str(to_hex(colour[0] if len(colour) == 1 else colour))
    except (TypeError, ValueError):
        return ""
