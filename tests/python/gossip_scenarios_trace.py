"""What the workers of the Gossip tests do: runs that leave a trace."""

import os
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from gossip_scenarios_basic import gossiping
from gossip_scenarios_ends import attempt
from gossip_support import batch, difference, mlp, train
from torch import nn
from torch.optim import SGD, RMSprop

from gossamer import Gossip

STEPS, KEPT = 8, 3
FORWARD_S, BACKWARD_S, UPDATE_S, PAUSE_S = 0.03, 0.02, 0.01, 0.05
RING = {"topology": "ring", "bucket_bytes": 256}
HIDDEN = 70

CASES: dict[str, dict[str, Any]] = {
    "cwa": {},
    "atc": {"pattern": "atc"},
    "backward": {"update": "backward"},
    "allreduce": {"pattern": "allreduce"},
    "c10d": {"transport": "c10d"},
    "int8": {"codec": "int8"},
    "skip": {"late": "skip"},
}


def folder() -> Path:
    return Path(os.environ["GOSSAMER_TEST_FOLDER"])


class Slow(nn.Module):
    """Sleeps in the forward, and in the backward once the last layer has its gradients."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(5, 7), nn.Linear(7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(FORWARD_S)
        hidden = self.first(x).tanh()
        if hidden.requires_grad:
            hidden.register_hook(lambda _: time.sleep(BACKWARD_S))
        return self.last(hidden)


class Adapted(nn.Module):
    """A frozen layer with adapters of low rank beside it, as LoRA has them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.base = nn.Linear(5, 48).requires_grad_(False)
        self.down = nn.Linear(5, 16, bias=False)
        self.up = nn.Linear(16, 48, bias=False)
        self.head = nn.Linear(48, 3).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head((self.base(x) + self.up(self.down(x))).tanh())


class SlowSGD(SGD):
    """Another class than SGD, so it takes its own step."""

    def step(self, closure: Any = None) -> Any:
        time.sleep(UPDATE_S)
        return super().step(closure)


def run(rank: int, model: nn.Module, optimizer: Any, steps: Iterable[int]) -> None:
    for step in steps:
        optimizer.zero_grad()
        model(batch(step, rank)).square().mean().backward()
        optimizer.step()


def traced(rank: int, size: int) -> Any:
    for name, options in CASES.items():
        model = mlp(hidden=HIDDEN)
        optimizer = SGD(model.parameters(), lr=0.1)
        where = {"trace": folder() / name, "trace_steps": KEPT}
        with gossiping(model, optimizer, **RING, **where, **options):
            train(model, optimizer, range(STEPS), rank)


def adapters(rank: int, size: int) -> Any:
    """Whether the frozen bits are what they were; the optimizer has all parameters."""
    model = Adapted()
    frozen = {n: p.detach().clone() for n, p in model.named_parameters() if not p.requires_grad}
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    with gossiping(model, optimizer, **RING, trace=folder() / "adapters") as gossip:
        run(rank, model, optimizer, range(3))
        with gossip.averaged():
            during = {n: p.detach().clone() for n, p in model.named_parameters()}
    now = dict(model.named_parameters())
    return all(torch.equal(v, now[n]) and torch.equal(v, during[n]) for n, v in frozen.items())


def slow(rank: int, size: int) -> Any:
    """With an own step, with one that is fused, and with one in the backward."""
    for name, kind, options in (
        ("own", SlowSGD, {}),
        ("fused", SGD, {}),
        ("early", SGD, {"update": "backward"}),
        ("mean", SGD, {"pattern": "allreduce"}),
    ):
        model = Slow()
        optimizer = kind(model.parameters(), lr=0.1)
        with gossiping(model, optimizer, **RING, trace=folder() / name, **options):
            run(rank, model, optimizer, range(3))


