"""metrics.rank*.jsonl: what every worker did in every step, as `gossamer train` writes it."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from gossamer import _core
from gossamer._core import IoError
from gossamer.base import files
from gossamer.records import tracing
from gossamer.workers.world import World, own_folder

_OWN = ("step", "step_ms", "exposed_ms", "hidden_ms", "grad_norm", "mixing_distance", "edges")


class Metrics:
    """Of one worker; writes nothing where ``folder`` is None. A line has what was logged since the
    last one. A file that cannot be begun is an IoError; one that cannot be gone on with is a
    warning, and ends there: it must not cost what is being trained."""

    def __init__(self, folder: str | os.PathLike[str] | None, world: World, recipe: str) -> None:
        self._path: Path | None = None
        self._recipe = recipe
        self._rank = world.rank
        self._file: Any = None
        self._logged: dict[str, Any] = {}
        self._waited = (0.0, 0.0)
        self._began = time.monotonic()
        self._process = os.getpid()
        self._first = 0  # steps of an earlier part of the run, whose lines stay
        if folder is not None:
            self._path = own_folder(world, folder) / f"metrics.rank{world.rank}.jsonl"

    @property
    def is_on(self) -> bool:
        """Whether lines are written."""
        return self._path is not None

    def log(self, values: dict[str, Any]) -> None:
        """Adds values to the next line; see Gossip.log."""
        if self._path is None:
            raise ValueError(
                "[Gossip] log() adds to the lines of metrics, which nobody writes here; make "
                'Gossip(..., metrics="folder")'
            )
        for name, value in values.items():
            if name in _OWN:
                raise ValueError(
                    f"[Gossip] log() got {name}, which every line has already; give it another name"
                )
            self._logged[name] = _as_json(name, value)

    def restart(self, step: int) -> None:
        """The run goes on after so many steps."""
        self._first = step
        if self._file is not None:
            self._file.close()
            self._file = None

    def resume(self) -> None:
        """What was done until now belongs to no step."""
        self._began = time.monotonic()

    def step(self, report: _core.StepReport, rate: float, waited: tuple[float, float]) -> None:
        """The line of a step with this learning rate, and the seconds ``waited`` so far, exposed
        and hidden."""
        if self._path is None:
            return
        if self._file is None and self._rank == 0:
            tracing.write_recipe(self._path.parent, self._recipe)
        now = time.monotonic()
        exposed_s, hidden_s = (a - b for a, b in zip(waited, self._waited, strict=True))
        self._waited = waited
        line = {
            "lr": rate,
            "step_ms": 1e3 * (now - self._began),
            "exposed_ms": 1e3 * exposed_s,
            "hidden_ms": 1e3 * hidden_s,
            "mixing_distance": report.distance,
        }
        if report.grad_norm > 0:  # else nobody has computed it
            line["grad_norm"] = report.grad_norm
        self._write(report.step, line)
        self._began = time.monotonic()

    def check(self, engine: _core.Engine, **values: float) -> None:
        """A line between steps, with the bytes by peer so far."""
        if self._path is None or os.getpid() != self._process:
            return
        edges = [{"peer": p, "sent": s, "received": r} for p, s, r in engine.edges()]
        self._write(engine.steps_done, {**values, "edges": edges})

    def close(self, engine: _core.Engine) -> None:
        """The last line."""
        if self._file is not None or self._logged:
            self.check(engine)
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def _write(self, step: int, line: dict[str, Any]) -> None:
        assert self._path is not None
        whole = {"step": step, **{k: _finite(v) for k, v in line.items()}, **self._logged}
        self._logged = {}
        text = json.dumps(whole, allow_nan=False) + "\n"
        try:
            if self._file is None:
                self._open()
        except OSError as error:
            raise IoError(
                f"[Gossip] rank {self._rank} could not write its metrics to {self._path}, got "
                f"{error}; look at the folder's rights and its disk, or leave metrics out"
            ) from error
        try:
            self._file.write(text.encode())
        except OSError as error:
            path, self._path = self._path, None
            warnings.warn(
                f"[Gossip] rank {self._rank}: the metrics in {path} end before step {step}, got "
                f"{error}; the run goes on without them, look at the disk",
                RuntimeWarning,
                stacklevel=2,
            )

    def _open(self) -> None:
        """Keeps what an earlier part of the run wrote."""
        assert self._path is not None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        kept = [line for line in _lines(self._path) if _step_of(line) <= self._first]
        files.write_whole(self._path, "".join(kept))
        self._file = self._path.open("ab", buffering=0)


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    text = files.read_bytes(path, files.LARGEST).decode(errors="replace")
    return text.splitlines(keepends=True)


def _step_of(line: str) -> float:
    """Infinity for what is no whole line of a step."""
    try:
        step = float(files.parse_json(line)["step"]) if line.endswith("\n") else math.inf
        return step if step > 0 else math.inf
    except (ValueError, TypeError, KeyError, OverflowError):
        return math.inf


def _finite(value: Any) -> Any:
    """JSON has no others: null, as `gossamer train` writes."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_json(name: str, value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool | int | float | str) or value is None:
        return _finite(value)
    raise ValueError(
        "[Gossip] log() takes numbers, texts and tensors of one element, got "
        f"{type(value).__name__} for {name}; take its mean, or log its elements one by one"
    )
