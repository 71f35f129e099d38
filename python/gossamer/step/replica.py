"""What is equal on all replicas that average their gradients, for one that comes back.

See Note [A replica that comes back] in gossamer/torch/tensors/replica.h.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch

from gossamer import _core
from gossamer.step.carried import masters_of, take_masters
from gossamer.tensors.trained import Trained


class Replica:
    """Of an engine, which holds this."""

    def __init__(self, engine: _core.Engine, trained: Trained) -> None:
        self._engine = weakref.ref(engine)
        self._trained = trained

    def tensors(self) -> list[torch.Tensor]:
        """In an order that is the same on all ranks, masters last."""
        trained = self._trained
        found = [*trained.model.parameters(), *trained.model.buffers()]
        for parameter in trained.tensors:
            for optimizer in trained.optimizers.each:
                state = optimizer.state.get(parameter, {})
                values = (state[name] for name in sorted(state))
                found += [each for each in values if isinstance(each, torch.Tensor)]
        return [*found, *(each.clone() for each in self._masters().values())]

    def took(self, tensors: Sequence[torch.Tensor]) -> None:
        """They have another rank's values; the masters among them are copies."""
        engine = self._engine()
        places = self._masters()
        if engine is not None and places:
            masters = dict(zip(places, tensors[-len(places) :], strict=True))
            take_masters(engine, self._trained, masters)

    def _masters(self) -> dict[int, torch.Tensor]:
        engine = self._engine()
        return {} if engine is None else masters_of(engine, self._trained)
