"""What the workers of the Gossip tests do: collective methods on which they must agree."""

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from gossip_scenarios_ends import attempt_to
from gossip_support import batch, loss_of, mlp, train
from torch import nn
from torch.optim import SGD, Adam
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import gossamer
from gossamer import Gossip
from gossamer.workers import roll_call

PATIENT_S = 60.0  # far longer than the test: whatever waits for it is seen by what it says
METHODS: dict[str, Callable[[Gossip, str], Any]] = {
    "averaged()": lambda gossip, _: gossip.averaged().__enter__(),
    "disagreement()": lambda gossip, _: gossip.disagreement(),
    "mean()": lambda gossip, _: gossip.mean([torch.ones(2)]),
    "save()": lambda gossip, folder: gossip.save(folder),
    "load()": lambda gossip, folder: gossip.load(folder),
}


@contextmanager
def open_until_all_are_done(
    model: nn.Module, optimizer: torch.optim.Optimizer, **options: Any
) -> Iterator[Gossip]:
    """Nobody closes while others still find out."""
    gossip = Gossip(model, optimizer, **{"timeout_s": PATIENT_S, **options})
    try:
        yield gossip
    finally:
        dist.barrier()
        gossip.close()


def shared_folder() -> str:
    made: list[Any] = [tempfile.mkdtemp() if dist.get_rank() == 0 else ""]
    dist.broadcast_object_list(made)
    return str(made[0])


def unequal_steps(rank: int, size: int) -> Any:
    """By pattern, transport, method and steps more on the last rank: how both fail."""
    found = {}
    kinds = [("cwa", "net"), ("atc", "net"), ("allreduce", "net"), ("cwa", "c10d")]
    for (pattern, transport), method in itertools.product(kinds, METHODS):
        if (pattern, transport) != ("cwa", "net") and method != "averaged()":
            continue
        for more in (1, 2):
            model, folder = mlp(), shared_folder()
            optimizer = SGD(model.parameters(), lr=0.1)
            options = {"pattern": pattern, "transport": transport}
            with open_until_all_are_done(model, optimizer, **options) as gossip:
                gossip.save(folder)

                def act() -> None:
                    train(model, optimizer, range(3 + more * rank), rank)  # noqa: B023
                    METHODS[method](gossip, folder)  # noqa: B023

                found[f"{pattern} {transport} {method} {more}"] = attempt_to(act)
    return found


def another_method(rank: int, size: int) -> Any:
    """One rank calls another method than the other; then both train on."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    with open_until_all_are_done(model, optimizer) as gossip:
        train(model, optimizer, range(2), rank)
        found = attempt_to(gossip.disagreement if rank else lambda: gossip.mean(torch.ones(1)))
        train(model, optimizer, range(2, 4), rank)
        return {**found, "later": gossip.mean(torch.tensor(float(rank))).item()}


def loaded_on_one(rank: int, size: int) -> Any:
    """Rank 0 alone loads a state."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    with open_until_all_are_done(model, optimizer):
        train(model, optimizer, range(2), rank)
        if rank == 0:
            model.load_state_dict(model.state_dict())
        return attempt_to(lambda: train(model, optimizer, range(2, 6), rank))


def without_groups(rank: int, size: int) -> Any:
    """The last scenario: steps, the average and a checkpoint after the process groups have gone."""
    model, folder = mlp(), shared_folder()
    optimizer = SGD(model.parameters(), lr=0.1)
    gossip = Gossip(model, optimizer, timeout_s=PATIENT_S)
    dist.destroy_process_group()
    train(model, optimizer, range(2), rank)
    gossip.save(folder)
    gossip.load(folder)
    steps = gossip.stats()["steps"]
    gossip.disagreement()
    gossip.close()
    return steps


