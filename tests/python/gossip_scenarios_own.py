"""What two workers of the tests of own schedules and own methods do; matrices are in the tests."""

import copy
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from gossip_scenarios_basic import TIMEOUT_S, gossiping, numbers
from gossip_scenarios_ends import attempt_to
from gossip_support import batch, loss_of, mlp
from torch import nn
from torch.optim import LBFGS, SGD

import gossamer

LR = 0.2
STEPS = 12
A = [[0.75, 0.25], [0.25, 0.75]]
B = [[0.9, 0.1], [0.1, 0.9]]
# By rank and step: what AGA is told, of which the mean counts.
LOSSES = [[16.0 / (k + 1) ** 2 for k in range(16)], [4.0 / (k + 1) ** 2 for k in range(16)]]
ROOT = Path(__file__).resolve().parents[2]


def shared_folder() -> Path:
    """The same on both ranks."""
    names = [tempfile.mkdtemp()]
    dist.broadcast_object_list(names)
    return Path(names[0])


def small() -> nn.Linear:
    """One bucket, of two numbers, so that it can be followed by hand."""
    model = nn.Linear(2, 1, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, -1.0]]))
    return model


def pull(model: nn.Module, rank: int) -> None:
    """The gradient of ½|x - c|² with a c of the rank's."""
    target = torch.tensor([[3.0, 1.0]], dtype=torch.float64) * (rank + 1)
    model.weight.grad = model.weight.detach() - target


def trajectory(rank: int, topology: Any, steps: int = STEPS, **options: Any) -> list[list[float]]:
    model = small()
    optimizer = SGD(model.parameters(), lr=LR)
    found = []
    with gossiping(model, optimizer, topology=topology, pattern="atc", **options) as gossip:
        for k in range(steps):
            pull(model, rank)
            gossip.observe(torch.tensor(LOSSES[rank][k], requires_grad=True))
            optimizer.step()
            found.append(model.weight.detach().view(-1).tolist())
    return found


def own_matrices(rank: int, size: int) -> Any:
    path = shared_folder() / "weights.json"
    if rank == 0:
        path.write_text(json.dumps({"rounds": [A, {"edges": [[0, 1, 0.1], [1, 0, 0.1]]}]}))
    dist.barrier()
    kinds = {
        "lists": [A, B],
        "numpy": [np.array(A), np.array(B)],
        "tensors": [torch.tensor(A, dtype=torch.float64), torch.tensor(B, dtype=torch.float64)],
    }
    made = {name: gossamer.schedule_from_matrices(each) for name, each in kinds.items()}
    found = {name: trajectory(rank, schedule) for name, schedule in made.items()}
    return {**found, "file": trajectory(rank, str(path))}


def other_file(rank: int, size: int) -> Any:
    """Each rank reads a file of its own, of the same name."""
    path = Path(tempfile.mkdtemp()) / "weights.json"
    path.write_text(json.dumps({"rounds": [A if rank == 0 else B]}))
    return attempt_to(lambda: trajectory(rank, str(path)))


def staggered(rank: int, size: int) -> Any:
    """By stagger: the disagreement after each step, of a model of several buckets."""
    found: dict[str, Any] = {}
    for stagger in (True, False):
        model = mlp(seed=3).double()
        optimizer = SGD(model.parameters(), lr=LR)
        schedule = gossamer.schedule_from_matrices([A], global_average_every=4)
        options = {"pattern": "atc", "bucket_bytes": 64, "stagger": stagger}
        apart = []
        with gossiping(model, optimizer, topology=schedule, **options) as gossip:
            for k in range(8):
                optimizer.zero_grad()
                loss_of(model, batch(k, rank).double()).backward()
                optimizer.step()
                apart.append(gossip.disagreement())
        found[str(stagger)] = apart
    found["one only"] = attempt_to(lambda: trajectory(rank, "ring", stagger=rank == 0))
    return found


def adaptive() -> gossamer.Schedule:
    return gossamer.schedule_from_matrices([A], adaptive_average=2)


def aga(rank: int, size: int) -> Any:
    """Losses by observe(), and by closures of a fused optimizer and of one with its own step."""
    found: dict[str, Any] = {"observed": trajectory(rank, adaptive(), 16)}
    for name, make in {"fused": SGD, "own": LBFGS}.items():
        model = small()
        optimizer = make(model.parameters(), lr=LR)
        with gossiping(model, optimizer, topology=adaptive(), pattern="atc") as gossip:
            for k in range(16):

                def closure(k: int = k, model: Any = model) -> float:
                    model.weight.grad = torch.zeros_like(model.weight)
                    return LOSSES[rank][k]

                with torch.no_grad():
                    model.weight.add_(rank)
                optimizer.step(closure)
            found[name] = gossip._run.team.engine.agreed_losses
    model = small()
    optimizer = SGD(model.parameters(), lr=LR)
    with gossiping(model, optimizer, topology=adaptive(), pattern="atc") as gossip:
        pull(model, rank)
        found["no loss"] = attempt_to(optimizer.step)
        found["no number"] = attempt_to(lambda: gossip.observe(torch.zeros(2)))
        found["weight"] = model.weight.detach().view(-1).tolist()
    return found


