"""What the workers of test_gossip_devices.py do: the same training in CPU memory and on the test
device, whose copies land late."""

import copy
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import device_backend
import torch
import torch.distributed as dist
from gossip_scenarios_basic import gossiping
from gossip_scenarios_ends import attempt_to
from gossip_support import batch, difference, flat, loss_of, mlp
from schedulefree import SGDScheduleFree
from torch import nn
from torch.optim import SGD, Adam, AdamW
from torch.optim.swa_utils import AveragedModel

from gossamer import Gossip, Method, Mixer

STEPS = 9
Make = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class OwnSGD(SGD):
    """Takes its own step in CPU memory, too."""


class OwnAdamW(AdamW):
    """Likewise."""


def sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return OwnSGD(parameters, lr=0.1, momentum=0.9)


def _adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return OwnAdamW(parameters, lr=0.01, foreach=False)


def on_device(model: nn.Module, number: int = 1) -> nn.Module:
    device_backend.install()
    device_backend.seed(number)
    return model.to(device_backend.NAME)


def steps(model: nn.Module, optimizer: Any, rank: int, count: int = STEPS) -> None:
    place = next(model.parameters()).device
    for k in range(count):
        optimizer.zero_grad()
        x = batch(k, rank).to(place)
        if next(model.parameters()).dtype == torch.float64:
            x = x.double()
        loss_of(model, x).backward()
        optimizer.step()


def trained(model: nn.Module, make: Make, rank: int, **options: Any) -> nn.Module:
    optimizer = make(model.parameters())
    with gossiping(model, optimizer, bucket_bytes=128, **options):
        steps(model, optimizer, rank)
    return model.to("cpu")


def both(rank: int, size: int, make: Make = sgd, dtype: Any = torch.float64, **options: Any) -> Any:
    """How far the device's run is from that in CPU memory, for three orders of lateness."""
    here = trained(mlp().to(dtype), make, rank, **options)
    apart = []
    for number in (1, 2, 3):
        there = trained(on_device(mlp().to(dtype), number), make, rank, **options)
        apart.append(difference(there, here))
    return max(apart)


def device_ways(rank: int, size: int) -> Any:
    """By case: the largest difference to CPU memory."""
    return {
        "aer": both(rank, size),
        "ring": both(rank, size, topology="ring"),
        "complete": both(rank, size, topology="complete"),
        "one peer": both(rank, size, topology="one_peer_exponential"),
        "atc": both(rank, size, pattern="atc", topology="ring"),
        "adamw": both(rank, size, make=_adamw),
        "float32": both(rank, size, dtype=torch.float32),
        "bf16": both(rank, size, codec="bf16", dtype=torch.float32),
        "local steps": both(rank, size, topology=Method("aer:local=2")),
        "exact_diffusion": both(rank, size, topology=Method("exact_diffusion@ring:lazy")),
        "extra": both(rank, size, pattern="extra", topology="ring"),
        "not staggered": both(rank, size, stagger=False),
        "allreduce": both(rank, size, pattern="allreduce"),
        "allreduce adamw": both(rank, size, make=_adamw, pattern="allreduce"),
        "gradient_gossip": both(rank, size, pattern="gradient_gossip"),
        "gradient_gossip adamw": both(rank, size, make=_adamw, pattern="gradient_gossip"),
        "allreduce bf16": both(rank, size, pattern="allreduce", codec="bf16", dtype=torch.float32),
    }


def device_state(rank: int, size: int) -> Any:
    """How far y, z and a moving average of y are from those in CPU memory, by period."""
    found = {}
    for every in (1, 3):
        ends = []
        for number in (0, 1, 2):
            model = on_device(mlp().double(), number) if number else mlp().double()
            optimizer = SGDScheduleFree(model.parameters(), lr=0.1, foreach=False)
            optimizer.train()
            ema = AveragedModel(model, avg_fn=lambda old, new, _: 0.9 * old + 0.1 * new)
            state = {"z": every, ema: every}
            with gossiping(model, optimizer, topology="ring", mix_state=state) as gossip:
                for k in range(STEPS):
                    steps(model, optimizer, rank, 1)
                    ema.update_parameters(model)
                    if k == STEPS // 2:
                        with gossip.averaged():
                            mean = flat(ema).cpu()
            z = torch.cat([optimizer.state[p]["z"].flatten() for p in model.parameters()])
            ends.append(torch.cat([mean, flat(model).cpu(), z.cpu(), flat(ema).cpu()]))
        found[every] = max(float((end - ends[0]).abs().max()) for end in ends[1:])
    return found


def device_among_others(rank: int, size: int) -> Any:
    """Rank 0 has its parameters on the device, the others in CPU memory."""
    here = trained(mlp().double(), sgd, rank)
    model = on_device(mlp().double()) if rank == 0 else mlp().double()
    return difference(trained(model, sgd, rank), here)


