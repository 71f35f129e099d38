"""What the workers of the Gossip tests do: with a secret of the user's, or with none."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist
from gossip_scenarios_transports import as_on_hosts
from gossip_support import mlp, train
from torch.optim import SGD

from gossamer import Gossip

SECRET = "what nobody but the workers knows"


@contextmanager
def secret(words: str | None) -> Iterator[None]:
    os.environ.pop("GOSSAMER_SECRET", None)
    if words is not None:
        os.environ["GOSSAMER_SECRET"] = words
    try:
        yield
    finally:
        os.environ.pop("GOSSAMER_SECRET", None)


def all_that_the_store_has() -> dict[str, str]:
    """As whoever reaches it reads it."""
    store = dist.distributed_c10d._get_default_store()
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    keys = [key for key in store.list_keys() if "gossamer" in key]
    return {key: store.get(key).decode(errors="replace") for key in keys}


def connected(rank: int, words: str | None) -> dict[str, Any]:
    """What the store holds while they train, and whether they did."""
    model = mlp(seed=rank)
    with secret(words), as_on_hosts(rank):
        gossip = Gossip(model, optimizer := SGD(model.parameters(), lr=0.1), topology="ring")
    train(model, optimizer, range(3), rank)
    dist.barrier()
    found = all_that_the_store_has()
    dist.barrier()
    steps = gossip.stats()["steps"]
    gossip.close()
    return {"store": found, "steps": steps}


def refused(rank: int, words: str | None) -> str:
    model = mlp()
    try:
        with secret(words):
            Gossip(model, SGD(model.parameters(), lr=0.1), timeout_s=20).close()
    except (ValueError, OSError) as error:
        return str(error)
    return ""


def with_secret(rank: int, size: int) -> Any:
    return connected(rank, SECRET)


def without_secret(rank: int, size: int) -> Any:
    return connected(rank, None)


def some_have_one(rank: int, size: int) -> Any:
    return refused(rank, SECRET if rank == 0 else None)


def another_one(rank: int, size: int) -> Any:
    return refused(rank, SECRET if rank == 0 else "what everybody has long known")


def a_short_one(rank: int, size: int) -> Any:
    return refused(rank, "short" if rank == 1 else SECRET)


SCENARIOS = {
    "secret_given": with_secret,
    "secret_none": without_secret,
    "secret_some": some_have_one,
    "secret_other": another_one,
    "secret_short": a_short_one,
}
