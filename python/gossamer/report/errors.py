"""What is wrong with the input of a report."""

from __future__ import annotations

import sys
from typing import Any

from ..base.files import printable

BROKEN = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What reading a file raises that does not hold what it should."""


class ReportError(ValueError):
    """A folder, file or value that cannot be reported on. The message is one line; `text` is the
    same without the place that opens it."""

    def __init__(self, what: str, got: Any = None, remedy: str = "") -> None:
        text = what + (f", got {got}" if got is not None else "")
        self.text = printable(text + (f"; {remedy}" if remedy else ""))
        super().__init__(f"[report] {self.text}")


def missing_library(error: ModuleNotFoundError) -> ReportError:
    """The complaint where a library of the extra `report` is missing; any other is raised again."""
    if error.name not in ("matplotlib", "jinja2", "markupsafe", "numpy"):
        raise error
    return ReportError(
        f"{error.name} is missing",
        f"Python {sys.executable}",
        f"install what pictures need with `{sys.executable} -m pip install matplotlib jinja2`",
    )
