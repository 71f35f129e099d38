"""The arguments of a Gossip, checked."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gossamer import _core
from gossamer.session import method_names, patterns

_WORDS = {
    "buffers": ("averaged", "local"),
    "transport": ("auto", "net", "c10d"),
    "codec": ("fp32", "bf16", "int8"),
    "late": ("wait", "skip"),
    "lost": ("error", "go_on"),
}
_PLANNED = {"pattern": "cwa", "codec": "fp32", "late": "wait"}
"""What a plan decides, with the defaults that say nothing."""

NO_OPTIMIZER: dict[str, Any] = {
    "pattern": "atc",
    "pattern_options": None,
    "buffers": "local",
    "check_gradients": False,
    "check_payloads": False,
    "update": "step",
    "late": "wait",
    "staleness": 1,
    "lost": "error",
    "min_workers": 0,
    "suspect_s": _core.SUSPECTED_AFTER_S,
    "plan": None,
    "trace": None,
    "trace_steps": 1,
    "metrics": None,
}
"""Settings of one that only mixes."""


@dataclass(frozen=True)
class Settings:
    """The arguments of Gossip. ``chose_pattern``: the pattern is not the default."""

    topology: str | _core.Schedule | _core.Method
    pattern: str
    pattern_options: patterns.Options | None
    buffers: str
    check_gradients: bool
    check_payloads: bool
    update: str
    codec: str
    late: str
    staleness: int
    lost: str
    min_workers: int
    suspect_s: float
    timeout_s: float
    bucket_bytes: int | None
    transport: str
    tls: bool
    seed: int
    stagger: bool
    plan: str | os.PathLike[str] | None
    trace: str | os.PathLike[str] | None
    trace_steps: int
    metrics: str | os.PathLike[str] | None
    chose_pattern: bool

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Settings:
        """From all that Gossip was called with, by name; without a pattern it is the default."""
        is_method = isinstance(arguments["topology"], _core.Method)  # which names one
        chose_pattern = is_method or arguments["pattern"] is not None
        pattern = arguments["pattern"] or "cwa"
        given = method_names.expanded(
            {**arguments, "pattern": pattern, "chose_pattern": chose_pattern},
        )
        return cls(**{each.name: given[each.name] for each in fields(cls)})

    @property
    def topology_name(self) -> str:
        """As it was given, or the name of a schedule or method."""
        return str(getattr(self.topology, "name", self.topology))

    def is_plain(self, workers: int) -> bool:
        """Note [A worker alone]: whether nothing is left of the step but the optimizer's. One
        worker has nothing to mix. So torch's optimizers then take their own steps, with all of
        their options and all of their bits. The engine's steps differ from them in roundings. It
        takes them where the pattern changes what one worker does as well, and inside of the
        backward, where no optimizer can."""
        return workers == 1 and self.update == "step" and patterns.is_plain_alone(self.pattern)

    def check(self) -> None:
        """Raises ValueError for what no Gossip can be made with."""
        for name, valid in {"pattern": patterns.names(), **_WORDS}.items():
            value = getattr(self, name)
            if value not in valid:
                near = difflib.get_close_matches(str(value), valid, n=1, cutoff=0.3)
                hint = f"did you mean '{near[0]}'? " if near else ""
                raise ValueError(
                    f"[Gossip] unknown {name}, got {value!r}; {hint}valid: {', '.join(valid)}"
                )
        for name, unit in (("timeout_s", "seconds"), ("bucket_bytes", "bytes")):
            number = getattr(self, name)
            if number is not None and not number > 0:
                raise ValueError(
                    f"[Gossip] {name} must be positive, got {number}; give a number of {unit}, or "
                    "leave it out"
                )
        if self.trace_steps < 1:
            raise ValueError(
                f"[Gossip] trace_steps must be positive, got {self.trace_steps}; leave trace out "
                "where nothing is to be recorded"
            )
        patterns.check_options(self.pattern, self.pattern_options)
        self._check_plan()
        if self.staleness < 0:
            raise ValueError(
                f"[Gossip] staleness must not be negative, got {self.staleness}; give the number "
                "of steps that a neighbour's parameters may be old"
            )
        if self.tls and self.transport == "c10d":
            raise ValueError(
                "[Gossip] tls is for Gossamer's own transport, got transport='c10d', whose Gloo "
                "encrypts nothing; use transport='net'"
            )
        self._check_going_on()
        if self.late == "skip" and self.pattern != "cwa":
            raise ValueError(
                "[Gossip] late='skip' goes on with the parameters that have come, which only "
                f"pattern 'cwa' bears, got pattern {self.pattern!r}; use that, or late='wait'"
            )

    def _check_going_on(self) -> None:
        if self.min_workers < 0 or (self.min_workers > 0 and self.lost == "error"):
            raise ValueError(
                "[Gossip] min_workers is how many workers lost='go_on' needs, got "
                f"min_workers={self.min_workers}, lost={self.lost!r}; leave it out: then one goes "
                "on that hears more workers than it misses"
            )
        self._check_suspicion()
        if self.lost == "error":
            return
        if self.transport == "c10d":
            raise ValueError(
                "[Gossip] lost='go_on' needs Gossamer's own transport, got transport='c10d'; use "
                "transport='net'"
            )

    def _check_suspicion(self) -> None:
        least = _core.LEAST_SUSPECTED_S
        is_used = self.lost == "go_on" or self.suspect_s == _core.SUSPECTED_AFTER_S
        if not (is_used and self.suspect_s >= least):
            raise ValueError(
                "[Gossip] suspect_s is after how long without a word lost='go_on' takes a worker "
                f"for lost, {least:g} or more, got suspect_s={self.suspect_s:g}, "
                f"lost={self.lost!r}; leave it out, or give so many seconds"
            )

    def _check_plan(self) -> None:
        """What does not go with a plan, or without one."""
        is_auto = self.topology == "auto"
        if is_auto and self.plan is None:
            raise ValueError(
                '[Gossip] topology="auto" needs a plan, got none; give plan= a folder with the '
                "cluster.toml and workload.toml of `gossamer plan`, or name a topology"
            )
        if not is_auto and self.plan is not None:
            raise ValueError(
                f'[Gossip] plan= is for topology="auto", got topology {self.topology_name!r}; '
                "leave one of them out"
            )
        for name, default in _PLANNED.items():
            value = getattr(self, name)
            if is_auto and value != default:
                raise ValueError(
                    f'[Gossip] topology="auto" decides {name} as well, got {name}={value!r}; leave '
                    "it out, or name a topology"
                )


def describe(settings: Settings) -> list[str]:
    """What has to be the same on all ranks, a line each. Raises IoError or ValueError for a
    topology's file."""
    name = settings.topology_name
    if isinstance(settings.topology, str) and _core.is_schedule_file(settings.topology):
        name = _core.name_in_file(settings.topology)
    options = "".join(f" {k}={v}" for k, v in sorted((settings.pattern_options or {}).items()))
    return [
        f"topology {name}",
        f"pattern {settings.pattern}{options}",
        f"update {settings.update}",
        f"buffers {settings.buffers}",
        f"seed {settings.seed}, stagger {settings.stagger}",
        f"codec {settings.codec}",
        f"late {settings.late}, staleness {settings.staleness}",
        f"lost {settings.lost}, min_workers {settings.min_workers}, suspect_s "
        f"{settings.suspect_s:g}",
        f"bucket_bytes {settings.bucket_bytes or 'chosen'}",
        f"transport {settings.transport}, tls {settings.tls}",
        f"trace of {settings.trace_steps} steps" if settings.trace is not None else "no trace",
    ]
