"""Arguments that somebody has spelled otherwise: the error says which one may be meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import ParamSpec

_P = ParamSpec("_P")


def known_words(init: Callable[..., None]) -> list[str]:
    """The keyword-only arguments of an ``__init__``."""
    every = inspect.signature(init).parameters.values()
    return [each.name for each in every if each.kind is inspect.Parameter.KEYWORD_ONLY]


def check(of: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raises TypeError for the first word that is not known."""
    for word in given:
        if word in known:
            continue
        near = difflib.get_close_matches(word, known, 1)
        remedy = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
        raise TypeError(f"[{of}] there is no argument {word!r}; {remedy}")


def checked(of: str) -> Callable[[Callable[_P, None]], Callable[_P, None]]:
    """Of an ``__init__`` whose class is called so."""

    def decorate(init: Callable[_P, None]) -> Callable[_P, None]:
        known = known_words(init)
        positional = [*inspect.signature(init).parameters]
        places = [name for name in positional[1:] if name not in known]

        @functools.wraps(init)
        def checking(*args: _P.args, **words: _P.kwargs) -> None:
            check(of, (word for word in words if word not in positional), known)
            if len(args) > len(places) + 1:  # self is one
                raise TypeError(
                    f"[{of}] only {' and '.join(places)} can stand without their names, got "
                    f"{len(args) - 1} arguments; name the others, such as {known[0]}="
                )
            init(*args, **words)

        return checking

    return decorate
