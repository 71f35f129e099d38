"""torchft: an all-reduce per step among those that its lighthouse counts as alive."""

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import notes
import task
import torch.distributed as dist
from torchft import Manager, ProcessGroupGloo
from torchft.ddp import DistributedDataParallel, PureDistributedDataParallel
from torchft.optim import OptimizerWrapper


def main() -> None:
    folder, wrapper = Path(sys.argv[1]), sys.argv[2]
    rank, workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    diary = notes.Notes(folder, rank)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    trained = task.Pause()
    model = trained.model
    inner = task.optimizer(model)

    def load(state: dict[str, Any]) -> None:
        model.load_state_dict(state["model"])
        inner.load_state_dict(state["optimizer"])

    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=10)),
        load_state_dict=load,
        state_dict=lambda: {"model": model.state_dict(), "optimizer": inner.state_dict()},
        min_replica_size=1,
        replica_id=f"worker_{rank}",
        store_addr="127.0.0.1",
        store_port=store.port,
        rank=0,
        world_size=1,
        hostname="127.0.0.1",
    )
    wrap = DistributedDataParallel if wrapper == "ddp" else PureDistributedDataParallel
    network = wrap(manager, model)
    optimizer = OptimizerWrapper(manager, inner)
    while not diary.is_enough(manager.current_step()):
        before = manager.current_step()
        optimizer.zero_grad()
        trained.compute(network, before * workers + rank)
        optimizer.step()
        if manager.current_step() > before:
            diary.step(manager.current_step())
    os._exit(0)  # its threads may wait for those that have left


if __name__ == "__main__":
    main()
