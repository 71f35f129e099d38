"""What a Gossip is made from: what all ranks have to agree on, and the engine's options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer import _core, parameters

if TYPE_CHECKING:
    from gossamer.gossip import Gossip


def about(gossip: Gossip) -> str:
    """What has to be the same on all ranks, a line each."""
    name = getattr(gossip._topology, "name", gossip._topology)
    step = gossip._rule.name if gossip._rule else "own step"
    lines = [
        f"topology {name}",
        f"pattern {gossip._pattern}",
        f"update {gossip._update}",
        f"buffers {gossip._buffers}",
        f"seed {gossip._seed}",
        f"bucket_bytes {gossip._bucket_bytes}",
        f"transport {gossip._transport_kind}",
        f"optimizer {type(gossip._optimizer).__name__} ({step})",
    ]
    return "\n".join([*lines, *parameters.describe(gossip._model, gossip._named)])


def engine_options(gossip: Gossip) -> _core.EngineOptions:
    """How the engine is to mix and step."""
    own_step = gossip._rule is None
    patterns = {"cwa": "cwa_difference" if own_step else "cwa", "allreduce": "cwa"}
    return _core.EngineOptions(
        schedule=gossip._schedule,
        pattern=patterns.get(gossip._pattern, gossip._pattern),
        optimizer=gossip._rule.name if gossip._rule else "none",
        timeout_s=gossip._timeout_s,
        check_gradients=gossip._check_gradients and not own_step,
        in_backward=gossip._update == "backward",
    )
