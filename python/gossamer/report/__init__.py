"""`gossamer report RUN…`: one offline HTML file about one or several run folders.

Of the rest of the package only `base.files` is imported, so that a report needs no torch.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from ..base.files import UnfitFileError, printable
from .errors import ReportError, missing_library
from .writing import write_whole

_MOST = 100_000
_FAILED = 1
_WRONG_INPUT = 2


def main(arguments: list[str]) -> int:
    """The command; returns 0 where the page is written, 1 where it cannot be written, 2 where
    something is wrong with the runs or a library is missing."""
    options = _parse(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # the name of a file may be any bytes
    try:
        from .run import read_runs
        from .window import Choice

        page, compare = _modules()
        comparison = compare.compare(read_runs(options.run))
        out = options.out or _default_out(options.run)
        choice = Choice(options.workers, options.steps, options.from_step)
        text = page.render(comparison, _version(), choice)
        write_whole(out, text)
    except ReportError as error:
        print(error, file=sys.stderr)
        return _WRONG_INPUT
    except OSError as error:
        print(f"[report] {printable(error)}", file=sys.stderr)
        return _WRONG_INPUT if isinstance(error, UnfitFileError) else _FAILED
    said = {"report": str(out), **page.values(comparison)}
    print(json.dumps(said) if options.json else out)
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, as the other commands have it."""
        self.exit(_WRONG_INPUT, f"[report] {message}; see `gossamer report --help`\n")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="gossamer report",
        description="Makes one HTML file, readable without a network, about runs of `gossamer "
        "train --out` and simulations: speed-up, where the time went, loss, disagreement, bytes "
        "per link, timelines, predicted against measured. Name an AllReduce run as well.",
        epilog="exit code: 0 written, 1 it cannot be written, 2 a run folder is wrong",
    )
    parser.add_argument(
        "run", nargs="+", type=Path, help="a run folder, or the trace file of a simulation"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="the file; default: report.html in the run folder, in this folder for several runs",
    )
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    drawn = parser.add_argument_group("the timeline")
    drawn.add_argument(
        "--workers",
        type=_workers,
        metavar="N|all",
        help="how many workers it shows; default: 8, at most 256",
    )
    drawn.add_argument(
        "--steps",
        type=_count,
        metavar="N",
        help="how many steps of the AllReduce run, or of the first one; default: 4",
    )
    drawn.add_argument(
        "--from-step",
        type=int,
        metavar="K",
        help="the first one; default: a third into the trace",
    )
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"a number from 1 to {_MOST} is needed, got {text!r}")
    return int(text)


def _workers(text: str) -> int:
    return _MOST if text == "all" else _count(text)


def _modules() -> tuple[ModuleType, ModuleType]:
    """What needs the libraries of the extra `report`."""
    try:
        from . import compare, page
    except ModuleNotFoundError as error:
        raise missing_library(error) from error
    return page, compare


def _default_out(folders: list[Path]) -> Path:
    is_one_run = len(folders) == 1 and folders[0].is_dir()
    return (folders[0] if is_one_run else Path()) / "report.html"


def _version() -> str:
    try:
        return metadata.version("gossamer")
    except metadata.PackageNotFoundError:
        return ""
