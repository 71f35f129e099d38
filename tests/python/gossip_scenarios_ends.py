"""What the workers of the Gossip tests do: refusals, failures and ends."""

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from gossip_scenarios_basic import TIMEOUT_S, gossiping
from gossip_support import mlp, train
from torch import nn
from torch.optim import SGD, Adam

import gossamer
from gossamer import Gossip

SHORT_S = 10.0


def failure(error: Exception) -> dict[str, Any]:
    found: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, gossamer.TransportError):
        found["peer"] = error.peer
        found["elapsed_s"] = error.elapsed_s
    return found


def attempt(make: Callable[[], Gossip]) -> dict[str, Any]:
    return attempt_to(lambda: make().close())


def attempt_to(act: Callable[[], Any]) -> dict[str, Any]:
    """How it fails; empty if it does not."""
    start = time.monotonic()
    try:
        act()
    except Exception as error:
        return {**failure(error), "took_s": time.monotonic() - start}
    return {}


class Named(nn.Module):
    def __init__(self, names: str, shape: tuple[int, ...] = (3,)) -> None:
        super().__init__()
        for name in names:
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))


def disagreements(rank: int, size: int) -> Any:
    """By case: how Gossip fails where the last rank is given something else."""
    odd = rank == size - 1

    def gossip(model: nn.Module | None = None, kind: Any = SGD, **options: Any) -> Gossip:
        model = model or Named("ab")
        optimizer = kind(model.parameters(), lr=0.1)
        return Gossip(model, optimizer, timeout_s=TIMEOUT_S, **options)

    def two_groups() -> Gossip:
        model = Named("ab")
        groups = [{"params": [model.a]}, {"params": [model.b]}]
        return Gossip(model, SGD(groups if odd else model.parameters(), lr=0.1))

    def with_buffer() -> nn.Module:
        model = Named("ab")
        if odd:
            model.register_buffer("extra", torch.zeros(2))
        return model

    def foreign() -> Gossip:
        model = Named("ab")
        other = Named("ab")
        return Gossip(model, SGD((other if odd else model).parameters(), lr=0.1))

    cases: dict[str, Callable[[], Gossip]] = {
        "shape": lambda: gossip(Named("ab", (4,) if odd else (3,))),
        "order": lambda: gossip(Named("ba" if odd else "ab")),
        "parameter": lambda: gossip(Named("abc" if odd else "ab")),
        "dtype": lambda: gossip(Named("ab").double() if odd else Named("ab")),
        "groups": two_groups,
        "buffer": lambda: gossip(with_buffer()),
        "topology": lambda: gossip(topology="ring" if odd else "complete"),
        "pattern": lambda: gossip(pattern="atc" if odd else "cwa"),
        "optimizer": lambda: gossip(kind=Adam if odd else SGD),
        "bucket_bytes": lambda: gossip(bucket_bytes=4096 if odd else 64),
        "codec": lambda: gossip(codec="bf16" if odd else "int8"),
        "staleness": lambda: gossip(late="skip", staleness=3 if odd else 2),
        "foreign": foreign,
        "misspelt": lambda: gossip(topology="rong"),
        "size": lambda: gossip(topology="hypercube"),
    }
    return {name: attempt(case) for name, case in cases.items()}


def missing_rank(rank: int, size: int) -> Any:
    """The last rank makes no Gossip."""
    if rank == size - 1:
        return {}
    model = mlp()
    return attempt(lambda: Gossip(model, SGD(model.parameters(), lr=0.1), timeout_s=1.5))


def added_on_one(rank: int, size: int) -> Any:
    """Rank 0 alone adds a parameter in mid-run."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    gossip = Gossip(model, optimizer, topology="ring", timeout_s=60)
    train(model, optimizer, range(2), rank)
    if rank == 0:
        model.register_parameter("extra", nn.Parameter(torch.zeros(2)))
        optimizer.add_param_group({"params": [model.extra]})
    found = attempt_to(lambda: train(model, optimizer, range(2, 5), rank))
    gossip.close()
    return found


def train_until_it_fails(gossip: Gossip, model: nn.Module, optimizer: Any, rank: int) -> Any:
    start = time.monotonic()
    for step in range(100_000):
        try:
            train(model, optimizer, [step], rank)
        except gossamer.TransportError as error:
            return {**failure(error), "took_s": time.monotonic() - start}
        if time.monotonic() - start > 10 * SHORT_S:
            break
    return {}


def killed(rank: int, size: int) -> Any:
    """The last rank is killed after three steps."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    gossip = Gossip(model, optimizer, topology="complete", timeout_s=SHORT_S)
    train(model, optimizer, range(3), rank)
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    found = train_until_it_fails(gossip, model, optimizer, rank)
    gossip.close()
    return found


def an_exception(rank: int, size: int) -> Any:
    """The last rank leaves through an exception that nobody catches."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    gossip = Gossip(model, optimizer, topology="complete", timeout_s=SHORT_S)
    train(model, optimizer, range(3), rank)
    if rank == size - 1:
        sys.exit("out of memory, say")
    return train_until_it_fails(gossip, model, optimizer, rank)


def last_step_late(rank: int, size: int) -> Any:
    """Rank 0 takes its last step when all others have closed theirs."""
    found = {}
    for pattern in ("cwa", "atc"):
        model = mlp(hidden=200_000)  # more than the network holds on the way
        optimizer = SGD(model.parameters(), lr=0.1)
        gossip = Gossip(model, optimizer, topology="ring", pattern=pattern, timeout_s=SHORT_S)
        train(model, optimizer, range(3), rank)
        if pattern == "cwa" and rank == 0:
            time.sleep(0.5)
        found[pattern] = attempt_to(lambda: train(model, optimizer, [3], rank))  # noqa: B023
        gossip.close()
    return found


def no_close(rank: int, size: int) -> Any:
    """The last scenario of a run: the process ends with everything open, one of them late."""
    for topology in ("ring", "complete"):
        model = mlp()
        optimizer = SGD(model.parameters(), lr=0.1)
        globals()[topology] = Gossip(model, optimizer, topology=topology, timeout_s=SHORT_S)
        train(model, optimizer, range(3), rank)
    if rank == 0:
        time.sleep(0.5)
    train(model, optimizer, [3], rank)
    return "left"


def forked(rank: int, size: int) -> Any:
    """A child of each rank closes its copy, and the ranks train on."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    with Gossip(model, optimizer, topology="ring", timeout_s=SHORT_S) as gossip:
        train(model, optimizer, range(3), rank)
        child = os.fork()
        if child == 0:
            gossip.close()
            os._exit(0)  # the interpreter's own end waits for torch's threads, which a fork lacks
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        train(model, optimizer, range(3, 9), rank)
        dist.barrier()
    return code


def nan_gradient(rank: int, size: int) -> Any:
    """Rank 1 has a NaN in step 2; it goes on with the next batch as if that had not been."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    found = {}
    with gossiping(model, optimizer, topology="ring"):
        train(model, optimizer, [0], rank)
        if rank == 1:
            model[2].bias.grad[1] = float("nan")
            try:
                optimizer.step()
            except RuntimeError as error:
                found = failure(error)
        train(model, optimizer, range(1, 4), rank)
    return found


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function
    for function in (
        disagreements,
        missing_rank,
        added_on_one,
        killed,
        an_exception,
        last_step_late,
        no_close,
        forked,
        nan_gradient,
    )
}
