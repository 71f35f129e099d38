"""One worker of the training comparison; run.py starts it in its host."""

import argparse
import json
import math
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("bench/cluster", "bench/python", "examples", "examples/gpt", "tools")
sys.path += [str(ROOT / place) for place in PLACES]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from contenders import CONTENDERS, Contender  # noqa: E402
from curves import Point, rate_factor  # noqa: E402
from measures import (  # noqa: E402
    all_reduce_s,
    disagreement,
    largest,
    total,
    trouble,
    validation_loss,
    workers_are_equal,
)
from methods import Contender as Training  # noqa: E402
from methods import Job  # noqa: E402
from models import loss_of  # noqa: E402
from pacing import pace  # noqa: E402
from settings import Setting  # noqa: E402
from sleeping_model import Clockwork, Pace  # noqa: E402
from tasks import make_model, own_optimizers, stages_of  # noqa: E402
from text_data import load, windows  # noqa: E402
from torch.optim.lr_scheduler import LambdaLR  # noqa: E402
from worker_side import cpu_s, guarded, host_number, leave, link_bytes  # noqa: E402


@dataclass
class Clock:
    """What this worker has done so far; validations and waiting for others there are left out."""

    steps: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    sent_bytes: int = 0
    ahead: float = 0.0  # of the mean worker, when steps were last compared
    losses: list[float] = field(default_factory=list)  # of this worker's own batches


def make_job(
    setting: Setting, row: Contender, lr: float, text: torch.Tensor, seed: int, clock: Clock
) -> Job:
    """Model, batches and rates, which are the same for all contenders; paced as this worker is."""
    rank = dist.get_rank()
    torch.manual_seed(seed)
    model = make_model(setting)
    factor = setting.factors[rank] if setting.factors else 1.0
    pace(model, stages_of(model), Clockwork(Pace(setting.compute_s, factor=factor)))
    own = torch.Generator().manual_seed(1000 * seed + rank)

    def loss(wrapped: torch.nn.Module) -> torch.Tensor:
        found = loss_of(wrapped, windows(text, setting.batch, setting.length, own))
        clock.losses.append(found.item())
        return found

    def factor_after(steps: int) -> float:
        return rate_factor(max(0, round(steps - clock.ahead)), setting.warm_up)

    return Job(
        model,
        loss,
        lambda tensors: own_optimizers(model, lr) or row.optimizer(tensors, lr),
        lambda optimizer: LambdaLR(optimizer, factor_after),
    )


def train_for(training: Training, clock: Clock, steps: int, seconds: float) -> None:
    """That many steps, or as many as are begun within so many seconds."""
    dist.barrier()
    begin, cpu, sent = time.perf_counter(), cpu_s(), link_bytes()[0]
    last = clock.steps + steps
    while clock.steps < last and time.perf_counter() - begin < seconds:
        training.step()
        clock.steps += 1
    clock.seconds += time.perf_counter() - begin
    clock.cpu_s += cpu_s() - cpu
    clock.sent_bytes += link_bytes()[0] - sent


def train(
    setting: Setting,
    training: Training,
    validate,
    clock: Clock,
    *,
    target: float,
    by_time: bool,
) -> list[Point]:
    """The curve, until all `steps` are done and `target` is reached, or the longest time is over.

    `by_time`: workers step as often as they can, so between validations they train equally long.
    """
    curve = [Point(0.0, 0.0, validate())]
    while True:
        if by_time:
            train_for(training, clock, sys.maxsize, setting.every * setting.compute_s)
        else:
            train_for(training, clock, setting.every, math.inf)
        seconds, steps = largest(clock.seconds), total(clock.steps) / dist.get_world_size()
        clock.ahead = clock.steps - steps
        with training.averaged():
            loss = validate()
        curve.append(Point(steps, seconds, loss))
        if dist.get_rank() == 0:
            print(f"{steps:.1f} steps, {seconds:.1f} s: {loss:.4f}", flush=True)
        enough = setting.steps * (1.0 if loss <= target else setting.longest)
        if not math.isfinite(loss) or steps >= enough:
            return curve


def complaint(clock: Clock, curve: list[Point], is_equal: bool, is_synchronous: bool) -> str:
    """What is wrong with the training of this worker; empty if nothing."""
    losses = [*clock.losses, *(point.loss for point in curve)]
    if said := trouble(losses, curve[0].loss, curve[-1].loss):
        return said
    if is_synchronous and not is_equal:
        return "workers that should have equal bits do not"
    if not is_synchronous and is_equal and dist.get_world_size() > 1:
        return "all workers have equal bits: this is not what it is said to be"
    return ""


def work(arguments: argparse.Namespace) -> None:
    """Trains, checks, and leaves what was found in the file of the rank, or of all of them."""
    setting = Setting(**json.loads(arguments.setting))
    row, clock = CONTENDERS[arguments.contender], Clock()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    text, held_back = load(arguments.text)
    held_back = held_back[: setting.validated]
    job = make_job(setting, row, arguments.lr or row.lr, text, arguments.seed, clock)
    reduce_s = all_reduce_s(sum(parameter.numel() for parameter in job.model.parameters()))
    try:
        training = row.entry.make(job)
    except ValueError as error:
        leave(arguments.out, rank, "refused", str(error))
        raise
    curve = train(
        setting,
        training,
        lambda: validation_loss(job.model, held_back, setting.length),
        clock,
        target=arguments.target,
        by_time=row.entry.skips_late,
    )
    is_equal = workers_are_equal(job.model)
    found = {
        "complaint": complaint(clock, curve, is_equal, training.is_synchronous),
        "host": host_number(),
        "steps": clock.steps,
        "cpu_s": clock.cpu_s / clock.steps,
        "sent_bytes": clock.sent_bytes / clock.steps,
        "all_reduce_s": reduce_s,
        "disagreement": disagreement(job.model),
        "curve": [asdict(point) for point in curve] if rank == 0 else [],
    }
    everything = [None] * dist.get_world_size()
    dist.all_gather_object(everything, found)
    if rank == 0:
        (arguments.out / "result.json").write_text(json.dumps(everything))
    dist.barrier()
    training.close()
    dist.destroy_process_group()


def main() -> int:
    """0, or 1 after an error that was left for run.py."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--contender", choices=CONTENDERS, required=True)
    parser.add_argument("--setting", required=True, help="a Setting as JSON")
    parser.add_argument("--text", help="a file or folder; without, Python's standard library")
    parser.add_argument("--lr", type=float, default=0.0, help="0: the contender's own")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--target", type=float, required=True, help="a loss")
    parser.add_argument("--patience", type=float, required=True, help="seconds, then stacks")
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    return guarded(work, parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
