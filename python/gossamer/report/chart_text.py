"""Words of charts: how wide they are, where their lines break, and numbers along an axis."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import cache

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

_MINUS = "\N{MINUS SIGN}"
_TIMES = "\N{MULTIPLICATION SIGN}"
_THIN = "\N{NARROW NO-BREAK SPACE}"
_RAISED = str.maketrans("0123456789" + _MINUS, "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_EXACT = 1e-9


@cache
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """In points; readers' fonts are narrower than the one that is measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the measured font does not have
        font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
        return float(text_to_path.get_text_width_height_descent(text, font, False)[0])


def wrapped(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """Broken at spaces into lines of so many points, and inside of words that are wider."""
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(joined, size, weight) <= width:
            lines[-1] = joined
            continue
        while len(word) > 1 and text_width(word, size, weight) > width:
            count = _fitting(word, width, size, weight)
            lines.append(word[:count])
            word = word[count:]
        lines.append(word)
    return lines


def _fitting(word: str, width: float, size: float, weight: str) -> int:
    """How many letters of the word a line takes, at least one."""
    low, high = 1, len(word) - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high)
            if text_width(word[:middle], size, weight) <= width
            else (low, middle - 1)
        )
    return low


def tick_words(values: Sequence[float], log: bool) -> list[str]:
    """Labels that tell the values apart: 0.25, 1 000, from 10 000 on 10k and 2.5M, powers of ten
    where they span far or lie far from one."""
    largest = max((abs(value) for value in values), default=0.0)
    if largest == 0:
        return ["0" for _ in values]
    if log and (min(values) < 0.09 or largest > 1.1e4):
        return [_power(value) for value in values]
    if largest >= 1e13 or largest < 1e-3:
        return _scientific(values, _exponent(largest))
    if largest >= 1e4:
        return [_abbreviated(value) for value in values]
    most = max(_decimals(value) for value in values)
    return [_number(value, _decimals(value) if log or value == 0 else most) for value in values]


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value)) + _EXACT)


def _decimals(value: float) -> int:
    return next(
        (n for n in range(10) if abs(value - round(value, n)) <= _EXACT * max(abs(value), 1e-3)), 10
    )


def _number(value: float, decimals: int) -> str:
    text = f"{abs(value):,.{decimals}f}".replace(",", _THIN)
    return (_MINUS if value < 0 else "") + text


def _abbreviated(value: float) -> str:
    """10k, 2.5M, 3G."""
    units = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
    scale, unit = next(((s, u) for s, u in units if abs(value) >= s * (1 - _EXACT)), (1.0, ""))
    return _number(value / scale, _decimals(value / scale)) + unit


def _raised(exponent: int) -> str:
    return "10" + str(exponent).replace("-", _MINUS).translate(_RAISED)


def _power(value: float) -> str:
    exponent = _exponent(value)
    factor = value / 10.0**exponent if exponent > -300 else 1.0
    mantissa = _number(factor, _decimals(factor))
    return _raised(exponent) if mantissa == "1" else mantissa + _TIMES + _raised(exponent)


def _scientific(values: Sequence[float], exponent: int) -> list[str]:
    factors = [value / 10.0**exponent for value in values]
    most = max(_decimals(factor) for factor in factors)
    return [
        "0" if value == 0 else _number(factor, most) + _TIMES + _raised(exponent)
        for value, factor in zip(values, factors, strict=True)
    ]
