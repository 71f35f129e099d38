"""What the workers of the tests of StopOnSignal do."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from gossip_scenarios_basic import TIMEOUT_S
from gossip_scenarios_ends import attempt_to
from gossip_scenarios_save import folder
from gossip_support import mlp, train
from torch.optim import SGD

from gossamer import Gossip, StopOnSignal

MANY = 5000


def stopped(
    rank: int,
    told: dict[int, int],
    *,
    dies: dict[int, int] | None = None,
    between: Callable[[int], Any] = id,
    **options: Any,
) -> dict[str, Any]:
    """How training ends where each of ``told`` gets a signal in its own step of that number, and
    each of ``dies`` is killed in it."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.05)
    gossip = Gossip(model, optimizer, timeout_s=TIMEOUT_S, **options)
    pace = random.Random(rank)
    steps = 0
    with StopOnSignal(gossip) as stop:
        for steps in range(1, MANY):
            time.sleep(0.002 * pace.random())
            if dies is not None and dies.get(rank) == steps:
                os.kill(os.getpid(), signal.SIGKILL)
            train(model, optimizer, range(steps - 1, steps), rank)
            if told.get(rank) == steps:
                os.kill(os.getpid(), signal.SIGTERM)
            if stop.is_due():
                gossip.save(folder("stopped"))
                break
            between(steps)
        left = attempt_exit(stop)
    gossip.close()
    return {"steps": steps, "left": left, "handler": str(signal.getsignal(signal.SIGTERM))}


def attempt_exit(stop: StopOnSignal) -> int | str | None:
    try:
        stop.leave()
    except SystemExit as end:
        code = end.code
    return code


def one_is_told(rank: int, size: int) -> Any:
    return [
        stopped(rank, {size - 1: 7}, topology="ring"),
        stopped(rank, {0: 4, 1: 9}, topology="complete", pattern="allreduce"),
        stopped(rank, {1: 5}, topology="one_peer_exponential", update="backward"),
        stopped(rank, {1: 5}, topology="ring", late="skip"),
        stopped(rank, {1: 6}, topology="ring", transport="c10d"),
    ]


def at_a_barrier(rank: int, size: int) -> Any:
    """Others wait in torch's barrier for a worker that asks them where to stop."""

    def between(steps: int) -> None:
        if steps % 3 == 0:
            dist.barrier()

    return stopped(rank, {0: 4}, between=between, topology="ring")


def without_the_lost(rank: int, size: int) -> Any:
    """One is killed before anybody is told, and rank 0 in about the same moment."""
    dies = {2: 4, 0: 12}
    return stopped(rank, {3: 12}, dies=dies, topology="ring", lost="go_on", suspect_s=60)


def one_leaves(rank: int, size: int) -> Any:
    """Rank 1 is told to stop alone, and rank 2 leaves by itself; the others do all their steps."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.05)
    gossip = Gossip(model, optimizer, topology="ring", lost="go_on", timeout_s=TIMEOUT_S)
    found: dict[str, Any] = {}
    with StopOnSignal(gossip, all_stop=False) as stop:
        for step in range(1, 60):
            train(model, optimizer, range(step - 1, step), rank)
            if rank == 1 and step == 5:
                os.kill(os.getpid(), signal.SIGTERM)
            if stop.is_due():
                found["left"] = attempt_exit(stop)
                break
            if rank == 2 and step == 9:
                gossip.leave()
                return {"steps": step}
    if rank != 1:
        found["mean"] = float(gossip.mean(torch.tensor([float(rank)])))
    found |= {"steps": gossip.stats()["steps"], "lost": gossip.stats()["lost"]}
    gossip.close()
    return found


def loaded_again(rank: int, size: int) -> Any:
    """What was saved, in a run that stops again."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, under which tests may run, ignores it
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.05)
    gossip = Gossip(model, optimizer, topology="ring", timeout_s=TIMEOUT_S)
    gossip.load(folder("stopped"))
    before = gossip._run.team.engine.steps_done
    with StopOnSignal(gossip) as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        steps = before
        while not stop.is_due():
            train(model, optimizer, range(steps, steps + 1), rank)
            steps += 1
        left = attempt_exit(stop)
    gossip.close()
    return {"before": before, "steps": steps, "left": left}


def misused(rank: int, size: int) -> Any:
    """By case: how it fails; the last rank is the one that is wrong where one is."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.05)
    gossip = Gossip(model, optimizer, topology="ring", timeout_s=TIMEOUT_S)
    found = {}
    found["leave"] = attempt_to(gossip.leave)
    found["alone"] = attempt_to(lambda: StopOnSignal(gossip, all_stop=False))
    grace_s = 0.0 if rank == size - 1 else 25.0
    found["grace"] = attempt_to(lambda: StopOnSignal(gossip, grace_s=grace_s))
    errors: list[dict[str, Any]] = []
    thread = threading.Thread(
        target=lambda: errors.append(attempt_to(lambda: StopOnSignal(gossip)))
    )
    thread.start()
    thread.join()
    found["thread"] = errors[0]
    with StopOnSignal(gossip):
        found["second"] = attempt_to(lambda: StopOnSignal(gossip))
    gossip.close()
    return found


def one_is_lost(rank: int, size: int) -> Any:
    """The last rank ends while the others wait to hear how far it has come."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.05)
    gossip = Gossip(model, optimizer, topology="complete", timeout_s=TIMEOUT_S)
    with StopOnSignal(gossip) as stop:
        train(model, optimizer, range(1), rank)
        if rank == size - 1:
            stop.close()  # before anybody is told: it would say how far it has come
        dist.barrier()
        if rank == size - 1:
            gossip.close()
            return {}
        os.kill(os.getpid(), signal.SIGTERM)
        found = attempt_to(stop.is_due)
        stop._told = 0
    gossip.close()
    return found


SCENARIOS = {
    each.__name__: each
    for each in (
        one_is_told,
        at_a_barrier,
        loaded_again,
        misused,
        one_is_lost,
        without_the_lost,
        one_leaves,
    )
}
