"""What a Gossip and a Mixer have in common: a worker that is connected to others."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Protocol, TypeVar

import torch

from gossamer import _core
from gossamer.fused import Rule
from gossamer.world import World

if TYPE_CHECKING:
    from gossamer.setup import Settings


class Member(Protocol):
    """Whoever calls collective methods. ``_rule`` is that of a fused optimizer; ``_block`` is the
    one of the methods that go around a block."""

    _settings: Settings
    _world: World
    _schedule: _core.Schedule
    _transport: _core.Transport | None
    _engine: _core.Engine
    _rule: Rule | None
    _parameters: list[torch.Tensor]
    _block: str


Self = TypeVar("Self", bound="Closing")


class Closing:
    """Closes itself at the end of a ``with``."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def close_if_alive(reference: weakref.ref[Closing]) -> None:
    """At the end of the process."""
    member = reference()
    if member is not None:
        member.close()
