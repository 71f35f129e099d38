"""What the workers of the tests of uneven() do."""

import os
import signal
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from gossip_scenarios_basic import LR, gossiping, numbers
from gossip_scenarios_ends import attempt_to
from gossip_support import batch, loss_of, mlp, train
from torch import nn
from torch.optim import SGD, Adam, AdamW, RMSprop

from gossamer import Gossip

BATCHES = ((7, 4, 9, 0, 9), (3, 8, 1, 5, 2), (4, 4, 4, 4, 4))
OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "sgd": lambda m: SGD(m.parameters(), lr=LR),
    "momentum": lambda m: SGD(m.parameters(), lr=LR, momentum=0.9),
    "adamw": lambda m: AdamW(m.parameters(), lr=0.01),
    "rmsprop": lambda m: RMSprop(m.parameters(), lr=0.01),
}
EPOCHS_OF = {"plain": (0, 1), "accumulated": (0, 1), "twice": (0, 1), "clipped": (0,)}
TOPOLOGIES = ("ring", "one_peer_exponential", "alternating_exponential_ring", "star", "random")


def batches(epoch: int, rank: int) -> int:
    """How many this worker has."""
    return BATCHES[epoch][rank]


def epochs(rank: int, size: int) -> Any:
    """By pattern and optimizer: steps after each epoch, and the ends."""
    found = {}
    for pattern in ("cwa", "atc", "allreduce"):
        for name, make in OPTIMIZERS.items():
            model = mlp(seed=rank)
            optimizer = make(model)
            steps, apart = [], []
            with gossiping(model, optimizer, pattern=pattern, bucket_bytes=64) as gossip:
                for epoch in range(len(BATCHES)):
                    with gossip.uneven():
                        train(model, optimizer, range(batches(epoch, rank)), rank)
                    steps.append(gossip.stats()["steps"])
                    apart.append(gossip.disagreement())
                with gossip.averaged():
                    mean = numbers(model)
                found[f"{pattern} {name}"] = {
                    "steps": steps,
                    "apart": apart,
                    "mean": mean,
                    "local": numbers(model),
                }
    return found


def topologies(rank: int, size: int) -> Any:
    """By name: the steps all have done, which would hang if a round were missed."""
    found = {}
    for topology in TOPOLOGIES:
        model = mlp()
        optimizer = SGD(model.parameters(), lr=LR)
        with gossiping(model, optimizer, topology=topology) as gossip:
            for epoch in (0, 1):
                with gossip.uneven():
                    train(model, optimizer, range(batches(epoch, rank)), rank)
            found[topology] = gossip.stats()["steps"]
    return found


def moved(rank: int, size: int) -> Any:
    """The start of all, the sum of this worker's updates, and the end. SGD, "cwa"."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=LR)
    with gossiping(model, optimizer, topology="ring", bucket_bytes=64) as gossip:
        start = numbers(model)
        updates = torch.zeros(len(start), dtype=torch.float64)
        with gossip.uneven():
            for step in range(batches(0, rank)):
                optimizer.zero_grad()
                loss_of(model, batch(step, rank)).backward()
                updates -= LR * torch.cat([p.grad.flatten() for p in model.parameters()]).double()
                optimizer.step()
            left_with = numbers(model)
        return {
            "start": start,
            "updates": updates.tolist(),
            "left_with": left_with,
            "end": numbers(model),
        }


def as_one(rank: int, size: int) -> Any:
    """By case: the end under "allreduce", with gradient accumulation, clipping and a schedule."""
    found = {}
    for name, make in OPTIMIZERS.items():
        for case in EPOCHS_OF:
            model = mlp()
            optimizer = make(model)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
            with gossiping(model, optimizer, pattern="allreduce", bucket_bytes=64) as gossip:
                for epoch in EPOCHS_OF[case]:
                    with gossip.uneven():
                        for step in range(batches(epoch, rank) or case == "twice"):
                            optimizer.zero_grad()
                            if case == "accumulated":
                                with gossip.no_sync():
                                    loss_of(model, batch(step + 50, rank)).backward()
                            if case == "twice":  # averaged twice, as DDP does without no_sync()
                                loss_of(model, batch(step + 50, rank)).backward()
                            loss_of(model, batch(step, rank)).backward()
                            if case == "clipped":
                                nn.utils.clip_grad_norm_(model.parameters(), 0.05)
                            optimizer.step()
                            if case == "clipped":
                                scheduler.step()
                state = [
                    [value.double().flatten().tolist() for value in entry.values()]
                    for entry in optimizer.state.values()
                ]
                steps = gossip.stats()["steps"]
                found[f"{name} {case}"] = {"end": numbers(model), "state": state, "steps": steps}
    return found


def accumulated(rank: int, size: int) -> Any:
    """Gossip with two backwards per step and a last one that is left over."""
    model = mlp()
    optimizer = Adam(model.parameters(), lr=0.01)
    with gossiping(model, optimizer, topology="ring") as gossip:
        for epoch in (0, 1):
            with gossip.uneven():
                for step in range(batches(epoch, rank)):
                    loss_of(model, batch(step, rank)).backward()
                    if step % 2:
                        optimizer.step()
                        optimizer.zero_grad()
        return gossip.stats()["steps"]


def misused(rank: int, size: int) -> Any:
    """What is refused inside."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=LR)
    found = {}
    with gossiping(model, optimizer, topology="ring") as gossip:
        with gossip.uneven():
            train(model, optimizer, range(1 + rank), rank)
            for name, act in {
                "averaged": lambda: gossip.averaged().__enter__(),
                "disagreement": gossip.disagreement,
                "save": lambda: gossip.save("nowhere"),
                "load": lambda: gossip.load("nowhere"),
                "uneven": lambda: gossip.uneven().__enter__(),
            }.items():
                found[name] = attempt_to(act)
        found["apart"] = gossip.disagreement()  # and is none afterwards
    return found


def thrown(rank: int, size: int) -> Any:
    """The last rank leaves by an exception after two steps and closes."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=LR)
    gossip = Gossip(model, optimizer, topology="ring", timeout_s=30.0)

    def epoch() -> None:
        with gossip.uneven():
            train(model, optimizer, range(2 if rank else 4), rank)
            if rank == size - 1:
                raise ZeroDivisionError("of the user's")

    found = attempt_to(epoch)
    found["steps"] = gossip.stats()["steps"]
    gossip.close()
    dist.barrier()
    return found


def killed_in_epoch(rank: int, size: int) -> Any:
    """The last rank dies while the others have left or train."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=LR)
    gossip = Gossip(model, optimizer, topology="complete", timeout_s=30.0)

    def epoch() -> None:
        with gossip.uneven():
            train(model, optimizer, range(2 + 50 * rank), rank)
            if rank == size - 1:
                os.kill(os.getpid(), signal.SIGKILL)

    return attempt_to(epoch)


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    "uneven_epochs": epochs,
    "uneven_topologies": topologies,
    "uneven_moved": moved,
    "uneven_as_one": as_one,
    "uneven_accumulated": accumulated,
    "uneven_misused": misused,
    "uneven_thrown": thrown,
    "uneven_killed": killed_in_epoch,
}
