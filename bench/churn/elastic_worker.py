"""torchrun with restarts and DDP: all begin again from a checkpoint, written every second or so."""

import os
import sys
from pathlib import Path

import notes
import task
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS_PER_SAVE = 20


def main() -> None:
    folder = Path(sys.argv[1])
    rank = int(os.environ["RANK"])
    diary = notes.Notes(folder, rank)
    dist.init_process_group("gloo")
    trained = task.Pause()
    model = trained.model
    optimizer = task.optimizer(model)
    saved, step = folder / "saved.pt", 0
    if saved.exists():
        state = torch.load(saved)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    network = DistributedDataParallel(model)
    ends = torch.zeros(1)
    while ends.item() == 0:
        optimizer.zero_grad()
        trained.compute(network, step * dist.get_world_size() + rank)
        optimizer.step()
        step += 1
        diary.step(step)
        if step % STEPS_PER_SAVE == 0:
            ends.fill_(float(rank == 0 and diary.is_enough(step)))
            dist.broadcast(ends, 0)
            if rank == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save({**state, "step": step}, folder / "new.pt")
                (folder / "new.pt").rename(saved)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
