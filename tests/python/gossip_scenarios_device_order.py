"""What the workers of test_gossip_device_order.py do: a wait is left out, a call fails."""

import math
import os
from collections.abc import Callable
from typing import Any

import device_backend
import torch
import torch.distributed as dist
from gossip_scenarios_basic import gossiping
from gossip_scenarios_devices import on_device, sgd, steps
from gossip_scenarios_ends import attempt_to
from gossip_support import batch, difference, loss_of, mlp
from torch import nn

from gossamer import Gossip

FAULTS_EVERY = int(os.environ.get("GOSSAMER_FAULTS_EVERY", "23"))  # 1: at each call, for minutes

# By what is left out: (waiter, in which stream that is under way). The engine's streams are made
# first, `in` and then `out`; the third one is that in which gradients leave.
USER, IN, OUT, GRADIENTS, HOST = 0, 1, 2, 3, -1
LEFT_OUT = {
    "out waits for the copy to s": (OUT, USER, {}),
    "sends once it is out": (HOST, OUT, {}),
    "the user's stream waits for in": (USER, IN, {}),
    "gradients are written": (GRADIENTS, USER, {"pattern": "allreduce"}),
    "sends once gradients are out": (HOST, GRADIENTS, {"pattern": "allreduce"}),
}


def device_rules(rank: int, size: int) -> Any:
    """By rule of order: how far the run is from that in CPU memory where it is left out."""
    found = {}
    for name, (waiter, recorded, options) in LEFT_OUT.items():
        here = accumulated(mlp().double(), rank, **options)
        apart = []
        for number in range(1, 7):
            model = on_device(mlp().double(), number)
            device_backend.leave_out(waiter, recorded)
            apart.append(difference(accumulated(model, rank, **options), here))
        found[name] = max(apart, key=lambda x: (math.isnan(x), x))
    return found


def accumulated(model: nn.Module, rank: int, **options: Any) -> nn.Module:
    """Trained with two backwards per step, the second of which adds to the gradients."""
    optimizer = sgd(model.parameters())
    place = next(model.parameters()).device
    checks = {"check_gradients": False, "check_payloads": False}
    with gossiping(model, optimizer, topology="ring", bucket_bytes=128, **checks, **options) as g:
        for k in range(4):
            optimizer.zero_grad()
            with g.no_sync():
                loss_of(model, batch(k, rank).double().to(place)).backward()
            loss_of(model, batch(k + 100, rank).double().to(place)).backward()
            optimizer.step()
    return model.to("cpu")


def device_faults(rank: int, size: int) -> Any:
    """How training ends where one call of rank 0's device fails, and the call after others."""
    found = []
    for pattern in ("cwa", "allreduce"):
        for calls in range(1, 10_000, FAULTS_EVERY):
            ended = attempt_to(lambda: _train_to_a_fault(rank, calls, pattern))  # noqa: B023
            found.append({**ended, "calls": calls, "pattern": pattern})
            sound = torch.tensor([float(not ended)])
            dist.all_reduce(sound)
            if sound == size:
                break
    return found


def _train_to_a_fault(rank: int, calls: int, pattern: str) -> None:
    model = on_device(mlp().double()) if rank == 0 else mlp().double()
    optimizer = sgd(model.parameters())
    options = {"topology": "ring", "bucket_bytes": 128, "timeout_s": 20.0, "pattern": pattern}
    if rank == 0:
        device_backend.fail_after(calls)
    with Gossip(model, optimizer, **options):
        steps(model, optimizer, rank, 3)


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    "device_rules": device_rules,
    "device_faults": device_faults,
}