def accumulated(rank: int, size: int) -> Any:
    """Two passes in each step."""
    for name, options in (("both", {}), ("both_mean", {"pattern": "allreduce"})):
        model = Slow()
        optimizer = RMSprop(model.parameters(), lr=0.1)
        with gossiping(model, optimizer, **RING, trace=folder() / name, **options) as gossip:
            for step in range(2):
                optimizer.zero_grad()
                with gossip.no_sync():
                    model(batch(step, rank)).square().mean().backward()
                model(batch(step + 10, rank)).square().mean().backward()
                optimizer.step()


def paused(rank: int, size: int) -> Any:
    """Sleeps where nobody trains: in averaged() before step 2, before save() ends in step 3; goes
    back from step 6 to 3, on to 5, and then on with other parameters."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    with gossiping(model, optimizer, **RING, trace=folder() / "paused") as gossip:
        train(model, optimizer, range(2), rank)
        with gossip.averaged():
            time.sleep(PAUSE_S)
        train(model, optimizer, range(2, 3), rank)
        gossip.save(folder() / "saved")
        train(model, optimizer, range(3, 6), rank)
        gossip.load(folder() / "saved")
        train(model, optimizer, range(3, 5), rank)
        model.load_state_dict(model.state_dict())
        train(model, optimizer, range(5, 6), rank)
        return gossip.stats()["steps"]


def in_groups(rank: int, size: int) -> Any:
    """The last rank is a group of its own; both groups are given the same folder, in which a run of
    more workers has left traces."""
    place = folder() / "groups"
    groups = [dist.new_group([*range(size - 1)]), dist.new_group([size - 1])]
    group = groups[int(rank == size - 1)]
    name = "group0" if rank < size - 1 else f"group{size - 1}"
    (place / name).mkdir(parents=True, exist_ok=True)
    (place / name / "trace.rank7.json.gz").touch()
    dist.barrier()
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    gossip = Gossip(model, optimizer, group=group, topology="ring", trace=place, timeout_s=60)
    train(model, optimizer, range(2), rank)
    gossip.close()
    dist.barrier()
    return sorted(str(path.relative_to(place)) for path in place.rglob("*.*"))


def trace_on_one(rank: int, size: int) -> Any:
    """Only rank 0 wants a trace; then only the last rank cannot have one."""
    (folder() / "file").touch()
    model = mlp()
    found: list[Any] = []
    for trace in (folder() / "odd" if rank == 0 else None, folder() / "file" / str(rank)):
        where = trace if len(found) == 0 or rank == size - 1 else folder() / "odd"
        optimizer = SGD(model.parameters(), lr=0.1)
        found.append(attempt(lambda: Gossip(model, optimizer, trace=where)))  # noqa: B023
    return found


def folder_lost(rank: int, size: int) -> Any:
    """The folder is gone when the trace is to be written."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    place = folder() / f"lost{rank}"
    gossip = Gossip(model, optimizer, topology="ring", trace=place, timeout_s=60)
    train(model, optimizer, range(2), rank)
    place.rmdir()
    dist.barrier()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gossip.close()
    alone = mlp()
    alone.load_state_dict(model.state_dict())
    train(model, optimizer, range(2, 3), rank)  # steps alone now
    train(alone, SGD(alone.parameters(), lr=0.1), range(2, 3), rank)
    warned = [str(each.message) for each in caught]
    return {"warned": warned, "difference": difference(model, alone)}


def trace_left_open(rank: int, size: int) -> Any:
    """The last scenario of a run: nobody closes, one of them fails."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    where = folder() / "left"
    globals()["left"] = Gossip(model, optimizer, topology="ring", trace=where, timeout_s=60)
    train(model, optimizer, range(2), rank)
    dist.barrier()
    if rank == 0:
        raise RuntimeError("out of memory, say")


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function
    for function in (
        traced,
        adapters,
        slow,
        accumulated,
        paused,
        in_groups,
        trace_on_one,
        folder_lost,
        trace_left_open,
    )
}
