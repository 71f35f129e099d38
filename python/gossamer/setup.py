"""What a Gossip is made from: what all ranks have to agree on, and the engine's options."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from gossamer import (
    _core,
    backward,
    mesh,
    named,
    parameters,
    patterns,
    plain,
    planning,
    roll_call,
    shards,
    tracing,
)
from gossamer.edges import make_transport
from gossamer.fused import FusedState
from gossamer.world import Seat, World, explain, meet, schedule_for

if TYPE_CHECKING:
    from gossamer.gossip import Gossip
    from gossamer.member import Member

_WORDS = {
    "buffers": ("averaged", "local"),
    "transport": ("auto", "net", "c10d"),
    "codec": ("fp32", "bf16", "int8"),
    "late": ("wait", "skip"),
}
_BUCKETS = 32
_LEAST_BUCKET_BYTES = 256 << 10
_LARGEST_BUCKET_BYTES = 4 << 20


NO_OPTIMIZER: dict[str, Any] = {
    "pattern": "atc",
    "pattern_options": None,
    "buffers": "local",
    "check_gradients": False,
    "check_payloads": False,
    "update": "step",
    "late": "wait",
    "staleness": 1,
    "plan": None,
    "trace": None,
    "trace_steps": 1,
    "metrics": None,
}
"""Settings of one that only mixes."""


@dataclass(frozen=True)
class Settings:
    """The arguments of Gossip."""

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

    @classmethod
    def of(cls, arguments: dict[str, Any]) -> Settings:
        """From all that Gossip was called with, by name."""
        arguments = named.expanded(arguments)
        return cls(**{each.name: arguments[each.name] for each in fields(cls)})

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
        planning.check(self)
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
        if self.late == "skip" and self.pattern != "cwa":
            raise ValueError(
                "[Gossip] late='skip' goes on with the parameters that have come, which only "
                f"pattern 'cwa' bears, got pattern {self.pattern!r}; use that, or late='wait'"
            )


def meet_all(
    gossip: Gossip,
    optimizer: torch.optim.Optimizer,
    model: nn.Module,
    ddp: nn.parallel.DistributedDataParallel | None,
    seat: Seat,
) -> World:
    """Meets the other ranks, which must want the same, and with topology="auto" finds out what
    that is. Collective."""

    def once() -> World:
        said, problem = prepare(gossip, optimizer, model, ddp, seat)
        return meet(seat, said, problem, gossip._settings.timeout_s)

    world = once()
    if gossip._settings.plan is not None:
        gossip._settings, gossip.plan = planning.decide(world, gossip._settings)
        once()
    return world


def prepare(
    gossip: Gossip,
    optimizer: torch.optim.Optimizer,
    model: nn.Module,
    ddp: nn.parallel.DistributedDataParallel | None,
    seat: Seat,
) -> tuple[str, Exception | None]:
    """Checks what this rank was given: what it has to tell the others, or what is wrong."""
    try:
        gossip._optimizer = parameters.unwrapped_optimizer(optimizer)
        gossip._settings.check()
        tracing.prepare_folder("trace", gossip._settings.trace)
        tracing.prepare_folder("metrics", gossip._settings.metrics)
        parameters.check_unused(gossip._optimizer)
        gossip._read_optimizer()
        settings = gossip._settings
        patterns.check_optimizer(settings.pattern, gossip._rule, gossip._optimizer)
        backward.check_arguments(settings.update, settings.pattern, gossip._rule, model, ddp)
        mesh.check_apart(ddp, gossip._named, seat.group, settings.pattern)
        return about(gossip), None
    except Exception as error:
        return "", error


def bucket_bytes(member: Member) -> int:
    """What was asked for, or what suits the hosts."""
    total = sum(p.numel() * p.element_size() for p in member._parameters)
    return suitable_bucket_bytes(
        total, len(member._world.workers_per_host), member._settings.bucket_bytes
    )


def suitable_bucket_bytes(total: int, hosts: int, asked: int | None) -> int:
    """What was asked for, or what suits ``total`` bytes on so many hosts.

    A bucket follows the schedule with a shift of its own and waits for no other one, so several
    hosts want many, to keep their links busy; small ones cost more messages than they gain.
    """
    if asked is not None:
        return asked
    if hosts == 1:
        return _LARGEST_BUCKET_BYTES
    return min(max(total // _BUCKETS, _LEAST_BUCKET_BYTES), _LARGEST_BUCKET_BYTES)


def about(gossip: Gossip) -> str:
    """What has to be the same on all ranks, a line each."""
    step = gossip._rule.name if gossip._rule else "own step"
    lines = [
        *about_settings(gossip._settings),
        f"optimizer {type(gossip._optimizer).__name__} ({step})",
    ]
    return "\n".join([*lines, *parameters.describe(gossip._model, gossip._named)])


def about_settings(settings: Settings) -> list[str]:
    """As ``about``, of the arguments. Raises IoError or ValueError for a topology's file."""
    name = getattr(settings.topology, "name", settings.topology)
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
        f"bucket_bytes {settings.bucket_bytes or 'chosen'}",
        f"transport {settings.transport}, tls {settings.tls}",
        f"trace of {settings.trace_steps} steps" if settings.trace is not None else "no trace",
    ]


