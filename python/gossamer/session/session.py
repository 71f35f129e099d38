"""Who mixes with whom, over what and how: what stays while a Gossip or a Mixer lives."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from gossamer import _core
from gossamer.session import patterns
from gossamer.session.settings import Settings
from gossamer.tensors.fused import Rule
from gossamer.workers import roll_call
from gossamer.workers.edges import Silence, make_transport
from gossamer.workers.world import World, explain, schedule_for

_BUCKETS = 32
_LEAST_BUCKET_BYTES = 256 << 10
_LARGEST_BUCKET_BYTES = 4 << 20


@dataclass(frozen=True)
class Session:
    """``transport`` is None for a worker alone."""

    world: World
    settings: Settings
    schedule: _core.Schedule
    transport: _core.Transport | None = None

    def row(self, rule: Rule | None) -> _core.Pattern:
        """The pattern that an engine with this rule runs."""
        return patterns.engine_row(self.settings.pattern, rule)

    def averages_gradients(self, rule: Rule | None) -> bool:
        """See ``patterns.averages_gradients``."""
        return patterns.averages_gradients(self.settings.pattern, rule)

    def bucket_bytes(self, total: int) -> int:
        """The size of a bucket, of so many bytes of parameters."""
        hosts = len(self.world.workers_per_host)
        return suitable_bucket_bytes(total, hosts, self.settings.bucket_bytes)

    def engine_options(self, rule: Rule | None) -> _core.EngineOptions:
        """How an engine is to mix, and to step with this rule."""
        settings = self.settings
        return _core.EngineOptions(
            schedule=self.schedule,
            pattern=self.row(rule).name,
            optimizer=rule.name if rule else "none",
            timeout_s=settings.timeout_s,
            check_gradients=settings.check_gradients,
            check_payloads=settings.check_payloads,
            in_backward=settings.update == "backward",
            codec=settings.codec,
            skips_late=settings.late == "skip",
            staleness=settings.staleness,
            stagger=settings.stagger,
            goes_on=settings.lost == "go_on",
            min_workers=settings.min_workers,
            hyper=patterns.with_options(_core.Hyper(), settings.pattern_options),
        )

    def without_group(self) -> Session:
        """The same for what outlives the process group."""
        return dataclasses.replace(self, world=dataclasses.replace(self.world, group=None))


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


def begin(world: World, settings: Settings, rule: Rule | None) -> Session:
    """Chooses the rounds and connects to all with whom they have it exchange. Collective.

    Raises ValueError for a topology that cannot serve this world, or the pattern.
    """
    session = Session(world, settings, _schedule(world, settings, rule))
    peers: Sequence[int] = _core.peers_of(session.engine_options(rule), world.rank)
    transport = make_transport(
        world,
        peers,
        settings.timeout_s,
        settings.transport,
        tls=settings.tls,
        silence=Silence(settings.suspect_s, settings.min_workers)
        if settings.lost == "go_on"
        else None,
    )
    if transport is not None and settings.lost == "error":  # others may be lost, or come back
        waits = settings.late == "wait"
        roll_call.begin(transport, list(peers), world.rank, compares_steps=waits)
    return dataclasses.replace(session, transport=transport)


def _schedule(world: World, settings: Settings, rule: Rule | None) -> _core.Schedule:
    schedule = schedule_for(world, settings.topology, settings.pattern, settings.seed)
    try:
        patterns.check_schedule(settings.pattern, rule, schedule, settings.pattern_options)
    except ValueError as error:
        explain(error, world)
        raise
    return schedule
