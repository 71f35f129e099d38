"""Functions of the core for users: a wrong call is told in one line, not with pybind11's list of
signatures."""

from __future__ import annotations

import ast
import functools
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from . import words

_P = ParamSpec("_P")
_R = TypeVar("_R")


def explained(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same function, whose TypeError says which argument is wrong."""
    places, names = _takes(function)

    @functools.wraps(function)
    def call(*args: _P.args, **named: _P.kwargs) -> _R:
        try:
            return function(*args, **named)
        except TypeError as error:
            if "incompatible function arguments" not in str(error):
                raise
        name = function.__name__
        raise TypeError(f"[{name}] {_reason(name, places, names, args, named)}") from None

    return call


@dataclass(frozen=True)
class _Kind:
    word: str  # in pybind11's annotations
    types: type
    one: str
    many: str


_KINDS = (
    _Kind("SupportsFloat", numbers.Real, "a number", "numbers"),
    _Kind("SupportsInt", numbers.Integral, "a whole number", "whole numbers"),
    _Kind("bool", bool, "True or False", "True or False"),
    _Kind("str", str, "text", "texts"),
)
_ANY = _Kind("", object, "a value", "values")


@dataclass(frozen=True)
class _Argument:
    name: str
    kind: _Kind
    is_list: bool
    is_needed: bool

    def said(self) -> str:
        return f"a list of {self.kind.many}" if self.is_list else self.kind.one

    def takes(self, value: object) -> bool:
        if not self.is_list:
            return isinstance(value, self.kind.types)
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            return False
        return all(isinstance(each, self.kind.types) for each in value)


def _takes(function: Callable[..., object]) -> tuple[list[_Argument], list[_Argument]]:
    """Those with a place and those with a name only, by the signature that pybind11 writes first
    into the docstring."""
    line = (function.__doc__ or "").partition("\n")[0]
    parsed = ast.parse(f"def {line}: ...").body[0]
    assert isinstance(parsed, ast.FunctionDef)
    places, names = parsed.args.args, parsed.args.kwonlyargs
    needed = len(places) - len(parsed.args.defaults)
    return (
        [_argument(each, place < needed) for place, each in enumerate(places)],
        [
            _argument(each, default is None)
            for each, default in zip(names, parsed.args.kw_defaults, strict=True)
        ],
    )


def _argument(node: ast.arg, is_needed: bool) -> _Argument:
    text = ast.unparse(node.annotation) if node.annotation else ""
    kind = next((kind for kind in _KINDS if kind.word in text), _ANY)
    return _Argument(node.arg, kind, "Sequence" in text, is_needed)


def _reason(
    name: str,
    places: Sequence[_Argument],
    names: Sequence[_Argument],
    args: Sequence[object],
    named: Mapping[str, object],
) -> str:
    """What is wrong with a call, or all of it where nothing is found."""
    every = [*places, *names]
    words.check(name, named, [each.name for each in every])
    if not every:
        return f"it takes no arguments, got {len(args)}"
    if len(args) > len(places):
        return (
            f"at most {len(places)} arguments can stand without their names, got {len(args)}; "
            f"name the others: {', '.join(each.name for each in names)}"
        )
    given = {**{each.name: value for each, value in zip(places, args, strict=False)}, **named}
    for each in every:
        if each.name not in given:
            if each.is_needed:
                return f"{each.name} is missing; give {each.said()}"
            continue
        value = given[each.name]
        if not each.takes(value):
            one = each.is_list and isinstance(value, each.kind.types)
            remedy = f"; give [{value!r}]" if one else ""
            return f"{each.name} must be {each.said()}, got {value!r}{remedy}"
    return f"its arguments do not fit, got {given!r}"
