"""What the workers of the tests of save() and load() do."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from gossip_scenarios_basic import TIMEOUT_S, Normed, buffers, gossiping, numbers
from gossip_scenarios_ends import attempt_to
from gossip_support import mlp, names_in, newest, rewrite, train
from torch import nn
from torch.optim import SGD, Adam, AdamW, NAdam, RMSprop

from gossamer import Gossip

Make = Callable[[nn.Module], torch.optim.Optimizer]

OPTIMIZERS: dict[str, Make] = {
    "momentum": lambda m: SGD(m.parameters(), lr=0.05, momentum=0.9, dampening=0.3),
    "adamw": lambda m: AdamW(m.parameters(), lr=0.01, weight_decay=0.1),
    "rmsprop": lambda m: RMSprop(m.parameters(), lr=0.01, momentum=0.5),
    "nadam": lambda m: NAdam(m.parameters(), lr=torch.tensor(0.01)),
}
PATTERNS = {"momentum": "cwa", "adamw": "atc", "rmsprop": "cwa", "nadam": "allreduce"}


def folder(name: str) -> Path:
    """Of all launches of a test together."""
    return Path(os.environ["GOSSAMER_TEST_FOLDER"]) / name


def files_in(place: Path) -> list[str]:
    """What is in a folder, and in its newest checkpoint."""
    return names_in(place) + names_in(newest(place))


def state_of(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """The tensors of the optimizer's state by parameter."""
    return [
        {
            key: value.double().flatten().tolist()
            for key, value in optimizer.state.get(p, {}).items()
            if isinstance(value, torch.Tensor)
        }
        for group in optimizer.param_groups
        for p in group["params"]
    ]


