"""What the workers of the Gossip tests do: gossamer.probe()."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import device_backend
import torch
from gossip_scenarios_basic import gossiping
from gossip_scenarios_ends import attempt
from gossip_support import batch, flat, loss_of, mlp
from torch.nn.parallel import DistributedDataParallel
from torch.optim import AdamW

import gossamer


def trained() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """With state, gradients and random numbers that are worth keeping."""
    model = mlp()
    optimizer = AdamW(model.parameters(), lr=0.1)
    loss_of(model, batch(0)).backward()
    optimizer.step()
    return model, optimizer


def state_of(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    state = optimizer.state_dict()["state"]
    held = [value.clone() for entry in state.values() for value in entry.values()]
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    return [flat(model), torch.random.get_rng_state(), *gradients, *held]


def probed(rank: int, size: int) -> Any:
    """By kind of model: what was found, how often the step was called, and what it has left."""
    found = {}
    for name in ("plain", "ddp"):
        model, optimizer = trained()
        trains = DistributedDataParallel(model) if name == "ddp" else model
        calls: list[float] = []

        def step() -> None:
            calls.append(float(torch.rand(())))  # noqa: B023
            optimizer.zero_grad()  # noqa: B023
            loss_of(trains, batch(len(calls), rank)).backward()  # noqa: B023
            optimizer.step()  # noqa: B023

        before = state_of(model, optimizer)
        out = Path(os.environ["GOSSAMER_TEST_FOLDER"]) / name
        what = gossamer.probe(step, trains, optimizer, seconds=0.05, timeout_s=60, out=out)
        found[name] = {
            "cluster": what.cluster,
            "workload": what.workload,
            "calls": len(calls),
            "same": [
                torch.equal(one, other)
                for one, other in zip(before, state_of(model, optimizer), strict=True)
            ],
        }
    return found


def probed_devices(rank: int, size: int) -> str:
    """cluster.toml of a host with devices and one without."""
    model = mlp()
    if rank < 2:
        device_backend.install()
        model.to(device_backend.NAME)
    optimizer = AdamW(model.parameters(), lr=0.1, foreach=False)
    place = next(model.parameters()).device

    def step() -> None:
        optimizer.zero_grad()
        loss_of(model, batch(1).to(place)).backward()
        optimizer.step()

    return gossamer.probe(step, model, optimizer, seconds=0.05, timeout_s=60).cluster


def misprobed(rank: int, size: int) -> Any:
    """How it fails."""
    model, optimizer = trained()
    blocked = Path(os.environ["GOSSAMER_TEST_FOLDER"]) / "file" / "in"

    def step() -> None:
        optimizer.zero_grad()
        loss_of(model, batch(1)).backward()
        optimizer.step()

    def probe(what: Callable[[], object], **options: Any) -> Any:
        return attempt(lambda: gossamer.probe(what, model, optimizer, seconds=0.01, **options))

    said = {
        "nothing": probe(lambda: None),
        "no step": probe(lambda: loss_of(model, batch(1)).backward()),
        "blocked": probe(step, out=blocked),
    }
    with gossiping(model, optimizer):
        said["gossiping"] = probe(step)
    return said


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function for function in (probed, probed_devices, misprobed)
}
