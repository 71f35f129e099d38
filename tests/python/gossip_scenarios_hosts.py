"""Hosts of two ranks each, with FSDP or DDP inside, of which one is lost, or told to stop."""

import functools
import os
import random
import signal
import time
from typing import Any

from gossip_scenarios_basic import TIMEOUT_S
from gossip_scenarios_ends import attempt_to
from gossip_scenarios_lost import GOES_ON, LAST, STEPS, die
from gossip_scenarios_mesh import ADAMW, sharded, small, whole
from gossip_scenarios_save import folder
from gossip_scenarios_stops import MANY, attempt_exit
from gossip_support import batch, loss_of, names_in, newest
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from gossamer import Gossip, StopOnSignal, make_schedule


def mesh_of(size: int) -> DeviceMesh:
    return init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("gossip", "inner"))


class Run:
    def __init__(
        self, mesh: DeviceMesh, rank: int, inside: str = "fsdp", seed: int = 0, **options: Any
    ) -> None:
        self._rank = rank
        self.model: nn.Module = (
            sharded(mesh, seed)
            if inside == "fsdp"
            else DistributedDataParallel(small(seed), process_group=mesh["inner"].get_group())
        )
        self._optimizer = ADAMW(self.model.parameters())
        options = {"topology": "complete", "timeout_s": TIMEOUT_S, **options}
        self.gossip = Gossip(self.model, self._optimizer, group=mesh["gossip"], **options)

    def train(self, steps: range) -> None:
        for step in steps:
            self._optimizer.zero_grad()
            loss_of(self.model, batch(step, self._rank)).backward()
            self._optimizer.step()

    def left(self, place: str) -> dict[str, Any]:
        """What those that are left have in the end."""
        own = whole(self.model)
        with self.gossip.averaged() as average:
            mean = whole(average)
        self.gossip.save(folder(place))
        return {
            "own": own,
            "mean": mean,
            "disagreement": self.gossip.disagreement(),
            "lost": self.gossip.stats()["lost"],
            "hosts": sorted(self.gossip.gather(None)),
            "files": names_in(newest(folder(place) / f"group{self._rank % 2}")),
        }


def lost_hosts(rank: int, size: int) -> Any:
    """By pattern. Once the last host is lost, the others go on by it."""
    mesh = mesh_of(size)
    runs = {p: Run(mesh, rank, pattern=p, **GOES_ON) for p in ("cwa", "allreduce")}
    for run in runs.values():
        run.train(range(LAST))
    if rank >= size - 2:
        die()
    found = {}
    for pattern, run in runs.items():
        run.train(range(LAST, STEPS))
        found[pattern] = run.left(f"hosts-{pattern}")
        run.gossip.close()
    return found


def told(rank: int, who: int, run: Run, **how: Any) -> tuple[int, Any]:
    """After how many steps, and how, this rank ends where one is told to stop in its step 5."""
    pace = random.Random(rank)
    with StopOnSignal(run.gossip, **how) as stop:
        for step in range(MANY):
            time.sleep(0.002 * pace.random())
            run.train(range(step, step + 1))
            if (rank, step) == (who, 5):
                os.kill(os.getpid(), signal.SIGTERM)
            if stop.is_due():
                return step + 1, attempt_exit(stop)
            if not how.get("all_stop", True) and step + 1 == STEPS:
                return step + 1, None
    raise AssertionError("nobody has stopped")


def stopped_hosts(rank: int, size: int) -> Any:
    """One rank is told, and all stop, save and go on from there; or its host leaves."""
    mesh = mesh_of(size)
    found: dict[str, Any] = {}
    for inside in ("fsdp", "ddp"):
        place = folder(f"stopped-{inside}")
        run = Run(mesh, rank, inside)
        found[inside] = told(rank, 1, run)
        run.gossip.save(place)
        run.gossip.close()
        again = Run(mesh, rank, inside, seed=1)
        again.gossip.load(place)
        found[f"{inside} loaded"] = again.gossip.steps_done
        again.gossip.close()
    run = Run(mesh, rank, **GOES_ON)
    found["leaves"] = told(rank, size - 1, run, all_stop=False)
    run.gossip.close()
    return found


def refused_copies(rank: int, size: int) -> Any:
    """By case: why copies inside of a host could part."""
    mesh = mesh_of(size)
    follows_loss = make_schedule("ring", [1] * (size // 2), adaptive_average=2)
    cases: dict[str, dict[str, Any]] = {
        "lost": {"lost": "go_on"},
        "late": {"late": "skip", "topology": "ring"},
        "loss": {"topology": follows_loss},
    }
    return {
        case: attempt_to(functools.partial(Run, mesh, rank, "ddp", **how))
        for case, how in cases.items()
    }


SCENARIOS = {each.__name__: each for each in (lost_hosts, stopped_hosts, refused_copies)}
