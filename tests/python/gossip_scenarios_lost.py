"""What the workers of the tests of lost="go_on" do. One of them ends, or stands still."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from gossip_scenarios_basic import TIMEOUT_S, numbers
from gossip_scenarios_ends import attempt, attempt_to
from gossip_scenarios_save import everything, folder
from gossip_support import batch, loss_of, mlp, names_in, newest, train
from torch import nn
from torch.optim import SGD, AdamW, RMSprop

from gossamer import Gossip, _core
from gossamer.step.run import Run

STEPS = 12
LAST = 5
"""The step that the lost worker does not end."""
LONG_S = 120.0
GOES_ON: dict[str, Any] = {"lost": "go_on", "timeout_s": TIMEOUT_S, "suspect_s": LONG_S}
"""On a busy machine a process may say nothing for seconds; one that ends is noticed at once."""
MODEL_BYTES = 4 * sum(p.numel() for p in mlp().parameters())


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dies_in_backward(model: nn.Module) -> None:
    """In the middle of a step: what it sends in it has been announced and has not come."""
    for parameter in model.parameters():
        parameter.register_hook(die)
        return


@contextlib.contextmanager
def dying_at(owner: Any, function: str, dies: bool) -> Iterator[None]:
    """Where ``dies``, the process ends when the function is called."""
    with mock.patch.object(owner, function, side_effect=die) if dies else contextlib.nullcontext():
        yield


def said_of_all(gossip: Gossip, model: nn.Module, rank: int) -> dict[str, Any]:
    """What the collective methods give when a worker is lost."""
    own = numbers(model)
    with gossip.averaged():
        mean = numbers(model)
    return {
        "own": own,
        "mean": mean,
        "is back": numbers(model) == own,
        "rank mean": float(gossip.mean(torch.tensor([float(rank)]))),
        "disagreement": gossip.disagreement(),
        "said": sorted(gossip.gather(10 * rank).items()),
        "steps": gossip.stats()["steps"],
        "lost": gossip.stats()["lost"],
    }


def trained_without(
    victim: int,
    rank: int,
    make: Callable[[nn.Module], torch.optim.Optimizer],
    name: str = "",
    loop: Callable[..., None] = train,
    **options: Any,
) -> Any:
    """The victim is killed inside a step; the others do all theirs, and save under the name."""
    model = mlp()
    optimizer = make(model)
    gossip = Gossip(model, optimizer, **GOES_ON, **options)
    loop(model, optimizer, range(LAST - 1), rank)
    if rank == victim:
        dies_in_backward(model)
    loop(model, optimizer, range(LAST - 1, STEPS), rank)
    found = said_of_all(gossip, model, rank) | {"is fused": gossip.is_fused}
    if name:
        gossip.save(folder(name))
        found["files"] = names_in(newest(folder(name)))
        found["saved"] = everything(model, optimizer)
    gossip.close()
    return found


def accumulate(
    model: nn.Module, optimizer: torch.optim.Optimizer, steps: Iterable[int], rank: int
) -> None:
    """Two backward passes in a step."""
    for step in steps:
        optimizer.zero_grad()
        for part in (step, step + 100):
            loss_of(model, batch(part, rank)).backward()
        optimizer.step()


def momentum(model: nn.Module) -> torch.optim.Optimizer:
    return SGD(model.parameters(), lr=0.05, momentum=0.9)


def adamw(model: nn.Module) -> torch.optim.Optimizer:
    return AdamW(model.parameters(), lr=0.01)


def rmsprop(model: nn.Module) -> torch.optim.Optimizer:
    return RMSprop(model.parameters(), lr=0.01)


def lost_on_a_ring(rank: int, size: int) -> Any:
    return trained_without(2, rank, momentum, "lost", topology="ring", metrics=folder("metrics"))


def ring_closed_again(rank: int, size: int) -> Any:
    """By peer, whether anything was sent to it in some steps: before the ring is formed anew, and
    after."""
    model = mlp()
    optimizer = momentum(model)
    gossip = Gossip(model, optimizer, topology="ring", metrics=folder("anew"), **GOES_ON)

    def used_edges(steps: range) -> list[str]:
        before = {peer: edge["sent"] for peer, edge in gossip.stats()["edges"].items()}
        train(model, optimizer, steps, rank)
        after = {peer: edge["sent"] for peer, edge in gossip.stats()["edges"].items()}
        return [str(peer) for peer in after if after[peer] > before.get(peer, 0) + MODEL_BYTES]

    train(model, optimizer, range(2), rank)
    if rank == 1:
        die()
    train(model, optimizer, range(2, 10), rank)
    found = [used_edges(range(10, 30))]
    train(model, optimizer, range(30, 40), rank)
    found.append(used_edges(range(40, 60)))
    gossip.close()
    return found


def loads_what_is_left(rank: int, size: int) -> Any:
    """Everything after the checkpoint of `lost_on_a_ring`, and some steps more."""
    model = mlp(seed=7)
    optimizer = momentum(model)
    with Gossip(model, optimizer, topology="ring", timeout_s=TIMEOUT_S) as gossip:
        gossip.load(folder("lost"))
        found = {"loaded": everything(model, optimizer), "steps": gossip.stats()["steps"]}
        train(model, optimizer, range(3), rank)
        found["apart"] = gossip.disagreement()
    return found


def use_store_of_rank_0(rank: int, size: int) -> None:
    """In place of the group over a file: as launchers do, rank 0 serves the store."""
    place: list[int] = [0]
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, size, is_master=True, wait_for_workers=False)
        place = [store.port]
    dist.broadcast_object_list(place, src=0)
    if rank != 0:
        store = dist.TCPStore("127.0.0.1", place[0], size, is_master=False)
    dist.destroy_process_group()
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)


def store_holder_lost(rank: int, size: int) -> Any:
    use_store_of_rank_0(rank, size)
    return trained_without(0, rank, adamw, "store-holder", topology="ring")


def lost_beside_its_host(rank: int, size: int) -> Any:
    """One of two workers of a host; all wait for late ones."""
    return trained_without(3, rank, adamw, topology="alternating_exponential_ring")


def lost_while_skipping(rank: int, size: int) -> Any:
    options: dict[str, Any] = {"topology": "alternating_exponential_ring", "late": "skip"}
    return trained_without(3, rank, adamw, "skipping", **options)


def lost_among_own_steps(rank: int, size: int) -> Any:
    return trained_without(1, rank, rmsprop, topology="ring", pattern="gradient_gossip")


def lost_among_codes(rank: int, size: int) -> Any:
    return trained_without(1, rank, momentum, topology="ring", codec="int8")


def replica_lost(rank: int, size: int) -> Any:
    """Others have sent some of the buckets to it, and have some of it."""
    return trained_without(2, rank, adamw, "replicas", pattern="allreduce", bucket_bytes=64)


def replica_lost_among_passes(rank: int, size: int) -> Any:
    return trained_without(0, rank, rmsprop, loop=accumulate, pattern="allreduce")


class Bowl(nn.Module):
    """A quadratic function with a minimum and a curvature that are the rank's own."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.full((5,), float(rank), dtype=torch.float64))
        self.curvature = 1 / (1 + rank)
        self.center = torch.arange(5, dtype=torch.float64) * (1 + rank)

    def forward(self) -> torch.Tensor:
        return self.curvature / 2 * (self.x - self.center).square().sum()