def device_counts(rank: int, size: int) -> Any:
    """What a step asks of the device once the checks of the first steps are done."""
    model = on_device(mlp().double())
    optimizer = sgd(model.parameters())
    with gossiping(model, optimizer, topology="ring", bucket_bytes=1 << 20):
        steps(model, optimizer, rank, 14)
        inputs = [batch(k, rank).double().to(device_backend.NAME) for k in range(10)]
        device_backend.counts()
        for x in inputs:
            optimizer.zero_grad()
            loss_of(model, x).backward()
            optimizer.step()
        found = device_backend.counts()
    return {**found, "parameters": sum(p.numel() for p in model.parameters())}


def device_average(rank: int, size: int) -> Any:
    """averaged(), disagreement(), and the local values back, beside those in CPU memory."""
    found = []
    for model in (mlp().double(), on_device(mlp().double())):
        optimizer = sgd(model.parameters())
        with gossiping(model, optimizer, topology="ring") as gossip:
            steps(model, optimizer, rank)
            local = flat(copy.deepcopy(model).to("cpu"))
            apart = gossip.disagreement()
            with gossip.averaged():
                mean = flat(copy.deepcopy(model).to("cpu"))
            back = flat(copy.deepcopy(model).to("cpu"))
            steps(model, optimizer, rank, 3)
            found.append((local, mean, back, flat(copy.deepcopy(model).to("cpu")), apart))
    (a, b) = found
    gaps = [float((x - y).abs().max()) for x, y in zip(a[:4], b[:4], strict=True)]
    return {
        "gaps": gaps,
        "back": float((b[0] - b[2]).abs().max()),
        "apart": [a[4], b[4]],
        "means": b[1].tolist(),
    }


def device_other_stream(rank: int, size: int) -> Any:
    """disagreement() in the stream of the steps and in another one."""
    model = on_device(mlp().double())
    optimizer = sgd(model.parameters())
    with gossiping(model, optimizer, topology="ring") as gossip:
        steps(model, optimizer, rank)
        here = gossip.disagreement()
        with torch.Stream(device_backend.NAME):
            return [here, gossip.disagreement()]


def device_saved(rank: int, size: int) -> Any:
    """Saved after some steps and loaded into a new model, training goes on with the same bits."""
    names = [tempfile.mkdtemp()]
    dist.broadcast_object_list(names)
    folder = Path(names[0])
    model = on_device(mlp().double())
    optimizer = sgd(model.parameters())
    with gossiping(model, optimizer) as gossip:
        steps(model, optimizer, rank)
        gossip.save(folder)
        steps(model, optimizer, rank)
    again = on_device(mlp(seed=5).double(), 7)
    optimizer = sgd(again.parameters())
    with gossiping(again, optimizer) as gossip:
        gossip.load(folder)
        steps(again, optimizer, rank)
    return difference(again.to("cpu"), model.to("cpu"))


def _set_by_hand(model: nn.Module, optimizer: Any, gossip: Gossip, rank: int) -> None:
    with torch.no_grad():
        model[0].weight.mul_(0.5)


def _freeze_and_thaw(model: nn.Module, optimizer: Any, gossip: Gossip, rank: int) -> None:
    model[0].bias.requires_grad_(False)
    steps(model, optimizer, rank, 2)
    model[0].bias.requires_grad_(True)


def device_edits(rank: int, size: int) -> Any:
    """By what is done between steps: the largest difference to CPU memory."""
    found = {}
    for edit in (_set_by_hand, _freeze_and_thaw):
        ends = []
        for model in (mlp().double(), on_device(mlp().double())):
            optimizer = sgd(model.parameters())
            with gossiping(model, optimizer, topology="ring") as gossip:
                steps(model, optimizer, rank, 3)
                edit(model, optimizer, gossip, rank)
                steps(model, optimizer, rank, 3)
            ends.append(model.to("cpu"))
        found[edit.__name__] = difference(ends[1], ends[0])
    return found


def _accumulate(model: nn.Module, optimizer: Any, gossip: Gossip, rank: int) -> None:
    x = batch(11, rank).double().to(next(model.parameters()).device)
    with gossip.no_sync():
        loss_of(model, x).backward()
    loss_of(model, 2 * x).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()


def _train_unlike_parts(model: nn.Module, optimizer: Any, gossip: Gossip, rank: int) -> None:
    """Rank 0 trains all, the others one layer; the mean counts zeros for them."""
    optimizer.zero_grad()
    inputs = model[2].in_features
    x = batch(12, rank, inputs=model[0].in_features if rank == 0 else inputs)
    x = x.double().to(next(model.parameters()).device)
    (model if rank == 0 else model[2])(x).square().mean().backward()
    optimizer.step()


