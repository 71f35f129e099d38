"""Reads run folders."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import files
from .errors import BROKEN, ReportError
from .metrics import Metrics, read_metrics
from .trace import Trace, read_trace, trace_files

Table = dict[str, Any]

_MARKS = ("run.toml", "prediction.json")
_LARGEST = 16_000_000
"""Bytes of a file with one object of JSON."""

_BASELINES = ("allreduce", "ddp")
_CODECS = ("bf16", "int8")
_NUMBERS = (
    "workers",
    "steps",
    "ms_per_step",
    "exposed_ms",
    "bytes_per_host_per_step",
    "val_loss",
    "disagreement",
    "link_bytes_per_s",
)
"""What is read of summary.json as a number."""


@dataclass
class Prediction:
    """What the model or the simulator said of a step."""

    step_s: float
    compute_s: float | None
    exposed_s: float | None
    bytes_per_host_per_step: list[float]
    source: str


@dataclass
class Run:
    """A run folder; what it does not hold is None or empty."""

    folder: Path
    name: str
    recipe: Table
    summary: Table
    metrics: Metrics | None
    trace: Trace | None
    prediction: Prediction | None
    is_simulated: bool

    def setting(self, section: str, key: str, default: Any = None) -> Any:
        """A value of run.toml."""
        part = self.recipe.get(section)
        return part.get(key, default) if isinstance(part, dict) else default


def read_runs(folders: list[Path]) -> list[Run]:
    """One run per folder or trace file, with names that tell them apart. Raises ReportError."""
    names = _names([_as_named(folder.resolve()) for folder in folders])
    return [_read_run(folder, name) for folder, name in zip(folders, names, strict=True)]


def _as_named(path: Path) -> Path:
    """Without the endings of a trace file."""
    name = path.name.removesuffix(".gz").removesuffix(".json")
    return path.with_name(name) if path.is_file() and name else path


def _names(folders: list[Path]) -> list[str]:
    """The last words of the paths, as many as tell them apart."""
    if len(set(folders)) < len(folders):
        twice = next(each for each in folders if folders.count(each) > 1)
        raise ReportError("a run is named twice", twice, "name each run once")
    depth = 1
    while len({each.parts[-depth:] for each in folders}) < len(folders):
        depth += 1
    return [_readable("/".join(each.parts[-depth:])) for each in folders]


def _readable(name: str) -> str:
    """The name of a file as text that every page and picture takes: a name may be any bytes."""
    return os.fsencode(name).decode("utf-8", errors="replace")


def _read_run(folder: Path, name: str) -> Run:
    try:
        return _read_parts(folder, name)
    except ReportError:
        raise
    except BROKEN as error:
        what = f"{folder}: holds what no run does ({type(error).__name__}: {error})"
        raise ReportError(what, None, "mend or remove it") from error


def _read_parts(folder: Path, name: str) -> Run:
    if folder.is_file():
        trace = read_trace([folder])
        recipe = {"algorithm": _algorithm(trace.method)} if trace and trace.method else {}
        return Run(folder, name, recipe, {}, None, trace, None, is_simulated=True)
    traces = trace_files(folder)
    if not traces and not any((folder / each).exists() for each in _MARKS):
        what = "has no run.toml" if folder.is_dir() else "does not exist"
        raise ReportError(
            f"not a run: it {what}", folder, "name what `gossamer train --out FOLDER` wrote"
        )
    summary, metrics = _read_summary(folder / "summary.json"), read_metrics(folder)
    is_of_processes = any(file.name.startswith("trace.rank") for file in traces)
    return Run(
        folder=folder,
        name=name,
        recipe=_read_toml(folder / "run.toml"),
        summary=summary,
        metrics=metrics,
        trace=read_trace(traces),
        prediction=_read_prediction(folder / "prediction.json"),
        is_simulated=metrics is None and not summary and not is_of_processes,
    )


def _algorithm(method: str) -> Table:
    """What run.toml says of a method such as aer:bf16 or atc@ring."""
    name, *options = method.split(":")
    pattern, _, topology = name.rpartition("@")
    found = {"codec": next((each for each in options if each in _CODECS), "fp32")}
    if name in _BASELINES:
        return {**found, "pattern": name}
    return {**found, "pattern": pattern or "cwa", "topology": topology}


def _read_toml(path: Path) -> Table:
    try:
        return files.read_toml(path) if path.exists() else {}
    except BROKEN as error:
        raise ReportError(f"{path}: {error}", None, "mend or remove it") from error


def _read_json(path: Path) -> Table:
    if not path.exists():
        return {}
    try:
        found = files.parse_json(files.read_bytes(path, _LARGEST))
        if not isinstance(found, dict):
            raise TypeError("not an object")
    except BROKEN as error:
        raise ReportError(f"{path}: {error}", None, "mend or remove it") from error
    return found


def _read_summary(path: Path) -> Table:
    found = _read_json(path)
    for key in _NUMBERS:
        if found.get(key) is not None and type(found[key]) not in (int, float):
            raise ReportError(
                f"{path}: {key} is not a number", repr(found[key]), "mend or remove it"
            )
    return found


def _read_prediction(path: Path) -> Prediction | None:
    found = _read_json(path)
    if not found:
        return None
    try:
        if not 0 < found["step_s"] < math.inf:
            raise ValueError(f"step_s is {found['step_s']}")
        compute_s, exposed_s = found.get("compute_s"), found.get("exposed_s")
        return Prediction(
            step_s=float(found["step_s"]),
            compute_s=None if compute_s is None else float(compute_s),
            exposed_s=None if exposed_s is None else float(exposed_s),
            bytes_per_host_per_step=[float(x) for x in found.get("bytes_per_host_per_step", [])],
            source=str(found.get("source", "prediction")),
        )
    except BROKEN as error:
        raise ReportError(
            f"{path}: not a prediction ({error!r})", None, "it needs step_s, in seconds"
        ) from error
