"""The ranks of a Gossip meet: each checks what it was given, and all want the same."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from torch import nn

from gossamer.records import tracing
from gossamer.session import patterns, planning, settings
from gossamer.session.settings import Settings
from gossamer.step import backward
from gossamer.tensors import beside, devices, optimizers, trained, wrappers
from gossamer.tensors.trained import Trained
from gossamer.workers.world import Seat, World, meet


class Given(NamedTuple):
    """What one rank makes its Gossip from. ``ddp``: what is around the model, or inside of it."""

    model: nn.Module
    optimizer: optimizers.Given
    mix_state: beside.MixState
    ddp: nn.parallel.DistributedDataParallel | None
    seat: Seat


class Met(NamedTuple):
    """What all ranks have. ``plan``: sentences that say why topology="auto" is what it is."""

    world: World
    settings: Settings
    trained: Trained
    plan: tuple[str, ...]


def meet_all(given: Given, asked: Settings) -> Met:
    """Meets the other ranks, which must want the same, and with topology="auto" finds out what
    that is. Collective."""
    world, found = _meet(given, asked)
    plan: tuple[str, ...] = ()
    if asked.plan is not None:
        asked, plan = planning.decide(world, asked)
        world, found = _meet(given, asked)
    if given.ddp is not None:
        world = dataclasses.replace(world, copies=given.ddp.process_group)
    return Met(world, asked, found, plan)


def about(asked: Settings, found: Trained) -> list[str]:
    """What has to be the same on all ranks, a line each."""
    step = found.rule.name if found.rule else "own step"
    optimizer = f"optimizer {found.optimizers.word} ({step})"
    return [*settings.describe(asked), optimizer, *found.describe()]


def _meet(given: Given, asked: Settings) -> tuple[World, Trained]:
    found: list[Trained] = []
    lines: list[str] = []
    problem = None
    try:
        found.append(_checked(given, asked))
        lines = about(asked, found[0])
    except Exception as error:
        problem = error
    gpu = devices.name_of_gpu(found[0].model) if found else ""
    world = meet(given.seat, "\n".join(lines), problem, asked.timeout_s, gpu)
    return world, found[0]


def _checked(given: Given, asked: Settings) -> Trained:
    taken = optimizers.taken(given.optimizer)
    asked.check()
    tracing.prepare_folder("trace", asked.trace)
    tracing.prepare_folder("metrics", asked.metrics)
    taken.check_unused()
    wanted, is_plain = beside.wanted(given.mix_state), asked.is_plain(given.seat.size)
    found = trained.read(given.model, taken, wanted, is_plain=is_plain)
    found.wanted.check(asked.pattern, asked.update, asked.late, found.everything())
    devices.check(found.named)
    patterns.check_optimizers(asked.pattern, found.rule, taken)
    backward.check_arguments(asked.update, asked.pattern, found, given.ddp)
    wrappers.check_apart(given.ddp, found.named, given.seat.group, asked.pattern)
    if given.ddp is not None:
        _check_copies(asked)
    return found


def _check_copies(asked: Settings) -> None:
    """Raises ValueError for what parts the ranks of a host whose DDP has equal copies. Each of them
    gossips in a group of its own, where others may be lost, late or of another mean loss."""
    wrong = {
        "lost='go_on'": asked.lost == "go_on",
        "late='skip'": asked.late == "skip",
        f"topology {asked.topology!r}, which follows the loss": getattr(
            asked.topology, "loss_driven", False
        ),
    }
    for got, is_wrong in wrong.items():
        if is_wrong:
            raise ValueError(
                "[Gossip] with DDP inside of a host its ranks must stay equal, but each of them "
                f"gossips by itself, got {got}; leave DDP out and make one Gossip of all ranks, "
                "with topology='aer', or shard the model with fully_shard"
            )
