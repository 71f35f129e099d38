"""What the workers of the tests of gossamer.trackers do."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.distributed as dist
from gossip_scenarios_agree import open_until_all_are_done
from gossip_support import batch, loss_of, mlp, train
from torch import nn
from torch.optim import SGD

import gossamer.trackers
from gossamer import Gossip

STEPS = 4


def place_of(name: str) -> Path:
    """A folder that the tests see, too."""
    return Path(os.environ["GOSSAMER_TEST_FOLDER"]) / name


def take_steps(
    gossip: Gossip, model: nn.Module, optimizer: SGD, steps: range, rank: int, **more: Any
) -> None:
    for step in steps:
        optimizer.zero_grad()
        loss = loss_of(model, batch(step, rank))
        loss.backward()
        gossip.log(loss=loss, rank_and_step=10 * rank + step, samples=4, **more)
        optimizer.step()


def tracked(name: str, rank: int, track: Callable[[Gossip, Path], Any]) -> Any:
    """A run with all kinds of lines, in files and in a tracker."""
    place, model = place_of(name), mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    with open_until_all_are_done(model, optimizer, metrics=place / "lines") as gossip:
        found = track(gossip, place)
        take_steps(gossip, model, optimizer, range(2), rank)
        with gossip.averaged():
            gossip.log(val_loss=2.5, accuracy=float("nan"), is_best=True)
        take_steps(gossip, model, optimizer, range(2, STEPS), rank, note="warm")
        gossip.disagreement()
    return found


def tensorboard(rank: int, size: int) -> Any:
    def track(gossip: Gossip, place: Path) -> None:
        gossamer.trackers.tensorboard(gossip, place / "board")

    return tracked("tensorboard", rank, track)


def wandb(rank: int, size: int) -> Any:
    def track(gossip: Gossip, place: Path) -> str:
        options = {"mode": "offline", "dir": str(place), "project": "p", "id": "a"}
        place.mkdir(parents=True, exist_ok=True)
        return str(gossamer.trackers.wandb(gossip, "group", config={"own": 1}, **options).id)

    return tracked("wandb", rank, track)


def mlflow(rank: int, size: int) -> Any:
    def track(gossip: Gossip, place: Path) -> str:
        uri = (place / "store").as_uri()
        return gossamer.trackers.mlflow(gossip, "a", experiment="new", tracking_uri=uri)

    return tracked("mlflow", rank, track)


def goes_back(rank: int, size: int) -> Any:
    """Without files of metrics: a run that is saved, goes on, and is loaded."""
    place, model = place_of("back"), mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    seen: list[Any] = []
    with open_until_all_are_done(model, optimizer) as gossip:
        take = gossamer.trackers.Sink("a list", lambda *line: seen.append(line), seen.append)
        gossamer.trackers.follow(gossip, take)
        with contextlib.suppress(ModuleNotFoundError):
            gossamer.trackers.tensorboard(gossip, place / "board")
        take_steps(gossip, model, optimizer, range(2), rank)
        gossip.save(place / "checkpoint")
        take_steps(gossip, model, optimizer, range(2, 5), rank)
        gossip.load(place / "checkpoint")
        take_steps(gossip, model, optimizer, range(10, 11), rank)
    return seen


def one_of_them(rank: int, size: int) -> Any:
    """A tracker on rank 0 alone that fails in its second step; both train on."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    seen: list[int] = []

    def write(step: int, values: gossamer.trackers.Values) -> None:
        seen.append(step)
        if step == 2:
            raise OSError("the server is gone")

    with Gossip(model, optimizer) as gossip:
        if rank == 0:
            gossamer.trackers.follow(gossip, gossamer.trackers.Sink("the server", write))
        train(model, optimizer, range(STEPS), rank)
        dist.barrier()
        return {"seen": seen, "steps": gossip.stats()["steps"]}


def late(rank: int, size: int) -> Any:
    """One that begins after some steps: its first line, and what the rank had waited around it."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    seen: list[Any] = []
    with Gossip(model, optimizer) as gossip:
        train(model, optimizer, range(STEPS), rank)
        before = gossip.stats()
        sink = gossamer.trackers.Sink("a list", lambda *line: seen.append(line))
        gossamer.trackers.follow(gossip, sink)
        train(model, optimizer, range(1), rank)
        after = gossip.stats()
        dist.barrier()
    names = ("hidden_s", "exposed_s")
    return {"line": seen[0], **{name: [before[name], after[name]] for name in names}}


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    f"trackers_{function.__name__}": function
    for function in (tensorboard, wandb, mlflow, goes_back, one_of_them, late)
}
