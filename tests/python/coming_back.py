"""A program for `gossamer launch`: ranks named in DIES end once, by SIGKILL in that step. TOLD is a
rank that gets SIGTERM near the end, so that all stop."""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

HAD_TORCH = "torch" in sys.modules

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import gossamer  # noqa: E402
from gossamer import _core  # noqa: E402

STEPS_AFTER = 110  # so that edges to who has come back last are on for some of them


def main() -> None:
    folder, topology = Path(sys.argv[1]), sys.argv[2]
    dies = json.loads(os.environ["DIES"])
    life = int(os.environ["GOSSAMER_RESTARTS"])
    rank, workers = gossamer.init()
    refused = refusal() if life > 0 else ""
    torch.manual_seed(rank)
    model = torch.nn.Linear(6, 3)
    kind = getattr(torch.optim, os.environ.get("OPTIMIZER", "AdamW"))
    optimizer = kind(model.parameters(), lr=1e-2)
    if os.environ.get("MISSES") == str(rank) and life > 0:
        miss_the_start()
    how = {"topology": topology, "pattern": os.environ.get("PATTERN", "cwa")}
    how |= json.loads(os.environ.get("OPTIONS", "{}"))
    gossip = gossamer.Gossip(model, optimizer, lost="go_on", timeout_s=60, suspect_s=60, **how)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 / (1 + k))
    gossip.hand_over(scheduler=scheduler)
    first = gossip.steps_done
    deaths = dies.get(str(rank), [])
    if life >= len(deaths):
        (folder / f"there-{rank}").touch()  # for good
    told = os.environ.get("TOLD", "")
    stop = gossamer.StopOnSignal(gossip) if told else None
    step, end = first, None
    events: list[Any] = []
    while end is None or step < end:
        if life < len(deaths) and step - first == deaths[life]:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        model(torch.randn(8, 6)).square().mean().backward()
        optimizer.step()
        scheduler.step()
        step += 1
        events += [list(event) for event in gossip.events()]
        time.sleep(0.01)
        if step % 10 == 0:
            gossip.disagreement()
            gossip.save(folder / "saved")  # whoever has the lowest rank now takes the folder
        end = end or agreed_end(folder, workers, step)
        if told == str(rank) and step + 30 == end:
            os.kill(os.getpid(), signal.SIGTERM)
        if stop is not None and stop.is_due():
            break
    gradients = [p.grad.tolist() for p in model.parameters()]
    own = torch.cat([p.detach().flatten() for p in model.parameters()])
    with gossip.averaged():
        mean = torch.cat([p.detach().flatten() for p in model.parameters()])
    gossip.save(folder / "saved")
    found = {
        "first": first,
        "steps": gossip.steps_done,
        "own": own.tolist(),
        "gradients": gradients,
        "mean": mean.tolist(),
        "updates": [int(optimizer.state[p]["step"]) for p in model.parameters()],
        "lost": gossip.stats()["lost"],
        "events": events,
        "group": [dist.get_rank(), dist.get_world_size()],
        "rate": optimizer.param_groups[0]["lr"],
        "had_torch": HAD_TORCH,
        "refused": refused,
        "sum": sum_of_all(rank),
    }
    (folder / f"found-{rank}.json").write_text(json.dumps(found))
    if stop is not None:
        stop.leave()
    gossip.close()
    dist.destroy_process_group()


def miss_the_start() -> None:
    """The others let it in, and then it fails, once."""
    start_back = _core.Engine.start_back

    def fail(engine: _core.Engine, arrival: _core.Arrival) -> None:
        start_back(engine, arrival)
        patch.stop()
        raise gossamer.TransportError("another one comes first")

    patch = mock.patch.object(_core.Engine, "start_back", fail)
    patch.start()


def refusal() -> str:
    """What a collective call of torch says."""
    try:
        dist.barrier()
    except RuntimeError as error:
        return str(error)
    return ""


def sum_of_all(rank: int) -> float:
    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    return float(total)


def agreed_end(folder: Path, workers: int, step: int) -> int | None:
    """All stop after the same step, once all are there for good: who sees that first says which."""
    said = folder / "end"
    if all((folder / f"there-{rank}").exists() for rank in range(workers)) and not said.exists():
        own = folder / f"end-{os.getpid()}"
        own.write_text(str(step + STEPS_AFTER))
        with contextlib.suppress(FileExistsError):
            said.hardlink_to(own)
    return int(said.read_text()) if said.exists() else None


main()
