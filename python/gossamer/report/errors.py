"""What is wrong with the input of a report."""

from __future__ import annotations

from typing import Any

from ..files import printable

BROKEN = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What reading a file raises that does not hold what it should."""


class ReportError(ValueError):
    """A folder, file or value that cannot be reported on. The message is one line."""

    def __init__(self, what: str, got: Any = None, remedy: str = "") -> None:
        text = f"[report] {what}"
        text += f", got {got}" if got is not None else ""
        super().__init__(printable(text + (f"; {remedy}" if remedy else "")))
