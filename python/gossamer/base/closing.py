"""What closes itself at the end of a ``with``, or of the process."""

from __future__ import annotations

import atexit
import functools
import sys
import weakref
from typing import TypeVar

Self = TypeVar("Self", bound="Closing")


class Closing:
    """Closes itself at the end of a ``with``."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_in_order() -> bool:
    """Whether something is closed because it is done, and not because of an error, after which it
    waits for nobody."""
    return sys.exc_info()[0] is None and getattr(sys, "last_value", None) is None


class AtExit:
    """Has something closed at the end of the process, if it still lives then."""

    def __init__(self, closing: Closing) -> None:
        self._call = functools.partial(_close_if_alive, weakref.ref(closing))
        atexit.register(self._call)

    def cancel(self) -> None:
        """Somebody has closed it."""
        atexit.unregister(self._call)


def _close_if_alive(reference: weakref.ref[Closing]) -> None:
    closing = reference()
    if closing is not None:
        closing.close()
