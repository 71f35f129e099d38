"""What the workers of the Gossip tests do: scenarios of test_gossip_mistakes.py."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from gossip_scenarios_basic import Normed, buffers, gossiping, numbers
from gossip_support import batch, loss_of, mlp, train
from torch import nn
from torch.optim import SGD

import gossamer.gossip
from gossamer import _core

RING = {"topology": "ring"}


def two_forwards(rank: int, size: int, mixes_in_forward: bool = False) -> Any:
    """Two forwards per backward, a rate of zero: parameters after one step."""
    model = nn.Linear(5, 3)
    optimizer = SGD(model.parameters(), lr=0.0)
    with gossiping(model, optimizer, **RING) as gossip:
        model.load_state_dict({k: v * 0 + rank for k, v in model.state_dict().items()})
        if mixes_in_forward:
            hyper = [_core.Hyper()]
            model.register_forward_hook(
                lambda *_: gossip._run.team.engine.step(hyper, True) and None
            )
        loss_of(model, batch(0, rank)).backward()  # calls the model twice
        optimizer.step()
        return numbers(model)


def mixing_in_every_forward(rank: int, size: int) -> Any:
    return two_forwards(rank, size, mixes_in_forward=True)


def only_parameters_are_sent(rank: int, size: int) -> Any:
    """An engine that does not broadcast buffers and frozen parameters."""

    class Deaf(_core.Engine):
        def broadcast(self, tensors: Any) -> None:
            pass

    whole, gossamer.gossip._core.Engine = gossamer.gossip._core.Engine, Deaf
    try:
        model = Normed(seed=rank)
        trained = [p for name, p in model.named_parameters() if name != "frozen"]
        with gossiping(model, SGD(trained, lr=0.1), **RING):
            return {"frozen": model.frozen.tolist(), "buffers": buffers(model)}
    finally:
        gossamer.gossip._core.Engine = whole


def straggler(rank: int, size: int, topology: str = "ring") -> Any:
    """Rank 0 does not step until rank 2, which does not hear it, is two steps ahead of it."""
    store = dist.distributed_c10d._get_process_group_store(dist.group.WORLD)
    key = f"ahead/{topology}"
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    waited = False
    with gossiping(model, optimizer, topology=topology):
        for step in range(6):
            if rank == 0 and step == 2:
                try:
                    store.wait([key], timedelta(seconds=3))
                except RuntimeError:
                    waited = True
            train(model, optimizer, [step], rank)
            if rank == 2 and step == 3:
                store.set(key, "")
    return waited


def straggler_among_all(rank: int, size: int) -> Any:
    return straggler(rank, size, topology="complete")


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function
    for function in (
        two_forwards,
        mixing_in_every_forward,
        only_parameters_are_sent,
        straggler,
        straggler_among_all,
    )
}
