"""Gossamer: the others go on, and the lost worker comes back with a neighbour's state."""

import argparse
from pathlib import Path

import notes
import task

import gossamer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("topology")
    parser.add_argument("--pattern", default="cwa")
    parser.add_argument("--metrics", type=Path)
    parser.add_argument("--apart", type=int, help="note every so many steps how far all are apart")
    parser.add_argument("--text", type=int, help="train a model of bytes, from this seed")
    given = parser.parse_args()
    rank, workers = gossamer.init()
    diary = notes.Notes(given.folder, rank)
    trained = task.Pause() if given.text is None else task.Text(given.text, rank)
    optimizer = task.optimizer(trained.model)
    gossip = gossamer.Gossip(
        trained.model,
        optimizer,
        topology=given.topology,
        pattern=given.pattern,
        lost="go_on",
        metrics=given.metrics,
    )
    step = gossip.steps_done
    while not diary.is_enough(step):
        optimizer.zero_grad()
        loss = trained.compute(trained.model, step * workers + rank)
        if given.metrics:
            gossip.log(loss=loss)
        optimizer.step()
        step += 1
        diary.step(step)
        if gossip.last_step and gossip.last_step.among:
            diary.among(step, gossip.last_step.among)
        if given.apart and step % given.apart == 0:
            diary.apart(step, gossip.disagreement())
    if isinstance(trained, task.Text):
        with gossip.averaged():
            diary.loss(trained.validate())
    gossip.close()


if __name__ == "__main__":
    main()