def caches(rank: int, size: int) -> Any:
    """A buffer of another size per rank; it is made equal, and all goes on."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    with open_until_all_are_done(model, optimizer) as gossip:
        model[0].register_buffer("cache", torch.zeros(2 + rank, 3), persistent=False)
        found = attempt_to(lambda: gossip.averaged().__enter__())
        model[0].cache = torch.full((2, 3), float(rank))
        train(model, optimizer, range(2), rank)
        with gossip.averaged():
            found["mean"] = model[0].cache.mean().item()
        return found


def late(rank: int, size: int) -> Any:
    """Rank 1 comes to averaged() when rank 0 has said that it waits, and the next time not."""
    store = dist.distributed_c10d._get_default_store()
    said = roll_call.say_waiting

    def say_and_tell(*arguments: Any) -> None:
        said(*arguments)
        store.set("agree/said", "")

    roll_call.say_waiting, roll_call._PATIENCE_S = say_and_tell, 0.05
    model = mlp()
    try:
        with open_until_all_are_done(model, SGD(model.parameters(), lr=0.1)) as gossip:
            if rank == 1:
                store.wait(["agree/said"], timedelta(seconds=PATIENT_S))
            with gossip.averaged():
                pass
    finally:
        roll_call.say_waiting, roll_call._PATIENCE_S = said, 10.0
    with open_until_all_are_done(model, SGD(model.parameters(), lr=0.1), timeout_s=0.5) as gossip:
        found = {} if rank else attempt_to(lambda: gossip.averaged().__enter__())
        dist.barrier()
        return found


# Tensors of any kind.


class Quantised(torch.Tensor):
    """A wrapper that has its values in other tensors, and no memory of its own."""

    data_: torch.Tensor
    scale: torch.Tensor

    @staticmethod
    def __new__(cls, data: torch.Tensor, scale: torch.Tensor) -> "Quantised":
        made = torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=torch.float32)
        made.data_, made.scale = data, scale
        return made

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.ops.aten.detach.default:
            return cls(args[0].data_, args[0].scale)
        raise NotImplementedError(str(function))


class Flattened(Quantised):
    """One that names them, as torch's own kind does."""

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["data_", "scale"], None


class Opaque(Quantised):
    """One that keeps them where nobody finds them."""

    @staticmethod
    def __new__(cls, data: torch.Tensor, scale: torch.Tensor) -> "Opaque":
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=torch.float32)

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return cls(torch.ones(3), torch.ones(1))


def frozen(kind: type[Quantised], value: int) -> nn.Parameter:
    data = torch.full((3,), value, dtype=torch.int8)
    return nn.Parameter(kind(data, torch.full((1,), float(value))), requires_grad=False)


def odd_model(value: float) -> nn.Module:
    model: Any = mlp()
    model.quantised, model.flattened = frozen(Quantised, int(value)), frozen(Flattened, int(value))
    ones = torch.ones(3)
    kinds = {
        "expanded": (value * torch.ones(4)).expand(3, 4),
        "windows": (torch.arange(6.0) * value).unfold(0, 3, 1),
        "sparse": (value * torch.eye(3)).to_sparse(),
        "csr": (value * torch.eye(3)).to_sparse_csr(),
        "fp8": (value * ones).to(torch.float8_e4m3fn),
        "scalar": torch.tensor(value),
        "whole": torch.tensor(int(value)),
    }
    for name, buffer in kinds.items():
        model.register_buffer(name, buffer)
    return model


def odd_values(model: Any) -> dict[str, Any]:
    names = "expanded windows sparse csr fp8 scalar whole".split()
    found = {n: getattr(model, n).to_dense().float().mean().item() for n in names[2:4]}
    found |= {n: getattr(model, n).float().mean().item() for n in names if n not in found}
    for name in ("quantised", "flattened"):
        weight = getattr(model, name)
        found |= {name: weight.data_[0].item(), f"{name} scale": weight.scale.item()}
    return found


def odd_tensors(rank: int, size: int) -> Any:
    """Values after the start, in averaged() after rank 1 has changed its own, after it, and loaded
    from a checkpoint."""
    model: Any = odd_model(1.0 + rank)
    optimizer = SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    folder = shared_folder()
    with open_until_all_are_done(model, optimizer) as gossip, torch.no_grad():
        found = {"start": odd_values(model)}
        gossip.save(folder)
        for tensor in (model.expanded[:1], model.sparse._values(), model.csr.values()):
            tensor.fill_(1.0 + 2 * rank)
        model.scalar.fill_(1.0 + 2 * rank)
        with gossip.averaged():
            found["mean"] = odd_values(model)
        found["after"] = odd_values(model)
        gossip.load(folder)
        found["loaded"] = odd_values(model)
    return found