class OwnSGD(SGD):
    """None that the engine knows."""


def sums_begin_anew(victim: int, rank: int, make: type[SGD], **options: Any) -> Any:
    """One is killed; the others find their own optimum."""
    model = Bowl(rank)
    optimizer = make(model.parameters(), lr=0.2)
    gossip = Gossip(model, optimizer, **GOES_ON, **options)
    for step in range(1500):
        if rank == victim and step == 20:
            dies_in_backward(model)
        optimizer.zero_grad()
        model().backward()
        optimizer.step()
    gossip.gather(None)  # nobody ends before
    found = {"x": model.x.tolist(), "lost": gossip.stats()["lost"], "is fused": gossip.is_fused}
    gossip.close()
    return found


def tracker_lost(rank: int, size: int) -> Any:
    return sums_begin_anew(
        1, rank, SGD, pattern="gradient_tracking", topology="one_peer_exponential"
    )


def correction_lost(rank: int, size: int) -> Any:
    return sums_begin_anew(2, rank, OwnSGD, pattern="extra", topology="ring")


def awaited(path: Path) -> bool:
    """Whether it comes."""
    deadline = time.monotonic() + LONG_S
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return path.exists()


def stood_still(rank: int, size: int) -> Any:
    """Rank 2 is stopped inside its steps, and continued when the others have ended theirs."""
    processes: list[int] = [0] * size
    dist.all_gather_object(processes, os.getpid())
    model = mlp()
    optimizer = momentum(model)
    gossip = Gossip(model, optimizer, topology="ring", timeout_s=TIMEOUT_S, lost="go_on")
    train(model, optimizer, range(LAST), rank)
    ended = folder("stopped-has-ended")
    if rank == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
        found = attempt_to(lambda: train(model, optimizer, range(LAST, 10 * STEPS), rank))
        ended.touch()
    else:
        train(model, optimizer, range(LAST, STEPS), rank)
        found = said_of_all(gossip, model, rank)
        if rank == 0:
            os.kill(processes[2], signal.SIGCONT)
        found["other has ended"] = awaited(ended)
    gossip.close()
    return found


