"""Runs a script and notes what its `Gossip.averaged()` gave.

watch_example.py NOTES SCRIPT ARGUMENT…: rank 0 writes a line of JSON to the file NOTES each time:
`disagreement` of the workers before, and `spread` within, the largest difference between two
workers in any parameter or buffer.
"""

import contextlib
import json
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import gossamer


@torch.no_grad()
def spread(model: torch.nn.Module) -> float:
    widest = 0.0
    for value in model.state_dict().values():
        high, low = value.double(), value.double()
        dist.all_reduce(high, dist.ReduceOp.MAX)
        dist.all_reduce(low, dist.ReduceOp.MIN)
        # A mask holds -inf everywhere alike, and inf - inf is no number.
        widest = max(widest, float(torch.where(high == low, 0.0, high - low).max()))
    return widest


def watch(notes: Path) -> None:
    averaged = gossamer.Gossip.averaged

    @contextlib.contextmanager
    def watched(self: gossamer.Gossip, **options: Any) -> Iterator[Any]:
        disagreement = self.disagreement()
        with averaged(self, **options) as model:
            seen = {"disagreement": disagreement, "spread": spread(model)}
            if dist.get_rank() == 0:
                with notes.open("a") as file:
                    file.write(json.dumps(seen) + "\n")
            yield model

    gossamer.Gossip.averaged = watched


if __name__ == "__main__":
    notes, script, *arguments = sys.argv[1:]
    watch(Path(notes))
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")
