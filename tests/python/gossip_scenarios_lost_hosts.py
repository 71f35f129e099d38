"""Hosts of two ranks each, with FSDP or DDP inside, of which the last one is lost."""

from typing import Any

import torch
from gossip_scenarios_lost import GOES_ON, LAST, STEPS, die
from gossip_scenarios_mesh import ADAMW, sharded, small, whole
from gossip_scenarios_save import folder
from gossip_support import batch, loss_of, names_in, newest
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from gossamer import Gossip


def lost_hosts(rank: int, size: int) -> Any:
    """By what is inside and the pattern. Once the last host is lost, the others go on by it."""
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("gossip", "inner"))
    runs = [
        Run(mesh, rank, inside, pattern)
        for inside in ("fsdp", "ddp")
        for pattern in ("cwa", "allreduce")
    ]
    for run in runs:
        run.train(range(LAST))
    if rank >= size - 2:
        die()
    return {run.name: run.found() for run in runs}


class Run:
    def __init__(self, mesh: DeviceMesh, rank: int, inside: str, pattern: str) -> None:
        self.name = f"{inside} {pattern}"
        self._rank = rank
        self._model: torch.nn.Module = (
            sharded(mesh)
            if inside == "fsdp"
            else DistributedDataParallel(small(), process_group=mesh["inner"].get_group())
        )
        self._optimizer = ADAMW(self._model.parameters())
        self._gossip = Gossip(
            self._model,
            self._optimizer,
            group=mesh["gossip"],
            pattern=pattern,
            topology="complete",
            **GOES_ON,
        )

    def train(self, steps: range) -> None:
        for step in steps:
            self._optimizer.zero_grad()
            loss_of(self._model, batch(step, self._rank)).backward()
            self._optimizer.step()

    def found(self) -> dict[str, Any]:
        self.train(range(LAST, STEPS))
        own = whole(self._model)
        with self._gossip.averaged() as average:
            mean = whole(average)
        place = folder(f"hosts-{self.name}")
        self._gossip.save(place)
        found = {
            "own": own,
            "mean": mean,
            "disagreement": self._gossip.disagreement(),
            "lost": self._gossip.stats()["lost"],
            "hosts": sorted(self._gossip.gather(None)),
            "files": names_in(newest(place / f"group{self._rank % 2}")),
        }
        self._gossip.close()
        return found


SCENARIOS = {"lost_hosts": lost_hosts}
