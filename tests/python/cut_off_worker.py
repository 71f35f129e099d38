"""A worker, the link of whose host is unplugged; says in a folder where it is."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import gossamer

PAUSE_S = 0.03


def main() -> None:
    folder = Path(sys.argv[1])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.Linear(20, 20)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    gossip = gossamer.Gossip(model, optimizer, topology="ring", lost="go_on", timeout_s=120)
    found: dict[str, Any] = {"error": ""}
    try:
        while not (folder / "enough").exists():
            optimizer.zero_grad()
            model(torch.randn(2, 20)).square().mean().backward()
            optimizer.step()
            (folder / f"step-{rank}").write_text(str(gossip.steps_done))
            time.sleep(PAUSE_S)
    except gossamer.TransportError as error:
        found["error"] = str(error)
    found |= {"steps": gossip.steps_done, "lost": sorted(gossip.stats()["lost"])}
    (folder / f"found-{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
