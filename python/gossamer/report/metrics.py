"""Reads metrics.rank*.jsonl: what every worker wrote in every step and at every validation."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base import files
from .errors import BROKEN, ReportError

Line = dict[str, Any]

_LONGEST = 16_000_000
"""Characters of a line: a longer one is two, neither of which is whole."""


@dataclass
class Check:
    """A validation of the consensus model after `step` steps."""

    step: int
    val_loss: float | None
    disagreement: float | None


@dataclass
class Loss:
    """What rank `by` said in `step`: it goes on without `rank`."""

    step: int
    by: int
    rank: int


@dataclass
class Metrics:
    """Means over the workers, by step in ascending order; None where no worker has a value."""

    workers: int
    steps: list[int] = field(default_factory=list)
    loss: list[float | None] = field(default_factory=list)
    step_ms: list[float | None] = field(default_factory=list)
    exposed_ms: list[float | None] = field(default_factory=list)
    samples: list[float | None] = field(default_factory=list)
    """Of all workers together."""
    checks: list[Check] = field(default_factory=list)
    sent: dict[tuple[int, int], int] = field(default_factory=dict)
    """Bytes by (from, to) between the start of the run's last process and its last validation."""
    own_step_ms: dict[int, dict[int, float]] = field(default_factory=dict)
    """Of every worker, by the step."""
    lost: list[Loss] = field(default_factory=list)
    anew: dict[int, list[int]] = field(default_factory=dict)
    """By the step after which the topology was formed anew, the ranks that it is among."""

    def times_s(self) -> list[float]:
        """When each step ended, in seconds of training: without validation and checkpoints."""
        times, now = [], 0.0
        for step_ms in self.step_ms:
            now += (step_ms or 0.0) / 1e3
            times.append(now)
        return times


def read_metrics(folder: Path) -> Metrics | None:
    """All workers' lines; None where the folder has no such file. A step that a resumed run did
    again counts as it was done last. Raises ReportError naming the file and line."""
    paths = {_rank(path): path for path in folder.glob("metrics.rank*.jsonl")}
    if not paths:
        return None
    by_step: dict[int, list[Line]] = {}
    checks: dict[int, Line] = {}
    sent: dict[tuple[int, int], int] = {}
    own_step_ms: dict[int, dict[int, float]] = {}
    lost: list[Loss] = []
    anew: dict[int, list[int]] = {}
    for rank, path in sorted(paths.items()):
        own: dict[int, Line] = {}
        for line in _lines(path):
            own[line["step"]] = {**own.get(line["step"], {}), **line}
            for edge in line.get("edges", []):
                sent[rank, edge["peer"]] = edge["sent"]
        own_step_ms[rank] = {
            step: ms for step, line in own.items() if (ms := number(line, "step_ms")) is not None
        }
        for step, line in own.items():
            lost += [Loss(step, rank, other) for other in line.get("lost", [])]
            anew |= {step: line["among"]} if "among" in line else {}
            by_step.setdefault(step, []).append(line)
            if "val_loss" in line or "disagreement" in line:
                checks.setdefault(step, line)
    metrics = Metrics(len(paths), sent=sent, own_step_ms=own_step_ms, lost=lost, anew=anew)
    for step, lines in sorted(by_step.items()):
        if not any("step_ms" in line for line in lines):
            continue
        metrics.steps.append(step)
        metrics.loss.append(_mean(lines, "loss"))
        metrics.step_ms.append(_mean(lines, "step_ms"))
        metrics.exposed_ms.append(_mean(lines, "exposed_ms"))
        counts = [count for line in lines if (count := number(line, "samples")) is not None]
        metrics.samples.append(sum(counts) if counts else None)
    for step, line in sorted(checks.items()):
        metrics.checks.append(Check(step, number(line, "val_loss"), number(line, "disagreement")))
    return metrics


def number(line: Line, key: str) -> float | None:
    """A finite number, or None: what is not finite is written as null."""
    value = line.get(key)
    return float(value) if value is not None and math.isfinite(value) else None


def _rank(path: Path) -> int:
    match = re.fullmatch(r"metrics\.rank(\d+)\.jsonl", path.name)
    if not match:
        raise ReportError("not a file of metrics", path, "remove or rename it")
    return int(match[1])


def _lines(path: Path) -> Iterator[Line]:
    with io.TextIOWrapper(files.opened(path), encoding="utf-8", errors="replace") as file:
        for count, text in enumerate(iter(lambda: file.readline(_LONGEST), ""), 1):
            try:
                line = files.parse_json(text)
                _check(line)
            except BROKEN as error:
                raise ReportError(
                    f"{path}, line {count}: not a line of metrics ({error})",
                    repr(text[:60].rstrip("\n")),
                    "a worker that was killed leaves a part of a line; remove the line",
                ) from error
            yield line


def _check(line: Any) -> None:
    """Raises where a value has not the type that it is to have."""
    if not isinstance(line, dict):
        raise TypeError("not an object")
    if type(line["step"]) is not int:
        raise TypeError("step is not a whole number")
    for key in ("loss", "step_ms", "samples", "exposed_ms", "val_loss", "disagreement"):
        if line.get(key) is not None and type(line[key]) not in (int, float):
            raise TypeError(f"{key} is not a number")
    for key in ("lost", "among"):
        if any(type(rank) is not int for rank in line.get(key, [])):
            raise TypeError(f"{key} is not a list of ranks")
    for edge in line.get("edges", []):
        if type(edge["peer"]) is not int or type(edge["sent"]) is not int:
            raise TypeError("an edge without whole numbers")


def _mean(lines: list[Line], key: str) -> float | None:
    values = [value for line in lines if (value := number(line, key)) is not None]
    return sum(values) / len(values) if values else None
