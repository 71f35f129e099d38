"""Gossamer: the others go on, and the lost worker comes back with a neighbour's state."""

import sys
from pathlib import Path

import notes
import task

import gossamer


def main() -> None:
    folder = Path(sys.argv[1])
    rank, workers = gossamer.init()
    diary = notes.Notes(folder, rank)
    model = task.model()
    optimizer = task.optimizer(model)
    gossip = gossamer.Gossip(model, optimizer, topology=sys.argv[2], lost="go_on")
    step = gossip.steps_done
    while not diary.is_enough():
        optimizer.zero_grad()
        task.compute(model, step * workers + rank)
        optimizer.step()
        step += 1
        diary.step(step)
    gossip.close()


if __name__ == "__main__":
    main()
