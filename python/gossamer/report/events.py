"""Reads the events of a trace file, piece by piece: what a file claims to hold costs nothing."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..base.files import opened
from .errors import BROKEN, ReportError

_GZIP = b"\x1f\x8b"
_WHITE = re.compile(r"[ \t\n\r]*")
_PIECE_BYTES = 1 << 20
_LONGEST = 1 << 16
"""Characters of one event, for which there is always room."""

_MOST_VALUES = 2_000_000
"""More events than fit into what a trace may hold, but for those that say nothing."""

_LATEST_US = 1e15
"""No run takes thirty years."""
_LARGEST = 1 << 53
_NUMBERS = (("step", -1), ("bucket", -1), ("bytes", 0))
"""What an event may say of itself, and what it means where it does not."""


class Event(NamedTuple):
    """Something with a begin and an end, in µs; step and bucket -1: none."""

    name: str
    process: int
    track: int
    begin: float
    end: float
    step: int
    bucket: int
    bytes: int


class Name(NamedTuple):
    """Of a track, or of a process where the track is None."""

    process: int
    track: int | None
    name: str


class Origin(NamedTuple):
    """How the workers trained, as `gossamer simulate` takes it; and how many steps were asked for,
    after how many to warm up. 0 steps: it is not said."""

    method: str
    steps: int
    warm_up: int


class TooLargeError(Exception):
    """A file holds more than it may."""


def read_events(path: Path, limit_bytes: int) -> tuple[list[Event | Name | Origin], int]:
    """What a file holds, gzipped or not, and how many bytes that took. Raises ReportError where it
    is broken or truncated, TooLargeError beyond the limit."""
    try:
        with opened(path) as raw:
            is_packed = raw.read(2) == _GZIP
            raw.seek(0)
            file = gzip.GzipFile(fileobj=raw) if is_packed else raw
            text = _Text(file, limit_bytes)  # type: ignore[arg-type]  # what gzip opens is one
            return list(_events(text)), text.bytes_read
    except EOFError as error:
        raise ReportError(f"{path}: the trace is truncated", error, "remove it") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ReportError(f"{path}: the trace is broken", error, "remove it") from error
    except BROKEN as error:
        raise ReportError(f"{path}: not a trace ({error})", None, "remove it") from error


class _Text:
    """JSON of which a piece is in memory at a time."""

    def __init__(self, file: IO[bytes], limit_bytes: int) -> None:
        self._file = file
        self._limit = limit_bytes
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._scan = json.JSONDecoder().raw_decode
        self._piece = ""
        self._at = 0
        self._has_more = True
        self._values = 0
        self.bytes_read = 0

    def value(self) -> Any:
        """The next value, whole."""
        self._values += 1
        if self._values > _MOST_VALUES:
            raise TooLargeError
        self.peek()
        if len(self._piece) - self._at < _LONGEST:
            self._fill(_LONGEST)
        try:
            found, self._at = self._scan(self._piece, self._at)
        except json.JSONDecodeError as error:
            before = self._piece[max(0, error.pos - 20) : error.pos]
            raise ValueError(f"{error.msg}, behind {before!r}") from error
        return found

    def peek(self) -> str:
        """The next character that is not white; empty at the end."""
        while True:
            self._at = _WHITE.match(self._piece, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._piece) or not self._has_more:
                return self._piece[self._at : self._at + 1]
            self._fill(1)

    def take(self, wanted: str) -> str:
        """The next character that is not white, which must be one of these."""
        found = self.peek()
        if not found or found not in wanted:
            words = " or ".join(repr(each) for each in wanted)
            raise ValueError(f"{words} expected, got {found!r}" if found else "its end is missing")
        self._at += 1
        return found

    def _fill(self, characters: int) -> None:
        pieces = [self._piece[self._at :]]
        missing = characters - len(pieces[0])
        while missing > 0 and self._has_more:
            read = self._file.read(_PIECE_BYTES)
            self.bytes_read += len(read)
            if self.bytes_read > self._limit:
                raise TooLargeError
            self._has_more = bool(read)
            pieces.append(self._decode(read, not read))
            missing -= len(pieces[-1])
        self._piece, self._at = "".join(pieces), 0


def _events(text: _Text) -> Iterator[Event | Name | Origin]:
    """The list, or the list traceEvents of the object, that is all of the text."""
    if text.peek() == "[":
        yield from _elements(text)
    else:
        yield from _events_of_object(text)
    if text.peek():
        raise ValueError(f"more behind its end, got {text.peek()!r}")


def _events_of_object(text: _Text) -> Iterator[Event | Name | Origin]:
    is_there = False
    if not text.peek():
        raise ValueError("it is empty")
    more = text.take("{") if text.peek() == "{" else ""
    if more and text.peek() == "}":
        text.take("}")
        more = ""
    while more and more != "}":
        key = text.value()
        text.take(":")
        if key == "traceEvents" and text.peek() == "[":
            is_there = True
            yield from _elements(text)
        else:
            found = text.value()
            if key == "otherData" and isinstance(found, dict):
                steps, warm_up = (int(found.get(name, 0)) for name in ("steps", "warm_up"))
                if min(steps, warm_up) < 0:
                    raise ValueError(f"steps {steps} and warm_up {warm_up} must not be negative")
                yield Origin(str(found.get("method", "")), steps, warm_up)
        more = text.take(",}")
    if not is_there:
        raise ValueError("no list traceEvents")


def _elements(text: _Text) -> Iterator[Event | Name]:
    text.take("[")
    if text.peek() == "]":
        text.take("]")
        return
    more = ","
    while more == ",":
        if text.peek() != "{":
            raise ValueError(f"an event that is no object, got {text.peek()!r}")
        found = _event(text.value())
        if found is not None:
            yield found
        more = text.take(",]")


def _event(found: dict[str, Any]) -> Event | Name | None:
    """What is kept of an object; small, as traces are long."""
    try:
        phase = found["ph"]
        if phase == "X":
            return _interval(found)
        if phase == "M" and found["name"] in ("process_name", "thread_name"):
            track = int(found["tid"]) if found["name"] == "thread_name" else None
            return Name(int(found["pid"]), track, str(found["args"]["name"]))
    except KeyError as error:
        raise ValueError(f"an event without {error}") from error
    return None


def _interval(found: dict[str, Any]) -> Event:
    args = found.get("args", {})
    begin = float(found["ts"])
    end = begin + float(found["dur"])
    if not -_LATEST_US <= begin <= end <= _LATEST_US:  # nor where one of them is NaN
        raise ValueError(f"an event from {begin} to {end} us")
    place = int(found["pid"]), int(found["tid"])
    step, bucket, size = (int(args.get(k, none)) for k, none in _NUMBERS)
    if not (-1 <= step <= _LARGEST and -1 <= bucket <= _LARGEST and 0 <= size <= _LARGEST):
        raise ValueError(f"an event of step {step}, bucket {bucket}, {size} bytes")
    return Event(str(found["name"]), *place, begin, end, step, bucket, size)
