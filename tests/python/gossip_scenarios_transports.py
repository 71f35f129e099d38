"""What the workers of the Gossip tests do: the same training over each transport."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from gossip_scenarios_basic import gossiping, numbers
from gossip_support import batch, loss_of, mlp
from torch.optim import SGD, AdamW, RMSprop

from gossamer import _core

TRANSPORTS = ("net", "hosts", "tls", "c10d")
RUNS = {
    "cwa": (AdamW, {"topology": "ring"}),
    "atc": (SGD, {"topology": "complete", "pattern": "atc"}),
    "allreduce": (AdamW, {"pattern": "allreduce"}),
    "hierarchical": (AdamW, {}),
    "own step": (RMSprop, {"topology": "one_peer_exponential"}),
}


@contextlib.contextmanager
def as_on_hosts(rank: int) -> Iterator[None]:
    """Ranks 0 and 1 share memory; the others are reached over TCP, as on other hosts."""
    make = _core.net_transport

    def net_transport(*args: Any, **options: Any) -> _core.Transport:
        options.update(address="127.0.0.1", share_memory=rank < 2)
        return make(*args, **options)

    with mock.patch.object(_core, "net_transport", net_transport):
        yield


def transports(rank: int, size: int) -> Any:
    """By run and transport: the parameters at the end, the bytes per edge, and the average's."""
    found: dict[str, Any] = {}
    for run, (make, options) in RUNS.items():
        for transport in TRANSPORTS:
            model = mlp(seed=rank, hidden=3000)  # more than travels in a single message
            optimizer = make(model.parameters(), lr=0.01)
            over_tcp = transport in {"hosts", "tls"}
            kind = "net" if over_tcp else transport
            ways = {"transport": kind, "tls": transport == "tls", "bucket_bytes": 1 << 16}
            with (
                as_on_hosts(rank) if over_tcp else contextlib.nullcontext(),
                gossiping(model, optimizer, **ways, **options) as gossip,
            ):
                start = numbers(model)[::11]
                for step in range(6):
                    optimizer.zero_grad()
                    loss_of(model, batch(step, rank)).backward()
                    optimizer.step()
                stats = gossip.stats()
                with gossip.averaged():
                    mean = numbers(model)[::97]
                found[f"{run} {transport}"] = {
                    "start": start,
                    "x": numbers(model)[::7],
                    "mean": mean,
                    "stats": stats,
                }
    return found


SCENARIOS = {"transports": transports}