def _assign(model: nn.Module, optimizer: Any, gossip: Gossip, rank: int) -> None:
    for p in model.parameters():
        p.grad = torch.full_like(p, 0.1 * rank)
    optimizer.step()


def device_gradients(rank: int, size: int) -> Any:
    """By what is done between steps that average gradients: the largest difference to CPU memory,
    and to another worker's parameters."""
    found = {}
    for edit in (_accumulate, _train_unlike_parts, _assign, _freeze_and_thaw):
        ends = []
        for model in (mlp().double(), on_device(mlp().double())):
            optimizer = sgd(model.parameters())
            options = {"pattern": "allreduce", "bucket_bytes": 128}
            with gossiping(model, optimizer, **options) as gossip:
                steps(model, optimizer, rank, 3)
                edit(model, optimizer, gossip, rank)
                steps(model, optimizer, rank, 3)
                apart = gossip.disagreement()
            ends.append(model.to("cpu"))
        found[edit.__name__] = max(difference(ends[1], ends[0]), apart)
    return found


def device_uneven(rank: int, size: int) -> Any:
    """The steps that were done where each worker has another number of batches."""
    model = on_device(mlp().double())
    optimizer = sgd(model.parameters())
    with gossiping(model, optimizer, topology="ring") as gossip:
        with gossip.uneven():
            steps(model, optimizer, rank, 2 + rank)
        steps(model, optimizer, rank, 2)
        done = gossip.last_step.step if gossip.last_step else 0
    return {"steps": done, "finite": bool(flat(model.to("cpu")).isfinite().all())}


def device_late(rank: int, size: int) -> Any:
    """Workers that skip late neighbours, all of them or one on the device: what they end with."""
    ends = []
    for everybody in (True, False):
        model = mlp().double()
        if everybody or rank == 0:
            model = on_device(model)
        optimizer = sgd(model.parameters())
        with gossiping(model, optimizer, topology="ring", late="skip", staleness=2) as gossip:
            steps(model, optimizer, rank)
            ends.append(gossip.disagreement())
    return ends


def device_not_finite(rank: int, size: int) -> Any:
    """A gradient that is not finite is refused in the next step, by name."""
    model = on_device(mlp().double())
    optimizer = sgd(model.parameters())

    def train() -> None:
        with gossiping(model, optimizer, check_payloads=False):
            for k in range(9):
                steps(model, optimizer, rank, 1)
                if k == 1:
                    for p in model.parameters():
                        assert p.grad is not None
                    model[2].weight.grad.fill_(float("nan"))
                    optimizer.step()
            torch.accelerator.synchronize()

    return attempt_to(train)


def device_refusals(rank: int, size: int) -> Any:
    """By case: how Gossip refuses it."""

    def gossip(model: nn.Module, **options: Any) -> Callable[[], Any]:
        return lambda: Gossip(model, Adam(model.parameters()), **options)

    device_backend.install()
    odd = on_device(nn.Sequential(nn.Linear(3, 3, dtype=torch.complex64)))
    split = mlp()
    split[2].to(device_backend.NAME)
    return {
        "gradient_tracking": attempt_to(gossip(on_device(mlp()), pattern="gradient_tracking")),
        "complex": attempt_to(gossip(odd)),
        "split": attempt_to(gossip(split)),
    }


def device_mixer(rank: int, size: int) -> Any:
    """Tensors of several types and devices, mixed to the mean."""
    place = device_backend.NAME
    device_backend.install()
    cases = {
        "float32": [torch.full((5, 3), float(rank), device=place)],
        "half": [torch.full((7,), float(rank), dtype=torch.float16).to(place)],
        "complex": [torch.full((4,), complex(rank, -rank)).to(place)],
        "gaps": [torch.full((6, 6), float(rank)).to(place)[:, ::2]],
        "two places": [torch.full((3,), float(rank)), torch.full((3,), float(rank)).to(place)],
    }
    found = {}
    for name, tensors in cases.items():
        with Mixer(tensors, topology="complete") as mixer:
            mixer.mix()
            dist.barrier()
        values = torch.cat([torch.view_as_real(t.cpu() + 0j).flatten() for t in tensors])
        found[name] = sorted(set(values.tolist()))
    return found


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    "device_ways": device_ways,
    "device_state": device_state,
    "device_among_others": device_among_others,
    "device_counts": device_counts,
    "device_average": device_average,
    "device_saved": device_saved,
    "device_other_stream": device_other_stream,
    "device_edits": device_edits,
    "device_gradients": device_gradients,
    "device_uneven": device_uneven,
    "device_late": device_late,
    "device_refusals": device_refusals,
    "device_mixer": device_mixer,
    "device_not_finite": device_not_finite,
}
