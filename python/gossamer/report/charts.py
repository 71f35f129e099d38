"""Draws the figures of `gossamer lab` and `gossamer theory`, which come as JSON.

One SVG or PDF per figure, and one page of HTML with all of them. Nothing here imports the rest of
the package, so that drawing needs no torch.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from ..base.files import parse_json, read_bytes
from .errors import BROKEN, ReportError, missing_library
from .writing import write_whole

_FAILED = 1
_WRONG_INPUT = 2
_LARGEST = 1 << 30


def main(arguments: list[str]) -> int:
    """The command; returns 0 where all is written, 1 where it cannot be written, 2 where something
    is wrong with the figures or a library is missing. Says on stderr what it wrote."""
    options = _parse(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="surrogateescape")  # the name of a file may be any bytes
    try:
        values, pages = _modules()
        figures = values.figures_of(_read(options.figures))
        for path, content in pages.files(figures, options):
            write_whole(path, content)
            print(f"wrote {path}", file=sys.stderr)
    except ReportError as error:
        print(f"[{options.place}] {error.text}", file=sys.stderr)
        return _WRONG_INPUT
    except OSError as error:
        what = f"cannot write the picture: {error.strerror}, got '{error.filename}'"
        print(f"[{options.place}] {what}", file=sys.stderr)
        return _FAILED
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(_WRONG_INPUT, f"[charts] {message}\n")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="gossamer charts",
        description="Draws what `gossamer lab figure --json` prints: an object, or a list of them.",
    )
    parser.add_argument("figures", help="a file of JSON, or - for stdin")
    parser.add_argument("--svg", type=Path, help="the file of one figure")
    parser.add_argument(
        "--pdf", type=Path, help="the file of one figure for a paper; its caption in NAME.txt"
    )
    parser.add_argument("--folder", type=Path, help="writes NAME.svg of each figure here")
    parser.add_argument("--page", type=Path, help="writes one page of all figures")
    parser.add_argument("--title", default="Figures", help="of the page")
    parser.add_argument("--place", default="charts", help="opens messages")
    return parser.parse_args(arguments)


def _modules() -> tuple[ModuleType, ModuleType]:
    """What needs the libraries of the extra `report`."""
    try:
        from . import chart_pages, chart_values
    except ModuleNotFoundError as error:
        raise missing_library(error) from error
    return chart_values, chart_pages


def _read(name: str) -> object:
    try:
        data = sys.stdin.buffer.read(_LARGEST) if name == "-" else read_bytes(Path(name), _LARGEST)
        return parse_json(data.lstrip() or b"null")
    except OSError as error:
        raise ReportError(f"cannot read the figures: {error.strerror}", f"'{name}'") from error
    except BROKEN as error:
        raise ReportError(f"the figures are not JSON: {error}") from error
