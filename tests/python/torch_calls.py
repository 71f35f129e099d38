"""A program for `gossamer launch -n 4`: what collective calls of torch give, before there is a
Gossip, with it, and when rank 2 has been killed; each other rank writes FOLDER/<rank>.json.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import gossamer

SIZE = 4


def reduced(value: float, op: Any) -> float:
    tensor = torch.tensor([float(value)])
    dist.all_reduce(tensor, op=op)
    return float(tensor)


def calls(rank: int) -> dict[str, Any]:
    own = torch.tensor([float(rank)])
    places = [torch.zeros(1) for _ in range(SIZE)]
    dist.all_gather(places, own)
    into_one = torch.zeros(SIZE)
    dist.all_gather_single(into_one, own)
    objects: list[Any] = [None] * SIZE
    dist.all_gather_object(objects, rank)
    said = [rank, str(rank)]
    dist.broadcast_object_list(said, src=1)
    total, here = own.clone(), rank == 1
    dist.reduce(total, dst=1)
    at_one = [torch.zeros(1) for _ in range(SIZE)] if here else None
    dist.gather(own, at_one, dst=1)
    part = torch.zeros(1)
    dist.scatter(part, [torch.tensor([10.0 * i]) for i in range(SIZE)] if here else None, src=1)
    sums = torch.zeros(1)
    dist.reduce_scatter_single(sums, torch.arange(float(SIZE)))
    dist.barrier()
    return {
        "sum": reduced(rank, dist.ReduceOp.SUM),
        "least": reduced(rank, dist.ReduceOp.MIN),
        "most": reduced(rank, dist.ReduceOp.MAX),
        "product": reduced(rank, dist.ReduceOp.PRODUCT),
        "gathered": [float(each) for each in places],
        "into one": into_one.tolist(),
        "objects": objects,
        "of rank 1": said,
        "to rank 1": [float(total), [float(each) for each in at_one]] if at_one else None,
        "part": float(part),
        "sums": float(sums),
    }


def main(folder: Path) -> None:
    rank, _ = gossamer.init()
    found: dict[str, Any] = {"before": calls(rank)}
    model = torch.nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gossip = gossamer.Gossip(
        model, optimizer, topology="ring", lost="go_on", timeout_s=60, suspect_s=60
    )
    found["with"] = calls(rank)
    for step in range(20):
        optimizer.zero_grad()
        model(torch.randn(8, 6)).square().mean().backward()
        optimizer.step()
        if rank == 2 and step == 9:
            os.kill(os.getpid(), signal.SIGKILL)
    found["after"] = calls(rank)
    found["mean"] = reduced(rank, dist.ReduceOp.AVG)  # Gloo has none
    gossip.close()
    try:
        dist.barrier()
    except RuntimeError as error:
        found["closed"] = str(error)
    (folder / f"{rank}.json").write_text(json.dumps(found))


main(Path(sys.argv[1]))
