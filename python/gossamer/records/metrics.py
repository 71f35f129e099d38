"""What every worker did in every step, a line each: for a file, and for those who follow it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from typing import Any, Protocol

import torch

from gossamer import _core
from gossamer.records.line_file import LineFile
from gossamer.workers.world import World

_OWN = (
    *("step", "step_ms", "samples_per_s", "exposed_ms", "hidden_ms"),
    *("grad_norm", "mixing_distance", "edges"),
)
_SAMPLES = "samples"


class Follower(Protocol):
    """Is given every line. What it raises ends the training."""

    def write(self, line: Mapping[str, Any]) -> None:
        """A line, whose ``step`` is the number of steps done."""

    def restart(self, step: int) -> None:
        """The run goes on after so many steps: what came later has not been."""

    def close(self) -> None:
        """There is no other line."""


class Metrics:
    """Of one worker, in ``folder`` if there is one; nothing where nobody follows them. A line has
    what was logged since the last one."""

    def __init__(self, folder: str | os.PathLike[str] | None, world: World, recipe: str) -> None:
        self._followers: list[Follower] = []
        self._logged: dict[str, Any] = {}
        self._samples = 0  # since the last step
        self._dealt: dict[int, int] = {}  # by step, of which nobody has said anything else
        self._waited = (0.0, 0.0)
        self._began = time.monotonic()
        self._process = os.getpid()
        self._has_lines = False  # since the start or restart
        if folder is not None:
            self._followers.append(LineFile(folder, world, recipe))

    @property
    def is_on(self) -> bool:
        """Whether anybody is given lines."""
        return bool(self._followers)

    def follow(self, follower: Follower, waited: tuple[float, float]) -> None:
        """Gives it every line from now on. ``waited`` as in ``step``."""
        if not self.is_on:
            self._waited = waited  # in steps that had no line
        self._followers.append(follower)

    def log(self, values: dict[str, Any]) -> None:
        """Adds values to the next line; see Gossip.log."""
        if not self.is_on:
            return
        for name, value in values.items():
            if name in _OWN:
                raise ValueError(
                    f"[Gossip] log() got {name}, which every line has already; give it another name"
                )
            if name == _SAMPLES:
                self._samples += _as_count(value)
            else:
                self._logged[name] = _as_json(name, value)

    def count(self, samples: int) -> None:
        """So many more samples are in the coming step, as ``log`` may say as well."""
        if self.is_on:
            self._samples += samples

    def deal(self, step: int, samples: int) -> None:
        """So many will be in that step, where nobody counts them."""
        if self.is_on:
            self._dealt[step] = samples

    def restart(self, step: int) -> None:
        """The run goes on after so many steps."""
        self._has_lines = False
        self._samples, self._dealt = 0, {}
        for follower in self._followers:
            follower.restart(step)

    def resume(self) -> None:
        """What was done until now belongs to no step."""
        self._began = time.monotonic()

    def step(self, report: _core.StepReport, rate: float, waited: tuple[float, float]) -> None:
        """The line of a step with this learning rate, and the seconds ``waited`` so far, exposed
        and hidden."""
        exposed_s, hidden_s = (a - b for a, b in zip(waited, self._waited, strict=True))
        self._waited = waited
        line: dict[str, Any] = {
            "lr": rate,
            **self._pace(report.step),
            "exposed_ms": 1e3 * exposed_s,
            "hidden_ms": 1e3 * hidden_s,
            "mixing_distance": report.distance,
        }
        if report.lost:
            line["lost"] = [each.rank for each in report.lost]
        if report.back:
            line["back"] = [each.rank for each in report.back]
        if report.among:
            line["among"] = report.among
        if report.grad_norm > 0:  # else nobody has computed it
            line["grad_norm"] = report.grad_norm
        self._write(report.step, line)
        self._began = time.monotonic()

    def step_alone(self, step: int, rate: float) -> None:
        """The line of a step in which nothing was exchanged here."""
        self._write(step, {"lr": rate, **self._pace(step)})
        self._began = time.monotonic()

    def write_logged(self, step: int) -> None:
        """A line of nothing else, between steps."""
        self._write(step, {})

    def _pace(self, step: int) -> dict[str, Any]:
        """How long the step took that ends now, and how many samples it had."""
        step_s, samples = time.monotonic() - self._began, self._samples
        if self._dealt:
            samples = samples or self._dealt.pop(step, 0)
        pace: dict[str, Any] = {"step_ms": 1e3 * step_s}
        if samples > 0:
            self._samples = 0
            pace[_SAMPLES] = samples
            if step_s > 0:
                pace["samples_per_s"] = samples / step_s
        return pace

    def check(self, engine: _core.Engine, **values: float) -> None:
        """A line between steps, with the bytes by peer so far."""
        if not self.is_on or os.getpid() != self._process:
            return
        edges = [{"peer": p, "sent": s, "received": r} for p, s, r in engine.edges()]
        self._write(engine.steps_done, {**values, "edges": edges})

    def close(self, engine: _core.Engine | None) -> None:
        """The last line, where there is an engine."""
        if os.getpid() != self._process:
            return
        try:
            if engine is not None and (self._has_lines or self._logged):
                self.check(engine)
        finally:
            for follower in self._followers:
                follower.close()

    def _write(self, step: int, line: dict[str, Any]) -> None:
        whole = {"step": step, **{k: _finite(v) for k, v in line.items()}, **self._logged}
        self._logged = {}
        for follower in self._followers:
            follower.write(whole)
        self._has_lines = True


def _finite(value: Any) -> Any:
    """JSON has no others: null, as `gossamer train` writes."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_count(value: Any) -> int:
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if type(value) is int and value >= 0:
        return value
    raise ValueError(
        f"[Gossip] log() takes samples as a whole number, 0 or more, got {value!r}; give the size "
        "of the batch, samples=len(x)"
    )


def _as_json(name: str, value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool | int | float | str) or value is None:
        return _finite(value)
    raise ValueError(
        "[Gossip] log() takes numbers, texts and tensors of one element, got "
        f"{type(value).__name__} for {name}; take its mean, or log its elements one by one"
    )