def stood_still_at_the_start(rank: int, size: int) -> Any:
    """Rank 0 is stopped before it has talked to anybody, and continued when the others have closed:
    so nobody listens any more who could say that they went on without it."""
    processes: list[int] = [0] * size
    dist.all_gather_object(processes, os.getpid())
    ended = folder("stopped-at-the-start-has-ended")

    def make_and_train() -> Any:
        model = mlp()
        optimizer = momentum(model)
        gossip = Gossip(model, optimizer, topology="ring", lost="go_on")
        train(model, optimizer, range(STEPS), rank)
        steps = gossip.stats()["steps"]
        gossip.close()
        return steps

    def stop_and_start(*args: Any) -> Any:
        os.kill(os.getpid(), signal.SIGSTOP)
        return start(*args)

    if rank == 0:
        start = Run._start
        with mock.patch.object(Run, "_start", stop_and_start):
            found = attempt_to(make_and_train)
        ended.touch()
        return found
    steps = make_and_train()
    (ended.parent / f"closed-{rank}").touch()
    if rank == 1:
        for other in range(1, size):
            awaited(ended.parent / f"closed-{other}")
        os.kill(processes[0], signal.SIGCONT)
    return {"steps": steps, "other has ended": awaited(ended)}


def lost_in_calls(rank: int, size: int) -> Any:
    """One worker after the other is lost, each inside of a call of all."""
    model = mlp(hidden=50_000)
    optimizer = SGD(model.parameters(), lr=0.05)
    gossip = Gossip(model, optimizer, topology="ring", bucket_bytes=1 << 17, **GOES_ON)
    train(model, optimizer, range(3), rank)
    found: dict[str, Any] = {"own": numbers(model)[:20]}
    with dying_at(_core.Engine, "load_average", rank == 5), gossip.averaged():
        found["begun"] = numbers(model)[:20]
    if rank == 4:
        threading.Timer(0.002, die).start()  # in the call, or where it was quick, right after it
        with gossip.averaged():
            time.sleep(LONG_S)
    with gossip.averaged():
        found["half done"] = [float(each.detach().double().sum()) for each in model.parameters()]
    place = folder("lost-in-calls")
    for victim, function in ((3, "write_worker_file"), (0, "commit_checkpoint")):
        train(model, optimizer, range(3, 5), rank)
        with dying_at(_core, function, rank == victim):
            gossip.save(place)
        found[function] = {"files": names_in(newest(place)), "folder": names_in(place)}
    found["lost"] = sorted(gossip.stats()["lost"])
    found["steps"] = gossip.stats()["steps"]
    gossip.close()
    return found


def needs_all(rank: int, size: int) -> Any:
    """By case: why lost="go_on" is not possible."""

    def gossip(**options: Any) -> Gossip:
        model = mlp()
        options = {"topology": "ring", "timeout_s": TIMEOUT_S, "lost": "go_on", **options}
        return Gossip(model, SGD(model.parameters(), lr=0.1), **options)

    def uneven() -> None:
        with gossip() as made, made.uneven():
            pass

    return {
        "directed": attempt(lambda: gossip(topology="one_peer_exponential", late="skip")),
        "c10d": attempt(lambda: gossip(transport="c10d")),
        "uneven": attempt_to(uneven),
        "soon": attempt(lambda: gossip(suspect_s=2)),
        "not at all": attempt(lambda: gossip(suspect_s=60, lost="error")),
    }


def lost_by_default(rank: int, size: int) -> Any:
    """The last rank is killed, and nobody has asked to go on."""
    model = mlp()
    optimizer = momentum(model)
    gossip = Gossip(model, optimizer, topology="ring", timeout_s=TIMEOUT_S)
    train(model, optimizer, range(3), rank)
    if rank == size - 1:
        die()
    found = attempt_to(lambda: train(model, optimizer, range(3, 100_000), rank))
    gossip.close()
    return found


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function
    for function in (
        lost_on_a_ring,
        ring_closed_again,
        loads_what_is_left,
        store_holder_lost,
        lost_beside_its_host,
        lost_while_skipping,
        lost_among_own_steps,
        lost_among_codes,
        replica_lost,
        replica_lost_among_passes,
        tracker_lost,
        correction_lost,
        stood_still,
        stood_still_at_the_start,
        lost_in_calls,
        needs_all,
        lost_by_default,
    )
}
