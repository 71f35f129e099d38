"""What the workers of the tests of interrupted saves do, and of several checkpoints in a folder."""

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch.distributed as dist
from gossip_scenarios_basic import gossiping
from gossip_scenarios_ends import attempt_to
from gossip_scenarios_save import damaged, everything, files_in, flip, folder
from gossip_support import mlp, names_in, newest, train
from torch.optim import SGD, AdamW

from gossamer import Gossip, _core


def interrupted(rank: int, size: int) -> Any:
    """A save that fails on one rank at one of its points, and what is loaded after it."""
    place = folder("interrupted")
    found: dict[str, Any] = {}
    model = mlp()
    optimizer = AdamW(model.parameters(), lr=0.01)
    with gossiping(model, optimizer, topology="ring") as gossip:
        train(model, optimizer, range(3), rank)
        gossip.save(place)
        saved = everything(model, optimizer)
        for name, function in {
            "begin": "begin_checkpoint",
            "write": "write_worker_file",
            "commit": "commit_checkpoint",
        }.items():
            train(model, optimizer, range(3, 5), rank)
            patch = mock.patch.object(_core, function, side_effect=OSError("disk full"))
            fails = rank == 1 or name == "commit"  # there are hosts of whom one commits
            with patch if fails else contextlib.nullcontext():
                error = attempt_to(lambda: gossip.save(place))
            gossip.load(place)
            same = everything(model, optimizer) == saved
            left = names_in(place)
            found[name] = {**error, "same": same, "steps": gossip.stats()["steps"], "left": left}
    return found


def hosts_apart(rank: int, size: int) -> Any:
    """Hosts that share no folder; the last one keeps its former checkpoint in the second save."""
    host = os.environ["GROUP_RANK"]
    place = folder(f"apart-{host}")
    model = mlp()
    optimizer = AdamW(model.parameters(), lr=0.01)
    with gossiping(model, optimizer, topology="ring") as gossip:
        train(model, optimizer, range(3), rank)
        gossip.save(place)
        saved = everything(model, optimizer)
        train(model, optimizer, range(3, 5), rank)
        patch = mock.patch.object(_core, "commit_checkpoint", side_effect=OSError("disk full"))
        with patch if host != "0" else contextlib.nullcontext():
            error = attempt_to(lambda: gossip.save(place))
        latest = int(newest(place).name.removeprefix("step-"))
        gossip.load(place)
        same = everything(model, optimizer) == saved
        gossip.save(place)
        dist.barrier()
        files = files_in(place)
        gossip.load(place)
        again = everything(model, optimizer) == saved
    return {**error, "same": same, "latest": latest, "files": files, "again": again}


def kept(rank: int, size: int) -> Any:
    """Several checkpoints in one folder: which stay, and which is loaded."""
    place, model = folder("kept"), mlp()
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    found: dict[str, Any] = {}
    with gossiping(model, optimizer, topology="ring") as gossip:
        for step in range(3):
            train(model, optimizer, [step], rank)
            gossip.save(place, keep=2)
        dist.barrier()
        found["kept"] = names_in(place)
        for name, path in {"earlier": place / "step-00000002", "loaded": place}.items():
            train(model, optimizer, [step], rank)
            gossip.load(path)
            found[name] = gossip.stats()["steps"]
        with damaged(rank, newest(place) / "worker-00001.safetensors", flip):
            found["damaged"] = attempt_to(lambda: gossip.load(place))
        found["refused"] = attempt_to(lambda: gossip.save(place, keep=0))
        found["unequal"] = attempt_to(lambda: gossip.save(place, keep=rank + 1))
        train(model, optimizer, [3], rank)
        gossip.save(place)
        dist.barrier()
        found["after"] = names_in(place)
    return found


def killed_while_saving(rank: int, size: int) -> Any:
    """The last rank is killed when its second file is there, before it has told the others."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    gossip = Gossip(model, optimizer, topology="ring", timeout_s=30.0)
    train(model, optimizer, range(3), rank)
    gossip.save(folder("killed"))
    saved = everything(model, optimizer)
    train(model, optimizer, range(3, 5), rank)
    if rank == size - 1:
        write = _core.write_worker_file

        def write_and_die(*arguments: Any) -> None:
            write(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        with mock.patch.object(_core, "write_worker_file", side_effect=write_and_die):
            gossip.save(folder("killed"))
    error = attempt_to(lambda: gossip.save(folder("killed")))
    gossip.close()
    return {"saved": saved, **error}


def after_the_kill(rank: int, size: int) -> Any:
    model = mlp(seed=3)
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    with gossiping(model, optimizer, topology="ring") as gossip:
        gossip.load(folder("killed"))
        loaded = everything(model, optimizer)
        steps = gossip.stats()["steps"]
        gossip.save(folder("killed"))
        dist.barrier()
        files = files_in(folder("killed"))
    return {"loaded": loaded, "steps": steps, "files": files}


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function
    for function in (interrupted, hosts_apart, kept, killed_while_saving, after_the_kill)
}
