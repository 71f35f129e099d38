"""What the workers of the Gossip tests do: scenarios that all ranks finish."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from gossip_support import batch, difference, flat, loss_of, mlp, train
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, Adam, RMSprop

import gossamer
from gossamer import Gossip

TIMEOUT_S = 60.0
LR = 0.1


@contextmanager
def gossiping(
    model: nn.Module,
    optimizer: torch.optim.Optimizer | list[torch.optim.Optimizer],
    **options: Any,
) -> Iterator[Gossip]:
    with Gossip(model, optimizer, timeout_s=TIMEOUT_S, **options) as gossip:
        yield gossip
        dist.barrier()  # nobody closes while others step


def numbers(model: nn.Module) -> list[float]:
    return flat(model).tolist()


class Normed(nn.Module):
    """With buffers, a frozen parameter of the optimizer's and one that it does not have."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(5, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 3)
        self.frozen = nn.Parameter(torch.randn(3), requires_grad=False)
        self.register_buffer("counts", torch.tensor([seed, 7]))
        self.norm.running_mean.fill_(seed)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.layer(x))) + self.frozen


def buffers(model: nn.Module) -> dict[str, list[float]]:
    return {name: b.double().flatten().tolist() for name, b in model.named_buffers()}


def start_values(rank: int, size: int) -> Any:
    model = Normed(seed=rank)
    trained = [p for name, p in model.named_parameters() if name != "frozen"]
    with gossiping(model, SGD(trained, lr=LR), topology="ring"):
        return {"parameters": numbers(model), "buffers": buffers(model)}


def big_batch(rank: int, size: int) -> Any:
    """By optimizer: the parameters at the end, and how far DDP's are away from them."""
    found = {}
    for name, make in {
        "sgd": lambda p: SGD(p, lr=LR),
        "momentum": lambda p: SGD(p, lr=LR, momentum=0.9, weight_decay=0.01),
        "adam": lambda p: Adam(p, lr=0.01),
    }.items():
        model = mlp(seed=rank)
        optimizer = make(model.parameters())
        with gossiping(model, optimizer, topology="complete", pattern="atc"):
            parallel = DistributedDataParallel(copy.deepcopy(model))
            train(model, optimizer, range(20), rank)
            train(parallel, make(parallel.parameters()), range(20), rank)
            found[name] = {
                "parameters": numbers(model),
                "from_ddp": difference(model, parallel.module),
            }
    return found


def worker_mean(rank: int, size: int) -> Any:
    """For each of some steps: parameters before, gradient, parameters after."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=LR)
    steps = []
    with gossiping(model, optimizer, topology="ring", bucket_bytes=64):
        for step in range(6):
            optimizer.zero_grad()
            loss_of(model, batch(step, rank)).backward()
            before, grad = flat(model), torch.cat([p.grad.flatten() for p in model.parameters()])
            optimizer.step()
            steps.append({"x": before.tolist(), "g": grad.tolist(), "next": flat(model).tolist()})
    return steps


def topologies(rank: int, size: int) -> Any:
    """By name: values after three steps that only mix, or the error; the start is the rank."""
    found: dict[str, Any] = {}
    for name in gossamer.topology_names():
        model = nn.Linear(40, 10)
        optimizer = SGD(model.parameters(), lr=0.0)
        try:
            with gossiping(model, optimizer, topology=name, bucket_bytes=512) as gossip:
                state = {k: torch.full_like(v, rank + 1.0) for k, v in model.state_dict().items()}
                model.load_state_dict(state)
                for _ in range(3):
                    optimizer.step()
                found[name] = {"x": numbers(model), "edges": len(gossip.stats()["edges"])}
        except ValueError as error:
            found[name] = {"error": str(error)}
    return found


def averaged(rank: int, size: int) -> Any:
    found = {}
    for kind in ("averaged", "local"):
        model = Normed(seed=0)
        optimizer = SGD([p for p in model.parameters() if p.requires_grad], lr=LR)
        with gossiping(model, optimizer, topology="ring", buffers=kind) as gossip:
            train(model, optimizer, range(5), rank)
            local, local_buffers = numbers(model), buffers(model)
            apart = gossip.disagreement()
            with gossip.averaged() as average:
                mean, mean_buffers = numbers(average), buffers(average)
            restored = numbers(model) == local and buffers(model) == local_buffers
            train(model, optimizer, range(5, 7), rank)
            found[kind] = {
                "local": local,
                "mean": mean,
                "buffers": local_buffers,
                "mean_buffers": mean_buffers,
                "restored": restored,
                "disagreement": apart,
                "steps": gossip.stats()["steps"],
            }
    return found


class Low(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.low = nn.Linear(5, 4).bfloat16()
        self.single = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.single(self.low(x.bfloat16()).float())


def own_step(rank: int, size: int) -> Any:
    """By pattern and model: the parameters after some steps with RMSprop."""
    found = {}
    for pattern in ("cwa", "atc"):
        for name, make in (("single", mlp), ("low", Low)):
            model = make()
            optimizer = RMSprop(model.parameters(), lr=0.01)
            with gossiping(model, optimizer, topology="complete", pattern=pattern) as gossip:
                train(model, optimizer, range(5), rank)
                found[f"{pattern} {name}"] = numbers(model)
                assert not gossip.is_fused
    return found


def overflow(rank: int, size: int) -> Any:
    """Rank 1's gradients overflow in step 1. By pattern and step: x, g (unscaled), the next x."""
    found = {}
    for pattern in ("cwa", "atc"):
        model = mlp()
        optimizer = SGD(model.parameters(), lr=LR)
        scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
        steps = []
        with gossiping(model, optimizer, topology="complete", pattern=pattern, bucket_bytes=64):
            for step in range(3):
                optimizer.zero_grad()
                scaler.scale(loss_of(model, batch(step, rank))).backward()
                g = torch.cat([p.grad.flatten() for p in model.parameters()]) / scaler.get_scale()
                if rank == 1 and step == 1:
                    model[0].bias.grad[0] = float("inf")
                    g.zero_()  # what counts of it
                before = flat(model)
                scaler.step(optimizer)
                scaler.update()
                steps.append({"x": before.tolist(), "g": g.tolist(), "next": numbers(model)})
        found[pattern] = {"steps": steps, "scale": scaler.get_scale()}
    return found


