"""What the workers of the Gossip tests do: mistakes of one rank or of all, and what each is told.

Three workers on hosts of one and two; the messages stand in tests/golden/python_errors.txt.
"""

import contextlib
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from gossip_scenarios_ends import Named
from gossip_support import mlp, train
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, Adam

import gossamer
from gossamer import Gossip, _built

SHORT_S = 2.5


def sgd(model: nn.Module) -> SGD:
    return SGD(model.parameters(), lr=0.1)


def said(act: Callable[[], object]) -> str:
    """The error or warning with its type; "nothing" without one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            act()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


@contextlib.contextmanager
def until_all_are_done(rank: int, name: str) -> Iterator[None]:
    """Nobody closes while the others still find out."""
    store = dist.distributed_c10d._get_default_store()
    yield
    store.set(f"{name}/{rank}", "")
    store.wait([f"{name}/{peer}" for peer in range(3)], timedelta(seconds=60))


def make(
    model: nn.Module, kind: Callable[..., torch.optim.Optimizer] = SGD, **options: Any
) -> None:
    Gossip(model, kind(model.parameters(), lr=0.1), timeout_s=20, **options).close()


def another_optimizer(odd: bool) -> None:
    model, other = Named("ab"), Named("ab")
    Gossip(model, sgd(other if odd else model), timeout_s=20)


def make_with(odd: bool, module: ModuleType, name: str, value: str) -> None:
    """The odd rank takes part with another version."""
    before = getattr(module, name)
    if odd:
        setattr(module, name, value)
    try:
        make(mlp())
    finally:
        setattr(module, name, before)


def hosts_in_turn(rank: int) -> None:
    before = os.environ["GROUP_RANK"]
    os.environ["GROUP_RANK"] = str(rank % 2)
    try:
        make(mlp())
    finally:
        os.environ["GROUP_RANK"] = before


def set_up(rank: int, size: int) -> Any:
    """By mistake: what its Gossip says; the last rank is the one that is different."""
    odd = rank == size - 1
    mesh = init_device_mesh("cpu", (size, 1), mesh_dim_names=("gossip", "inner"))
    cases: dict[str, Callable[[], object]] = {
        "another shape on a rank": lambda: make(Named("ab", (4,) if odd else (3,))),
        "another order on a rank": lambda: make(Named("ba" if odd else "ab")),
        "more parameters on a rank": lambda: make(Named("abc" if odd else "ab")),
        "another dtype on a rank": lambda: make(Named("ab").double() if odd else Named("ab")),
        "other arguments on a rank": lambda: make(mlp(), pattern="atc" if odd else "cwa"),
        "tls on some ranks": lambda: make(mlp(), tls=not odd),
        "another optimizer on a rank": lambda: make(mlp(), Adam if odd else SGD),
        "fused on some ranks": lambda: make(mlp(), partial(Adam, amsgrad=True) if odd else Adam),
        "another model's optimizer on a rank": lambda: another_optimizer(odd),
        "a topology that needs a power of two": lambda: make(mlp(), topology="hypercube"),
        "a schedule for four workers": lambda: make(
            mlp(), topology=gossamer.make_schedule("ring", [4])
        ),
        "a graph in two parts": lambda: make(
            mlp(),
            topology=gossamer.schedule_from_matrices([[[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]]]),
        ),
        "a topology that changes": lambda: make(mlp(), pattern="exact_diffusion"),
        "hosts in turn": lambda: hosts_in_turn(rank),
        "a mesh of two dimensions": lambda: make(mlp(), group=mesh),
        "another Gossamer on a rank": lambda: make_with(odd, _built, "VERSION", "0.2.0"),
        "wrapped in DDP as well": lambda: make(DistributedDataParallel(mlp())),
    }
    found = {name: said(act) for name, act in cases.items()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_with(odd, torch, "__version__", "2.12.1+cpu")
    heard = [f"{each.category.__name__}: {each.message}" for each in caught]
    return {**found, "another torch on a rank": "\n".join(heard) or "nothing"}


def nan_on_a_rank(rank: int) -> str:
    model = mlp()
    optimizer = sgd(model)
    with until_all_are_done(rank, "nan"), Gossip(model, optimizer, timeout_s=20):
        train(model, optimizer, range(2), rank)
        if rank == 1:
            model[2].bias.grad[1] = float("nan")
            found = said(optimizer.step)
            optimizer.zero_grad()
            optimizer.step()  # the others are not let down
            return found
        return said(lambda: train(model, optimizer, [2], rank))


def without_gradients(rank: int) -> str:
    model = mlp()
    optimizer = sgd(model)
    with until_all_are_done(rank, "gradients"), Gossip(model, optimizer, timeout_s=20):
        return said(optimizer.step)


def inside_averaged(rank: int) -> str:
    model = mlp()
    optimizer = sgd(model)
    gossip = Gossip(model, optimizer, timeout_s=20)
    with until_all_are_done(rank, "inside"), gossip, gossip.averaged():
        return said(optimizer.step)


def sparse_on_a_rank(rank: int) -> str:
    model = nn.Embedding(5, 3, sparse=rank == 1)
    optimizer = torch.optim.Adam(model.parameters())
    with until_all_are_done(rank, "sparse"), Gossip(model, optimizer, timeout_s=20):
        model(torch.tensor([1, 2])).sum().backward()
        found = said(optimizer.step)
        if rank == 1:
            optimizer.zero_grad()
            optimizer.step()
        return found


def no_gossip_on_a_rank(rank: int) -> str:
    with until_all_are_done(rank, "none"):
        if rank == 2:
            return "nothing"
        model = mlp()
        return said(lambda: Gossip(model, sgd(model), timeout_s=SHORT_S))


def steps(
    rank: int, name: str, end: Callable[[Gossip], None], timeout_s: float = 20, enough: int = 3
) -> str:
    """Ranks 0 and 1; rank 1 does something else after ``enough`` steps. Rank 0 can do one more."""
    pair = dist.new_group([0, 1])
    if rank == 2:
        return "nothing"
    model = mlp()
    optimizer = sgd(model)
    gossip = Gossip(model, optimizer, topology="complete", group=pair, timeout_s=timeout_s)
    train(model, optimizer, range(enough), rank)
    store = dist.distributed_c10d._get_default_store()
    found = "nothing"
    if rank == 1:
        end(gossip)
        store.wait([f"{name}/found"], timedelta(seconds=60))
    else:
        for more in range(3):
            found = said(lambda: train(model, optimizer, [enough + more], rank))  # noqa: B023
            if found != "nothing":
                break
        store.set(f"{name}/found", "")
    gossip.close()
    return found


def training(rank: int, size: int) -> Any:
    """By mistake: what the step says."""
    return {
        "nan on a rank": nan_on_a_rank(rank),
        "a first step without gradients": without_gradients(rank),
        "a step inside averaged on all ranks": inside_averaged(rank),
        "sparse gradients on a rank": sparse_on_a_rank(rank),
        "no Gossip on a rank": no_gossip_on_a_rank(rank),
        "a rank waits for something else": steps(rank, "waits", lambda _: None, SHORT_S),
        "a rank closes early": steps(rank, "closes", Gossip.close),
    }


def dead(rank: int, size: int) -> Any:
    """Comes last: rank 1 is killed after three steps."""
    return {
        "a rank is killed": steps(rank, "killed", lambda _: os.kill(os.getpid(), signal.SIGKILL))
    }


def dead_and_all_with_it(rank: int, size: int) -> Any:
    """As a watchdog does it that ends the process of whoever has lost a peer."""
    found = dead(rank, size)
    if "TransportError" in found["a rank is killed"]:
        os.abort()
    return found


MISTAKES = """
another shape on a rank
another order on a rank
more parameters on a rank
another dtype on a rank
other arguments on a rank
tls on some ranks
another optimizer on a rank
fused on some ranks
another model's optimizer on a rank
a topology that needs a power of two
a schedule for four workers
a graph in two parts
a topology that changes
hosts in turn
a mesh of two dimensions
another Gossamer on a rank
wrapped in DDP as well
another torch on a rank
nan on a rank
a first step without gradients
a step inside averaged on all ranks
sparse gradients on a rank
no Gossip on a rank
a rank waits for something else
a rank closes early
a rank is killed
""".strip().splitlines()
"""What the scenarios tell of, in their order."""

SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function for function in (set_up, training, dead, dead_and_all_with_it)
}