def make_engine(gossip: Gossip) -> None:
    """Gives it an engine for the parameters that it has now, and the state of a fused optimizer."""
    gossip._engine = shards.make_engine(
        gossip._model,
        gossip._transport,
        gossip._named,
        engine_options(gossip),
        bucket_bytes=bucket_bytes(gossip),
        recorder=gossip._trace.recorder,
    )
    gossip._state = (
        FusedState(
            gossip._optimizer,
            gossip._rule,
            gossip._engine,
            gossip._parameters,
            mixes_momentum=row_of(gossip).mixes_momentum,
        )
        if gossip._rule
        else None
    )


def share_what_nobody_trains(gossip: Gossip) -> None:
    """Everybody gets rank 0's frozen parameters and buffers. Collective."""
    mixed = {id(parameter) for parameter in gossip._parameters}
    named = gossip._model.named_parameters()
    frozen = [(name, parameter) for name, parameter in named if id(parameter) not in mixed]
    gossip._engine.broadcast(plain.of_all([*frozen, *gossip._model.named_buffers()]))


def choose_schedule(member: Member) -> _core.Schedule:
    """The rounds of its world. Raises ValueError for a topology that cannot serve it, or its
    pattern."""
    settings, world = member._settings, member._world
    schedule = schedule_for(world, settings.topology, settings.pattern, settings.seed)
    try:
        patterns.check_schedule(settings.pattern, member._rule, schedule, settings.pattern_options)
    except ValueError as error:
        explain(error, world)
        raise
    return schedule


def row_of(member: Member) -> _core.Pattern:
    """The pattern that its engine runs."""
    return patterns.engine_row(member._settings.pattern, member._rule)


def connect(member: Member) -> _core.Transport | None:
    """The transport to all with whom the schedule has it exchange. Collective."""
    settings = member._settings
    peers = _core.peers_of(engine_options(member), member._world.rank)
    transport = make_transport(
        member._world, peers, settings.timeout_s, settings.transport, tls=settings.tls
    )
    if transport is not None:
        waits = settings.late == "wait"
        roll_call.begin(transport, peers, member._world.rank, compares_steps=waits)
    return transport


def engine_options(member: Member) -> _core.EngineOptions:
    """How the engine is to mix and step."""
    settings = member._settings
    return _core.EngineOptions(
        schedule=member._schedule,
        pattern=row_of(member).name,
        optimizer=member._rule.name if member._rule else "none",
        timeout_s=settings.timeout_s,
        check_gradients=settings.check_gradients,
        check_payloads=settings.check_payloads,
        in_backward=settings.update == "backward",
        codec=settings.codec,
        skips_late=settings.late == "skip",
        staleness=settings.staleness,
        stagger=settings.stagger,
        hyper=patterns.with_options(_core.Hyper(), settings.pattern_options),
    )
