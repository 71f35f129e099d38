"""Reads traces: what every worker did when, and which bytes went over which edge."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .errors import BROKEN, ReportError

LIMIT_BYTES = 128 << 20
"""How much JSON the traces of one run may hold together."""

_GZIP = b"\x1f\x8b"

KINDS = ("forward", "backward", "update", "wait", "exchange")


class Span(NamedTuple):
    """What a worker did in [begin, end), in µs; bucket -1: none."""

    kind: str
    step: int
    bucket: int
    begin: float
    end: float


@dataclass
class Trace:
    """Spans by worker, in the order of their begin."""

    spans: dict[int, list[Span]] = field(default_factory=dict)
    hosts: dict[int, int] = field(default_factory=dict)
    sent: dict[tuple[int, int], int] = field(default_factory=dict)
    """Bytes by (from, to)."""

    def steps(self) -> list[int]:
        """The steps in which every worker has done something, ascending."""
        each = [{s.step for s in spans if s.kind != "exchange"} for spans in self.spans.values()]
        return sorted(set.intersection(*each)) if each else []


class _Event(NamedTuple):
    name: str
    process: int
    track: int
    begin: float
    end: float
    step: int
    bucket: int
    bytes: int


class _Name(NamedTuple):
    process: int
    track: int | None  # None: of the process itself
    name: str


def trace_files(folder: Path) -> list[Path]:
    """trace.json.gz, or the trace.rank<r>.json.gz of several processes."""
    return sorted(folder.glob("trace.rank*.json.gz")) or sorted(folder.glob("trace.json.gz"))


def read_trace(paths: list[Path]) -> Trace | None:
    """The files of one run, gzipped or not, as one; None where there is none. Raises ReportError
    where one is broken, truncated or too large."""
    if not paths:
        return None
    trace = Trace()
    left = LIMIT_BYTES
    for path in paths:
        text = _unpack(path, left)
        left -= len(text)
        _add(trace, _parse(path, text), path)
    for spans in trace.spans.values():
        spans.sort(key=lambda span: (span.begin, span.end))
    if not trace.spans:
        raise ReportError(f"{paths[0]}: no events of a worker", None, "is it another one's trace?")
    return trace


def _unpack(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as start:
            is_packed = start.read(2) == _GZIP
        with gzip.open(path) if is_packed else path.open("rb") as file:
            text = file.read(limit + 1)
    except EOFError as error:
        raise ReportError(f"{path}: the trace is truncated", error, "remove it") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ReportError(f"{path}: the trace is broken", error, "remove it") from error
    if len(text) > limit:
        raise ReportError(
            f"{path}: the traces of a run may hold {LIMIT_BYTES >> 20} MiB of JSON",
            "more",
            "record fewer steps, or remove it; Perfetto opens larger ones",
        )
    return text


def _parse(path: Path, text: bytes) -> list[_Event | _Name | None]:
    try:
        found = json.loads(text, object_hook=_event)
    except BROKEN as error:
        raise ReportError(f"{path}: not a trace ({error})", None, "remove it") from error
    events = found.get("traceEvents") if isinstance(found, dict) else found
    if not isinstance(events, list):
        raise ReportError(f"{path}: not a trace (no list traceEvents)", None, "remove it")
    return events


def _event(found: dict[str, Any]) -> Any:
    """What is kept of an object; small, as traces are long."""
    phase = found.get("ph")
    args = found.get("args", {})
    if phase == "X":
        begin = float(found["ts"])
        end = begin + float(found["dur"])
        if not (math.isfinite(begin) and math.isfinite(end) and end >= begin):
            raise ValueError(f"an event from {begin} to {end} us")
        place = int(found["pid"]), int(found["tid"])
        numbers = int(args.get("step", -1)), int(args.get("bucket", -1)), int(args.get("bytes", 0))
        return _Event(str(found["name"]), *place, begin, end, *numbers)
    if phase == "M" and found.get("name") in (None, "process_name", "thread_name"):
        track = found.get("tid") if found.get("name") != "process_name" else None
        return _Name(int(found["pid"]), track, str(args["name"]))
    return None if phase else found


def _add(trace: Trace, events: list[_Event | _Name | None], path: Path) -> None:
    names = {(each.process, each.track): each.name for each in events if isinstance(each, _Name)}
    workers: dict[int, int] = {}
    for (process, track), name in names.items():
        match = re.fullmatch(r"worker (\d+), host (\d+)", name)
        if match and track is None:
            workers[process] = int(match[1])
            trace.hosts[int(match[1])] = int(match[2])
    sent: dict[tuple[int, int], int] = defaultdict(int)
    for event in events:
        if not isinstance(event, _Event):
            continue
        worker = workers.get(event.process)
        if worker is not None:
            if event.name in KINDS:
                span = Span(event.name, event.step, event.bucket, event.begin, event.end)
                trace.spans.setdefault(worker, []).append(span)
            continue
        edge = re.fullmatch(r"(\d+) to (\d+)", names.get((event.process, event.track), ""))
        if edge:
            sent[int(edge[1]), int(edge[2])] += event.bytes
    for pair, count in sent.items():
        # In the traces of several processes both ends may tell of an edge.
        trace.sent[pair] = max(count, trace.sent.get(pair, 0))
