"""Which workers, and which steps of them, the timeline shows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .errors import ReportError
from .trace import Span, Trace

MOST_WORKERS = 256
"""Rows of a panel at most, however many are asked for."""

FEW_WORKERS, FEW_STEPS = 8, 4
"""What is shown where nobody says how much."""

_MOST_SPANS = 30_000


@dataclass
class Choice:
    """What was asked for; None: what is readable."""

    workers: int | None = None
    steps: int | None = None
    from_step: int | None = None

    @property
    def most_workers(self) -> int:
        return min(self.workers or FEW_WORKERS, MOST_WORKERS)


@dataclass
class Window:
    """The part of a trace that a panel may show; times in µs."""

    trace: Trace
    workers: list[int]
    first_step: int
    begin: float
    end: float
    """When all its workers have done the steps of the choice."""
    spans: dict[int, list[Span]] = field(default_factory=dict)
    """Of its workers, those that end behind its begin."""

    @property
    def length(self) -> float:
        return self.end - self.begin

    @property
    def readable(self) -> float:
        """µs until there are more spans than can be drawn."""
        begins = sorted(span.begin for spans in self.spans.values() for span in spans)
        return begins[_MOST_SPANS] - self.begin if len(begins) > _MOST_SPANS else math.inf


def window_of(trace: Trace, choice: Choice, name: str) -> Window | None:
    """None where no step is whole. Raises ReportError where the trace has not the first step."""
    steps = trace.steps()
    if not steps:
        return None
    count = choice.steps or FEW_STEPS
    # Past the first steps, which are not like the others.
    first = steps[min(len(steps) // 3, max(0, len(steps) - count))]
    if choice.from_step is not None:
        first = choice.from_step
        if first not in steps:
            there = f"steps {steps[0]} to {steps[-1]}" if len(steps) > 1 else f"step {steps[0]}"
            raise ReportError(
                f"--from-step takes a step of each trace; {name} has {there}", str(first)
            )
    workers = sorted(trace.spans)[: choice.most_workers]
    work = [s for worker in workers for s in trace.spans[worker] if s.kind != "exchange"]
    begin = min(span.begin for span in work if span.step == first)
    end = max(span.end for span in work if span.step < first + count)
    spans = {worker: [s for s in trace.spans[worker] if s.end > begin] for worker in workers}
    return Window(trace, workers, first, begin, end, spans)