def aga_goes_on(rank: int, size: int) -> Any:
    """Saved after seven steps, loaded and gone on with; also with a parameter that is added."""
    folder = shared_folder()
    found = []

    def steps(gossip: Any, model: Any, optimizer: Any, numbers: range) -> None:
        for k in numbers:
            pull(model, rank)
            gossip.observe(LOSSES[rank][k])
            optimizer.step()

    model = small()
    model.more = nn.Linear(2, 2).double()
    optimizer = SGD([model.weight], lr=LR)
    with gossiping(model, optimizer, topology=adaptive(), pattern="atc") as gossip:
        steps(gossip, model, optimizer, range(7))
        gossip.save(folder)
        steps(gossip, model, optimizer, range(7, 9))
        optimizer.add_param_group({"params": model.more.parameters()})
        steps(gossip, model, optimizer, range(9, 16))
        found.append(model.weight.detach().view(-1).tolist())
    model = small()
    model.more = nn.Linear(2, 2).double()
    optimizer = SGD([model.weight], lr=LR)
    with gossiping(model, optimizer, topology=adaptive(), pattern="atc") as gossip:
        gossip.load(folder)
        steps(gossip, model, optimizer, range(7, 16))
        found.append(model.weight.detach().view(-1).tolist())
    return found


def aga_uneven(rank: int, size: int) -> Any:
    """Rank 1 has fewer batches, and its last loss goes on counting."""
    model = small()
    optimizer = SGD(model.parameters(), lr=LR)
    with gossiping(model, optimizer, topology=adaptive(), pattern="atc") as gossip:
        with gossip.uneven():
            for _ in range(5 if rank == 0 else 2):
                pull(model, rank)
                gossip.observe(8.0)
                optimizer.step()
        return gossip._run.team.engine.agreed_losses


# Mixers.


def tensors_of(rank: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(rank)
    kinds: list[tuple[tuple[int, ...], torch.dtype]] = [
        ((3, 5), torch.float64),
        ((), torch.float64),
        ((4, 6), torch.float32),
        ((7,), torch.complex128),
    ]
    found = [torch.randn(shape, dtype=kind, generator=generator) for shape, kind in kinds]
    found[2] = found[2].t()  # not contiguous
    return found


def flat(tensors: list[torch.Tensor]) -> list[float]:
    real = [torch.view_as_real(t) if t.is_complex() else t for t in tensors]
    return torch.cat([t.detach().double().reshape(-1) for t in real]).tolist()


def mixed(rank: int, size: int) -> Any:
    """Start, then after each of five rounds, of which the third sees changed values."""
    tensors = tensors_of(rank)
    addresses = [t.data_ptr() for t in tensors]
    found: dict[str, Any] = {"values": [flat(tensors)]}
    schedule = gossamer.schedule_from_matrices([A, B])
    with gossamer.Mixer(tensors, topology=schedule, bucket_bytes=64) as mixer:
        for k in range(5):
            if k == 2:
                for tensor in tensors:
                    tensor.add_(rank + 1)
            mixer.mix()
            found["values"].append(flat(tensors))
        found["mean"] = mixer.mean(tensors[0]).tolist()
        found["own"] = tensors[0].tolist()
        found["stats"] = {"steps": mixer.stats()["steps"], "peers": list(mixer.stats()["edges"])}
        dist.barrier()
    found["in place"] = addresses == [t.data_ptr() for t in tensors]
    found["closed"] = attempt_to(mixer.mix)
    return found


def mixer_options(rank: int, size: int) -> Any:
    found: dict[str, Any] = {}
    x = torch.full((5000,), float(rank + 1))
    with gossamer.Mixer(x, topology="ring", broadcast=True, codec="int8") as mixer:
        found["broadcast"] = x[0].item()
        x.add_(rank)
        mixer.mix()
        found["mixed"] = x[0].item()
        dist.barrier()
    y = torch.tensor([float(rank)])
    with gossamer.Mixer([y], topology=adaptive()) as mixer:
        found["no loss"] = attempt_to(mixer.mix)
        mixer.mix(1.0)
        mixer.mix(torch.tensor(1.0))
        found["adaptive"] = y.item()
        dist.barrier()
    sizes = torch.zeros(3 + rank)
    found["shapes"] = attempt_to(lambda: gossamer.Mixer(sizes, timeout_s=TIMEOUT_S))
    found["numbers"] = attempt_to(lambda: gossamer.Mixer([1.0], timeout_s=TIMEOUT_S))
    found["whole"] = attempt_to(lambda: gossamer.Mixer(torch.tensor([1]), timeout_s=TIMEOUT_S))
    column = gossamer.schedule_from_matrices([[[0.5, 0.2], [0.5, 0.8]]])
    found["column"] = attempt_to(
        lambda: gossamer.Mixer(torch.zeros(3), topology=column, timeout_s=TIMEOUT_S)
    )
    return found


def own_method() -> str:
    """The code of the guide."""
    text = (ROOT / "docs" / "methods" / "own.md").read_text()
    return next(part for part in text.split("```python\n") if "trackers" in part).split("```")[0]


def gradient_tracking(rank: int, size: int) -> Any:
    """The guide's method, and the pattern that it is."""
    model, twin = mlp(seed=rank).double(), mlp(seed=0).double()
    loader = [(batch(k, rank).double(), None) for k in range(8)]
    names = {
        "gossamer": gossamer,
        "torch": torch,
        "model": model,
        "loader": loader,
        "loss_of": lambda model, x, _: loss_of(model, x),
    }
    exec(compile(own_method(), "own.md", "exec"), names)
    optimizer = SGD(twin.parameters(), lr=0.1)
    options = {"pattern": "gradient_tracking_atc", "stagger": False}
    with gossiping(twin, optimizer, topology="ring", **options):
        for x, _ in copy.deepcopy(loader):
            optimizer.zero_grad()
            loss_of(twin, x).backward()
            optimizer.step()
    return {"own": numbers(model), "pattern": numbers(twin)}


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    "own_matrices": own_matrices,
    "other_file": other_file,
    "staggered": staggered,
    "aga": aga,
    "aga_goes_on": aga_goes_on,
    "aga_uneven": aga_uneven,
    "mixed": mixed,
    "mixer_options": mixer_options,
    "own_gradient_tracking": gradient_tracking,
}
