"""What is around a model, or inside of it, and works over ranks of its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch.distributed as dist
from torch import nn

from gossamer.tensors import shards
from gossamer.tensors.names import Named


def unwrapped(model: nn.Module) -> tuple[nn.Module, nn.parallel.DistributedDataParallel | None]:
    """The model without DistributedDataParallel around it, and that or what is inside of it; one
    that is compiled stays compiled.

    Raises TypeError for no model, ValueError for the older kind of FSDP, which keeps its parameters
    elsewhere.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"[Gossip] the first argument must be a torch.nn.Module, got {type(model).__name__}; "
            "call Gossip(model, optimizer)"
        )
    if any(type(m).__name__ == "FullyShardedDataParallel" for m in model.modules()):
        raise ValueError(
            "[Gossip] the model is wrapped in FullyShardedDataParallel, which has its parameters "
            'elsewhere; use torch.distributed.fsdp.fully_shard(model, mesh=mesh["shard"])'
        )
    inner = getattr(model, "_orig_mod", model)  # of torch.compile
    if isinstance(inner, nn.parallel.DistributedDataParallel):
        return inner.module, inner
    inside = (m for m in model.modules() if isinstance(m, nn.parallel.DistributedDataParallel))
    return model, next(inside, None)  # in a wrapper of Lightning Fabric, for instance


def check_apart(
    ddp: nn.parallel.DistributedDataParallel | None,
    named: Sequence[Named],
    group: dist.ProcessGroup | None,
    pattern: str,
) -> None:
    """Raises ValueError where DDP or FSDP work over ranks that are to gossip with each other."""
    ranks = set(dist.get_process_group_ranks(group)) if group is not None else {0}
    inner = dist.get_process_group_ranks(ddp.process_group) if ddp and group is not None else [0]
    if ddp is not None and (group is None or len(ranks.intersection(inner)) > 1):
        raise ValueError(
            "[Gossip] the model is wrapped in DistributedDataParallel, which would average every "
            f"gradient over ranks {inner} as well, got {sorted(ranks)} to gossip with each other; "
            "pass the bare model, or as group the ranks of the other dimension (with Fabric: "
            "Gossip(model, optimizer) first, then fabric.setup_optimizers(optimizer) alone)"
        )
    for name, parameter, _ in named:
        if not shards.is_sharded(parameter):
            continue
        mates = parameter.device_mesh.mesh.flatten().tolist()
        if len(ranks.intersection(mates)) > 1:
            averages = ", which averages gradients over both by itself" * (pattern == "allreduce")
            raise ValueError(
                f"[Gossip] parameter '{name}' is spread over ranks {mates}{averages}, got "
                f"{sorted(ranks)} to gossip with each other; shard over one dimension of a mesh "
                'and pass the other as group: fully_shard(model, mesh=mesh["shard"]), '
                'group=mesh["gossip"]'
            )
