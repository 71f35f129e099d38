"""Reads traces: what every worker did when, and which bytes went over which edge."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from .errors import ReportError
from .events import Event, Name, Origin, TooLargeError, read_events

LIMIT_BYTES = 128 << 20
"""How much JSON the traces of one run may hold together."""

_WORKER = re.compile(r"worker (\d{1,5}), host (\d{1,5})")
_EDGE = re.compile(r"(\d{1,5}) to (\d{1,5})")

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
    method: str = ""
    """As `gossamer simulate` takes it, where the trace says so."""
    asked_steps: int = 0
    """Without those to warm up; 0: the trace does not say it."""
    warm_up: int = 0

    def steps(self) -> list[int]:
        """The steps in which every worker has done something, ascending."""
        each = [{s.step for s in spans if s.kind != "exchange"} for spans in self.spans.values()]
        return sorted(set.intersection(*each)) if each else []


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
        try:
            events, size = read_events(path, left)
        except TooLargeError as error:
            raise ReportError(
                f"{path}: the traces of a run may hold {LIMIT_BYTES >> 20} MiB of JSON",
                "more",
                "record fewer steps, or remove it; Perfetto opens larger ones",
            ) from error
        left -= size
        _add(trace, events)
    for spans in trace.spans.values():
        spans.sort(key=lambda span: (span.begin, span.end))
    if not trace.spans:
        raise ReportError(f"{paths[0]}: no events of a worker", None, "is it another one's trace?")
    return trace


def _add(trace: Trace, events: list[Event | Name | Origin]) -> None:
    names = {(each.process, each.track): each.name for each in events if isinstance(each, Name)}
    workers: dict[int, int] = {}
    for (process, track), name in names.items():
        match = _WORKER.fullmatch(name)
        if match and track is None:
            workers[process] = int(match[1])
            trace.hosts[int(match[1])] = int(match[2])
    sent: dict[tuple[int, int], int] = defaultdict(int)
    for event in events:
        if isinstance(event, Origin):
            trace.method = event.method
            trace.asked_steps, trace.warm_up = event.steps, event.warm_up
        if not isinstance(event, Event):
            continue
        worker = workers.get(event.process)
        if worker is not None:
            if event.name in KINDS:
                span = Span(event.name, event.step, event.bucket, event.begin, event.end)
                trace.spans.setdefault(worker, []).append(span)
            continue
        edge = _EDGE.fullmatch(names.get((event.process, event.track), ""))
        if edge:
            sent[int(edge[1]), int(edge[2])] += event.bytes
    for pair, count in sent.items():
        # In the traces of several processes both ends may tell of an edge.
        trace.sent[pair] = max(count, trace.sent.get(pair, 0))
