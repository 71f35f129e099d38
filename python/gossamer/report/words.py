"""Numbers as people read them."""

from __future__ import annotations

import math

NONE = "not recorded"
_SPACE = "\N{NO-BREAK SPACE}"


def plain(value: float | None, digits: int = 3) -> str:
    """So many significant digits without an exponent between 1e-4 and 1e6."""
    if value is None:
        return NONE
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}"


def milliseconds(value: float | None) -> str:
    return NONE if value is None else f"{plain(value)}{_SPACE}ms"


def size(value: float | None) -> str:
    """Decimal bytes."""
    if value is None:
        return NONE
    unit, scale = unit_of(value)
    return f"{plain(value / scale)}{_SPACE}{unit}"


def unit_of(value: float) -> tuple[str, float]:
    """The largest unit of bytes that is not above the value, and how many bytes it has."""
    units = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
    return next((each for each in units if value >= each[1]), ("B", 1.0))


def share(value: float | None) -> str:
    """In percent, as the field states speed-ups."""
    return NONE if value is None else f"{plain(100 * value, 2)}{_SPACE}%"


def listed(words: list[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
