"""Whether a contender computed what it should, where worker r's gradient is r + 1 everywhere."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from contenders import LR
from methods import Contender, Mixing
from sleeping_model import SleepingModel
from torch.distributed.tensor import DTensor

if TYPE_CHECKING:
    from gossamer import Schedule

SAMPLES = 64  # of a layer, compared across the workers
ROUNDS_TRIED = 64  # of a schedule without a period


def complaint(
    model: SleepingModel,
    contender: Contender,
    mixing: Mixing | None,
    workers_per_host: Sequence[int],
    steps: int,
) -> str:
    """What is wrong with this worker's parameters after `steps` steps; empty if nothing.
    Collective."""
    size = dist.get_world_size()
    exact = -LR * steps * (size + 1) / 2
    said = [_of_the_mean(model, contender, exact)]
    if mixing is not None and mixing.recursion_error is not None:
        tolerance = mixing.recursion_error * abs(exact)
        said.append(_of_the_mixing(model, mixing.schedule(workers_per_host), steps, tolerance))
    return "; ".join(filter(None, said))


def local_of(parameter: torch.Tensor) -> torch.Tensor:
    """What this worker holds of it."""
    values = parameter.detach()
    return values.to_local() if isinstance(values, DTensor) else values


def _of_the_mean(model: SleepingModel, contender: Contender, exact: float) -> str:
    """The mean over the workers must have moved by the mean of all workers' gradients."""
    if contender.mean_error == float("inf"):
        return ""
    flat = [local_of(parameter).flatten() for parameter in model.parameters()]
    ends = torch.stack([torch.stack([x[0], x[-1], x.mean()]) for x in flat])
    table = torch.stack(_from_all(ends)).double()
    error = float((table.mean(0) / exact - 1).abs().max())
    if error > contender.mean_error:
        return f"the mean over the workers is off by {error:.2g} of what it should be"
    spread = float((table.max(0).values - table.min(0).values).max()) / abs(exact)
    if contender.is_synchronous and spread > contender.mean_error:
        return f"workers that should be equal differ by {spread:.2g} of their mean"
    return ""


def _of_the_mixing(
    model: SleepingModel,
    schedule: "Schedule",
    steps: int,
    tolerance: float,
) -> str:
    """Every element must have followed x ← W x - lr g from one of the rounds, and the same element
    from the same round on all workers: bucket b uses round t + b."""
    expected = _recursions(schedule, steps)
    rank = dist.get_rank()
    for layer, parameter in enumerate(model.parameters()):
        values = local_of(parameter).flatten().double()
        gaps = (values - expected[:, rank, None]).abs().min(0).values
        if float(gaps.max()) > tolerance:
            return f"layer {layer} is off the recursion by {float(gaps.max()):.2g}"
        samples = values[:: max(1, len(values) // SAMPLES)]
        table = torch.stack(_from_all(samples))
        apart = (table - expected[:, :, None]).abs().amax(1).min(0).values
        if float(apart.max()) > tolerance:
            return f"layer {layer} follows different rounds on different workers"
    return ""


def _recursions(schedule: "Schedule", steps: int) -> torch.Tensor:
    """What worker j has after `steps` steps that began with round s, for all (s, j)."""
    shifts = schedule.period or ROUNDS_TRIED
    matrices = [
        torch.tensor(schedule.matrix(t), dtype=torch.float64) for t in range(shifts + steps)
    ]
    gradient = torch.arange(1, schedule.workers + 1, dtype=torch.float64)
    found = []
    for shift in range(shifts):
        x = torch.zeros_like(gradient)
        for step in range(steps):
            x = matrices[shift + step] @ x - LR * gradient
        found.append(x)
    return torch.stack(found)


def _from_all(mine: torch.Tensor) -> list[torch.Tensor]:
    found = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(found, mine.contiguous())
    return found