def odd_refused(rank: int, size: int) -> Any:
    """By case: what Gossip says."""

    def attempt(name: str, tensor: torch.Tensor) -> dict[str, Any]:
        model = mlp()
        if isinstance(tensor, nn.Parameter):
            model.register_parameter(name, tensor)
        else:
            model.register_buffer(name, tensor)
        trained = [p for p in model.parameters() if p.requires_grad]
        return attempt_to(lambda: Gossip(model, SGD(trained, lr=0.1), timeout_s=PATIENT_S).close())

    sparse = torch.eye(3) if rank else torch.ones(3, 3)
    return {
        "opaque": attempt("opaque", frozen(Opaque, 1)),
        "sparse": attempt("adjacency", sparse.to_sparse()),
    }


# Moving averages.


def moving_average(rank: int, size: int) -> Any:
    """An EMA beside the model: its weights and count outside, inside and after averaged()."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    loose = torch.full((2,), float(rank))
    with open_until_all_are_done(model, optimizer) as gossip:
        ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.5))
        for step in range(3):
            train(model, optimizer, [step], rank)
            ema.update_parameters(model)
        found: dict[str, Any] = {"before": _numbers(ema.module)}
        with gossip.averaged(also=[ema, loose]):
            found |= {"inside": _numbers(ema.module), "loose": loose.tolist()}
            found["count"] = int(ema.n_averaged)
        found["after"] = _numbers(ema.module)
        found["loose after"] = loose.tolist()
        other = mlp(hidden=7 + rank)
        found["refused"] = attempt_to(lambda: gossip.averaged(also=other).__enter__())
        return found


def _numbers(model: nn.Module) -> list[float]:
    return torch.cat([p.detach().double().flatten() for p in model.parameters()]).tolist()


# Several models with unequal numbers of batches, and metrics.


def uneven_two(rank: int, size: int) -> Any:
    """Two models that step unequally often; then the ways that are refused."""
    models = [mlp(seed) for seed in (0, 1)]
    optimizers = [SGD(models[0].parameters(), lr=0.1), Adam(models[1].parameters(), lr=0.01)]
    found: dict[str, Any] = {}
    with (
        open_until_all_are_done(models[0], optimizers[0]) as a,
        open_until_all_are_done(models[1], optimizers[1], pattern="atc") as b,
    ):
        for epoch in range(2):
            with gossamer.uneven(a, b):
                for step in range(1 + 4 * (rank + epoch) % 7):
                    train(models[0], optimizers[0], [step], rank)
                    train(models[1], optimizers[1], [2 * step, 2 * step + 1], rank)
        found["steps"] = [a.stats()["steps"], b.stats()["steps"]]
        found["apart"] = [a.disagreement(), b.disagreement()]

        def nested() -> None:
            with a.uneven(), b.uneven():
                pass

        found["nested"] = attempt_to(nested)
    return found


def metrics(rank: int, size: int) -> Any:
    """The folder with the lines of a run that was saved, went on, and was loaded."""
    model, folder = mlp(), shared_folder()
    optimizer = SGD(model.parameters(), lr=0.1)
    checkpoint, lines = str(Path(folder) / "checkpoint"), str(Path(folder) / "metrics")
    with open_until_all_are_done(model, optimizer, metrics=lines) as gossip:
        for step in range(3):
            optimizer.zero_grad()
            loss = loss_of(model, batch(step, rank))
            loss.backward()
            gossip.log(loss=loss)
            optimizer.step()
            if step == 1:
                with gossip.averaged():
                    gossip.log(val_loss=2.5, accuracy=float("nan"))
                gossip.save(checkpoint)
        gossip.load(checkpoint)
        train(model, optimizer, [2], rank)
        gossip.disagreement()
    dist.barrier()
    path = Path(lines) / f"metrics.rank{rank}.jsonl"
    return {"folder": lines, "lines": [json.loads(line) for line in path.read_text().splitlines()]}


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    f"agree_{function.__name__}": function
    for function in (
        unequal_steps,
        another_method,
        loaded_on_one,
        caches,
        late,
        odd_tensors,
        odd_refused,
        moving_average,
        uneven_two,
        metrics,
        without_groups,
    )
}
