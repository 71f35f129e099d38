"""Figures as files: an SVG of each, and one page of all."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markupsafe import Markup

from . import pages, style
from .chart_curves import Looks
from .chart_picture import picture
from .chart_values import Figure
from .errors import ReportError


def files(figures: list[Figure], options: argparse.Namespace) -> Iterator[tuple[Path, str | bytes]]:
    """What the options ask for: paths and contents. Raises ReportError."""
    for option in ("svg", "pdf"):
        if getattr(options, option) and len(figures) != 1:
            raise ReportError(f"--{option} is for one figure", f"{len(figures)} figures")
    if options.svg:
        yield options.svg, svg(figures[0])
    if options.pdf:
        yield options.pdf, pdf(figures[0])
        yield options.pdf.with_suffix(".txt"), caption(figures[0])
    if options.folder:
        for figure, anchor in zip(figures, anchors(figures), strict=True):
            yield options.folder / f"{anchor}.svg", svg(figure)
    if options.page:
        yield options.page, page(options.title, figures)


def svg(figure: Figure) -> str:
    """A file of its own; the same bytes for the same figure."""
    said = [chart.described() for chart in figure.charts]
    alt = ". ".join([figure.title, *said] if figure.title else said) or "Chart"
    with style.settings():
        drawn = picture(figure.title, figure.charts, figure.columns)
        return style.to_file(drawn, "chart", alt)


def pdf(figure: Figure) -> bytes:
    """The charts for a paper: headings and captions are left to it."""
    bare = [dataclasses.replace(each, title="", caption="") for each in figure.charts]
    several = len(figure.charts) > 1
    with style.settings():
        drawn = picture("", figure.charts if several else bare, figure.columns)
        return style.to_pdf(drawn)


def caption(figure: Figure) -> str:
    """What the charts show, and with which numbers they were made."""
    said = [figure.title, *(each.caption for each in figure.charts), figure.text]
    ended = [f"{text.rstrip('.')}." for text in dict.fromkeys(said) if text.strip()]
    return " ".join(ended).replace("\n\n", " ") + "\n"


def inline(figure: Figure, anchor: str) -> list[Markup]:
    """A picture per chart, which a phone shows one below the other; a name has the same colour in
    all of them."""
    looks = Looks(figure.charts)
    with style.settings():
        return [
            style.to_svg(picture("", [chart], 1, looks), f"{anchor}-{k}", chart.described())
            for k, chart in enumerate(figure.charts)
        ]


def page(title: str, figures: list[Figure]) -> str:
    """One file that needs no other: contents, then the figures one under another."""
    sections = [
        _section(figure, anchor) for figure, anchor in zip(figures, anchors(figures), strict=True)
    ]
    return pages.render("charts.html", headline=title, sections=sections)


def _section(figure: Figure, anchor: str) -> dict[str, Any]:
    widths = [len(figure.header), *(len(row) for row in figure.rows)]
    wide = max(widths)
    rows = [[*row, *[""] * (wide - len(row))] for row in figure.rows]
    return {
        "anchor": anchor,
        "title": figure.title or figure.name or anchor,
        "paragraphs": [each for each in figure.text.split("\n\n") if each.strip()],
        "pictures": inline(figure, anchor),
        "header": [*figure.header, *[""] * (wide - len(figure.header))] if figure.header else [],
        "rows": rows,
        "is_number": [_holds_numbers([row[k] for row in rows]) for k in range(wide)],
    }


def anchors(figures: list[Figure]) -> list[str]:
    """Letters, digits, - and _ of the names; others where those are empty or taken."""
    found: list[str] = []
    for k, figure in enumerate(figures, 1):
        anchor = re.sub(r"[^A-Za-z0-9_]", "-", figure.name) or f"figure-{k}"
        while anchor in found:
            anchor += f"-{k}"
        found.append(anchor)
    return found


_NUMBER = re.compile("[-+±\N{MINUS SIGN}]?[.0-9]")


def _holds_numbers(cells: list[str]) -> bool:
    """Whether the column holds numbers, but for empty cells."""
    there = [cell for cell in cells if cell]
    return bool(there) and all(_NUMBER.match(cell) for cell in there)