def everything(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    return {
        "parameters": numbers(model),
        "buffers": buffers(model),
        "state": state_of(optimizer),
        "lr": [float(group["lr"]) for group in optimizer.param_groups],
    }


def resumed(rank: int, size: int) -> Any:
    """By optimizer: everything after 9 steps with a save after 5, and from there in another run."""
    found = {}
    for name, make in OPTIMIZERS.items():
        place, ends = folder(f"resumed-{name}"), []
        for seed, steps in ((0, range(9)), (7, range(5, 9))):
            model = Normed(seed)
            optimizer = make(model)
            with gossiping(
                model, optimizer, topology="ring", pattern=PATTERNS[name], bucket_bytes=64
            ) as gossip:
                if seed:
                    train(model, optimizer, range(2), rank)
                    gossip.load(place)
                else:
                    train(model, optimizer, range(4), rank)
                    gossip.save(place)  # the one that is replaced
                    optimizer.param_groups[0]["lr"] *= 0.5
                    train(model, optimizer, [4], rank)
                    gossip.save(place)
                train(model, optimizer, [step for step in steps if step > 4], rank)
                ends.append({**everything(model, optimizer), "steps": gossip.stats()["steps"]})
        found[name] = {"ends": ends, "files": files_in(place)}
    return found


def reordered(rank: int, size: int) -> Any:
    """Everything by name after 9 steps, and the same where the optimizer has its parameters in
    another order since the fifth."""
    place, ends, settings = folder("reordered"), [], []
    attempts = {}

    def grouped(of: nn.Module, *names: str) -> torch.optim.Optimizer:
        found = dict(of.named_parameters())
        groups = [{"params": [found[name] for name in each.split()]} for each in names]
        return AdamW(groups, lr=0.01)

    def by_name(of: nn.Module, its: torch.optim.Optimizer) -> Any:
        return {
            name: [p.tolist(), {key: value.tolist() for key, value in its.state[p].items()}]
            for name, p in of.named_parameters()
        }

    for seed, names in (
        (0, ("0.weight 0.bias", "2.weight 2.bias")),
        (7, ("2.bias 2.weight", "0.weight 0.bias")),
        (8, ("0.bias 2.weight", "0.weight 2.bias")),
        (9, ("0.weight 0.bias 2.weight 2.bias",)),
    ):
        model = mlp(seed)
        optimizer = grouped(model, *names)
        with gossiping(model, optimizer, topology="ring", pattern="extra") as gossip:
            if seed > 7:
                attempts[seed] = attempt_to(lambda: gossip.load(place))
                continue
            if seed:
                gossip.load(place)
            else:
                optimizer.param_groups[1]["lr"] = 0.03
                train(model, optimizer, range(5), rank)
                gossip.save(place)
            train(model, optimizer, range(5, 9), rank)
            ends.append(by_name(model, optimizer))
            settings.append(sorted(group["lr"] for group in optimizer.param_groups))
    return {"ends": ends, "settings": settings, "regrouped": attempts[8], "fewer": attempts[9]}


def resized(rank: int, size: int) -> Any:
    """Everything of this rank when all save, and by number of workers what some of them load."""
    groups = {n: dist.new_group(list(range(n))) for n in range(size, 0, -1)}
    found: dict[str, Any] = {}
    for name in ("momentum", "adamw", "rmsprop"):
        model = Normed(seed=0)
        optimizer = OPTIMIZERS[name](model)
        with gossiping(model, optimizer, topology="ring", group=groups[size]) as gossip:
            train(model, optimizer, range(3 if rank else 2), rank)
            if rank == 0:  # a step that only mixes, so that it counts one less
                optimizer.zero_grad()
                optimizer.step()
            model.counts[0] = rank
            gossip.save(folder(f"resized-{name}"))
            found[name] = {"saved": everything(model, optimizer), "loaded": {}}
        for workers, group in groups.items():
            if workers == size or rank >= workers:
                continue
            model = Normed(seed=5)
            optimizer = OPTIMIZERS[name](model)
            with Gossip(model, optimizer, group=group, timeout_s=TIMEOUT_S) as gossip:
                gossip.load(folder(f"resized-{name}"))
                found[name]["loaded"][workers] = everything(model, optimizer)
                train(model, optimizer, range(2), rank)
                dist.barrier(group)
    return found


class Odd(nn.Module):
    """Half precision, complex, double, channels last; buffers that torch does not save."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.low = nn.Parameter(torch.randn(7, dtype=torch.bfloat16))
        self.turned = nn.Parameter(torch.randn(4, dtype=torch.complex64))
        self.wide = nn.Parameter(torch.randn(3, dtype=torch.float64))
        self.image = nn.Parameter(torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last))
        self.register_buffer("hidden", torch.randn(2), persistent=False)
        self.register_buffer("alias", self.low.data)
        self.register_buffer("flags", torch.tensor([True, seed == 0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        squares = [p.abs().double().square().sum() for p in self.parameters()]
        return x.double().mean() * torch.stack(squares).sum()


def bits(model: nn.Module) -> list[Any]:
    found = []
    for tensor in (*model.parameters(), *model.buffers()):
        real = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
        found.append([str(tensor.dtype), list(tensor.stride()), real.double().flatten().tolist()])
    return found


def odd_tensors(rank: int, size: int) -> Any:
    """What is there when it is saved and when it is loaded, and four steps later."""
    found = []
    for seed in (0, 3):
        model = Odd(seed)
        optimizer = RMSprop(model.parameters(), lr=0.01)
        with gossiping(model, optimizer, topology="ring") as gossip:
            if seed:
                gossip.load(folder("odd"))
            else:
                train(model, optimizer, range(3), rank)
                gossip.save(folder("odd"))
            now = [bits(model), state_of_odd(optimizer)]
            train(model, optimizer, range(3, 7), rank)
            found.append([*now, bits(model)])
    return found


def state_of_odd(optimizer: torch.optim.Optimizer) -> list[Any]:
    return [
        [str(v.dtype), torch.view_as_real(v).tolist() if v.is_complex() else v.tolist()]
        for entry in optimizer.state.values()
        for v in entry.values()
    ]


def grown(rank: int, size: int) -> Any:
    """What rank 0 alone has saved, and what all load; whether each goes on fused."""
    found = []
    alone = dist.new_group([0])
    for seed, group in ((0, alone), (4, None)):
        model = mlp(seed)
        optimizer = AdamW(model.parameters(), lr=0.01)
        if group is alone and rank > 0:
            continue
        with Gossip(model, optimizer, group=group, timeout_s=TIMEOUT_S) as gossip:
            if group is alone:
                train(model, optimizer, range(3))
                gossip.save(folder("grown"))
            else:
                dist.barrier()  # rank 0 has saved
                gossip.load(folder("grown"))
                found.append(gossip.disagreement())
                dist.barrier()
            found.append(everything(model, optimizer))
            train(model, optimizer, range(2), rank)
            found.append(gossip.is_fused)
    return found


def two_groups(rank: int, size: int) -> Any:
    """Rank 0 alone, and the others together, save to one folder; everything before and after."""
    groups = [dist.new_group([0]), dist.new_group(list(range(1, size)))]
    found = []
    for seed in (rank, 9):
        model = mlp(seed)
        optimizer = AdamW(model.parameters(), lr=0.01)
        with Gossip(model, optimizer, group=groups[min(rank, 1)], timeout_s=TIMEOUT_S) as gossip:
            if seed == rank:
                train(model, optimizer, range(3), rank)
                gossip.save(folder("two-groups"))
                dist.barrier()
            else:
                gossip.load(folder("two-groups"))
            found.append(everything(model, optimizer))
            dist.barrier()
    return found


# Refusals.


@contextlib.contextmanager
def damaged(rank: int, file: Path, change: Callable[[bytes], bytes | None]) -> Iterator[None]:
    """The file with other bytes, or without a file, until all ranks have left."""
    good = file.read_bytes()
    dist.barrier()
    if rank == 0:
        bad = change(good)
        file.unlink()
        if bad is not None:
            file.write_bytes(bad)
    dist.barrier()
    yield
    dist.barrier()
    if rank == 0:
        file.write_bytes(good)
    dist.barrier()


def flip(data: bytes) -> bytes:
    changed = bytearray(data)
    changed[-3] ^= 4
    return bytes(changed)


def digit(data: bytes) -> bytes:
    assert b'"step": 3' in data
    return data.replace(b'"step": 3', b'"step": 4')


def refused(rank: int, size: int) -> Any:
    """By case: how load() fails, and whether all is as it was before."""
    model = mlp()
    optimizer = Adam(model.parameters(), lr=0.01)
    place = folder("refused")
    found: dict[str, Any] = {}

    def attempt(name: str, gossip: Gossip, of: nn.Module, its: torch.optim.Optimizer) -> None:
        before = everything(of, its)
        found[name] = attempt_to(lambda: gossip.load(place))
        found[name]["unchanged"] = everything(of, its) == before

    with gossiping(model, optimizer, topology="ring") as gossip:
        train(model, optimizer, range(3), rank)
        gossip.save(place)
        dist.barrier()
        train(model, optimizer, range(3, 5), rank)
        file, manifest = (newest(place) / n for n in ("worker-00001.safetensors", "manifest.json"))
        for name, (path, change) in {
            "truncated": (file, lambda data: data[: len(data) // 2]),
            "flipped": (file, flip),
            "missing": (file, lambda _: None),
            "manifest": (manifest, digit),
            "no_manifest": (manifest, lambda _: None),
        }.items():
            with damaged(rank, path, change):
                attempt(name, gossip, model, optimizer)
        other = mlp(hidden=8)
        its = Adam(other.parameters(), lr=0.01)
        with gossiping(other, its, topology="ring") as its_gossip:
            attempt("model", its_gossip, other, its)
        same = mlp()
        sgd = SGD(same.parameters(), lr=0.01)
        with gossiping(same, sgd, topology="ring") as its_gossip:
            attempt("optimizer", its_gossip, same, sgd)
        train(model, optimizer, range(5, 7), rank)  # all goes on
        gossip.load(place)  # and it is whole again
        found["steps"] = gossip.stats()["steps"]
        if rank == 0:
            optimizer.param_groups[0]["note"] = object()
        found["unsavable"] = attempt_to(lambda: gossip.save(folder("unsavable")))
        dist.barrier()
        found["left"] = names_in(folder("unsavable"))
        with gossip.averaged():
            found["averaged"] = attempt_to(lambda: gossip.save(place))
    return found


def hollow(rank: int, size: int) -> Any:
    """A file of rank 1 that is what its manifest says, and has no tensor of what it should have."""
    place, model = folder("hollow"), mlp()
    with gossiping(model, Adam(model.parameters()), topology="ring") as gossip:
        gossip.save(place)
        dist.barrier()
        if rank == 0:
            rewrite(place, 1, lambda tensors, document: ({}, document))
        dist.barrier()
        return attempt_to(lambda: gossip.load(place))


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function
    for function in (resumed, reordered, resized, odd_tensors, grown, two_groups, refused, hollow)
}