def groups_and_ddp(rank: int, size: int) -> Any:
    """DDP over (0, 1) and (2, 3), Gossip over (0, 2) and (1, 3)."""
    inner = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
    outer = [dist.new_group([0, 2]), dist.new_group([1, 3])][rank % 2]
    model = DistributedDataParallel(mlp(seed=rank), process_group=inner)
    optimizer = SGD(model.parameters(), lr=LR, momentum=0.9)
    found: dict[str, Any] = {}
    with gossiping(model, optimizer, topology="ring", group=outer) as gossip:
        train(model, optimizer, range(10), rank)
        found["local"] = numbers(model)
        with gossip.averaged() as average:
            found["mean"] = numbers(average)
    try:
        Gossip(mlp(), SGD(mlp().parameters(), lr=LR), group=dist.new_group([0, 1]))
    except ValueError as error:
        found["error"] = str(error)
    return found


def added_group(rank: int, size: int) -> Any:
    """Parameters added in mid-run: who has what before and after."""
    model = mlp(seed=0)
    extra = nn.Parameter(torch.full((6,), float(rank)))
    optimizer = SGD(model.parameters(), lr=LR)
    with gossiping(model, optimizer, topology="complete") as gossip:
        train(model, optimizer, range(3), rank)
        before = numbers(model)
        model.register_parameter("extra", extra)
        optimizer.add_param_group({"params": [extra]})
        optimizer.zero_grad()
        optimizer.step()
        return {
            "before": before,
            "after": numbers(model),
            "extra": extra.tolist(),
            "steps": gossip.stats()["steps"],
        }


def loaded(rank: int, size: int) -> Any:
    """A state_dict loaded into the model in mid-run; then only mixing."""
    model = mlp(seed=0)
    optimizer = SGD(model.parameters(), lr=LR)
    with gossiping(model, optimizer, topology="complete"):
        train(model, optimizer, range(3), rank)
        model.load_state_dict(mlp(seed=5 + rank).state_dict())
        optimizer.zero_grad()
        optimizer.step()
        return numbers(model)


def unused_on_one(rank: int, size: int) -> Any:
    """Rank 1 never uses the last layer. The layer's values and how often it was updated."""
    model = mlp(seed=0)
    optimizer = Adam(model.parameters(), lr=0.01)
    with gossiping(model, optimizer, topology="complete"):
        for step in range(4):
            optimizer.zero_grad()
            out = model[:2](batch(step, rank))
            (out if rank == 1 else model[2](out)).square().mean().backward()
            optimizer.step()
        entry = optimizer.state.get(model[2].bias)
        return {"bias": model[2].bias.tolist(), "updates": int(entry["step"]) if entry else 0}


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function
    for function in (
        start_values,
        big_batch,
        worker_mean,
        topologies,
        averaged,
        own_step,
        overflow,
        groups_and_ddp,
        added_group,
        loaded,
        unused_on_one,
    )
}
