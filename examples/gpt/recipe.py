"""What both twins and the probe share: the command line, the start, batches and learning rates."""

import argparse
import math
import os
import time
from pathlib import Path
from typing import Any

import gossamer
import torch
import torch.distributed as dist
from torch import nn

from data import Shards
from model import CONFIGS, GPT, make_optimizers

# What suits a model; each is an argument as well.
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"steps": 200, "warm_up": 20, "batch": 8, "lr": 3e-3, "muon_lr": 0.02},
    "gpt2": {
        "steps": 5000,
        "warm_up": 250,
        "batch": 16,
        "accumulate": 4,
        "lr": 6e-4,
        "muon_lr": 0.02,
        "validate_every": 250,
    },
}


# What some scripts take besides.
MORE: dict[str, dict[str, Any]] = {
    "method": {"help": "such as aer:int8 or allreduce:int8; default aer"},
    "plan": {"type": Path, "help": "folder of probe.py, which decides the method"},
    "seconds": {"type": float, "default": 10.0, "help": "of steps that are timed"},
    "out": {"type": Path, "default": Path("probed"), "help": "folder for what was measured"},
}


def arguments(description: str, *more: str) -> argparse.Namespace:
    """Of the command line, with some of MORE."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    is_cuda = torch.cuda.is_available()
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder of token shards, as data.py writes them")
    add("--model", choices=CONFIGS, default="tiny")
    add("--device", default="cuda" if is_cuda else "cpu", help="cuda: the GPU of the local rank")
    add("--dtype", choices=("fp32", "bf16"), help="of autocast; default bf16 on a GPU, else fp32")
    add("--steps", type=int)
    add("--batch", type=int, help="windows per worker and backward")
    add("--accumulate", type=int, default=1, help="backwards per step")
    add("--lr", type=float, help="of AdamW, at its peak")
    add("--muon-lr", type=float, help="of Muon, at its peak")
    add("--warm-up", type=int, help="steps until the peak")
    add("--schedule", choices=("cosine", "linear"), default="cosine", help="after the warm-up")
    add("--final-lr", type=float, default=0.1, help="share of the peak that is left at the end")
    add("--clip", type=float, default=1.0, help="norm of the gradients, at most")
    add("--seed", type=int, default=0, help="of parameters and batches")
    add("--validate-every", type=int, default=50, help="steps between validations and saves")
    add("--validated", type=int, default=128, help="windows of a validation, of all workers")
    add("--save", type=Path, help="folder for checkpoints")
    add("--resume", type=Path, help="folder of --save to go on from")
    add("--export", type=Path, help="file for the parameters of the model that was validated")
    add("--metrics", type=Path, help="folder for what `gossamer report` reads")
    for name in more:
        add(f"--{name}", **MORE[name])
    parser.set_defaults(**PRESETS[parser.parse_known_args()[0].model])
    args = parser.parse_args()
    if "plan" in more and args.method and args.plan:
        parser.error("--method and --plan both decide the method; give one of them")
    args.dtype = args.dtype or ("bf16" if args.device == "cuda" else "fp32")
    return args


def method(args: argparse.Namespace) -> dict[str, Any]:
    """Arguments of Gossip for --method or --plan."""
    from gossamer import Method

    if args.plan:
        return {"topology": "auto", "plan": args.plan}
    return {"topology": Method(args.method)} if args.method else {}


def start(args: argparse.Namespace) -> torch.device:
    """Joins the other workers and returns this one's device."""
    torch.set_num_threads(1)
    device = torch.device(args.device)
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return device


def make(args: argparse.Namespace, device: torch.device) -> tuple[GPT, list[torch.optim.Optimizer]]:
    """The model, which is the same on every worker, and its optimizers."""
    torch.manual_seed(args.seed)
    model = GPT(CONFIGS[args.model]).to(device)
    return model, make_optimizers(model, args.lr, args.muon_lr)


class Batches:
    """Batches of this worker. They follow from seed, rank and number, so a run that is resumed has
    the same ones."""

    def __init__(self, args: argparse.Namespace, device: torch.device) -> None:
        config = CONFIGS[args.model]
        self._args, self._device = args, device
        self._train = Shards(args.data, "train", config.length, config.vocabulary)
        self._val = Shards(args.data, "val", config.length, config.vocabulary)

    def next(self, step: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens and what follows them, for the k-th backward of a step."""
        key = f"{self._args.seed} {dist.get_rank()} {step * self._args.accumulate + k}"
        x, y = self._train.random(self._args.batch, key)
        return x.to(self._device), y.to(self._device)

    def validate(self, model: nn.Module) -> float:
        """The mean loss of all workers, each over its share of the same windows."""
        share = self._val.first(self._args.validated, dist.get_rank(), dist.get_world_size())
        total = torch.zeros(2, device=self._device)
        for x, y in zip(*(part.split(self._args.batch) for part in share), strict=True):
            with precision(self._args, self._device):
                loss = model(x.to(self._device), y.to(self._device))
            total += torch.stack([loss.float() * len(x), torch.full_like(loss, len(x)).float()])
        dist.all_reduce(total)
        return float(total[0] / total[1])


def precision(args: argparse.Namespace, device: torch.device) -> torch.autocast:
    """What a forward runs in."""
    return torch.autocast(device.type, torch.bfloat16, enabled=args.dtype == "bf16")


def rate_factor(args: argparse.Namespace, step: int) -> float:
    """Of the learning rates in a step, counted from 0."""
    if step < args.warm_up:
        return (step + 1) / args.warm_up
    done = (step - args.warm_up) / max(1, args.steps - args.warm_up)
    left = (1 + math.cos(math.pi * done)) / 2 if args.schedule == "cosine" else 1 - done
    return args.final_lr + (1 - args.final_lr) * left


def set_rates(args: argparse.Namespace, optimizers: list[torch.optim.Optimizer], step: int) -> None:
    """Before a step. The rates follow from its number alone, so there is nothing to save."""
    for optimizer, peak in zip(optimizers, (args.muon_lr, args.lr), strict=True):
        for group in optimizer.param_groups:
            group["lr"] = peak * rate_factor(args, step)


def steps_done(optimizers: list[torch.optim.Optimizer]) -> int:
    """As AdamW counts them: 0 at first, and after a resume those of the run before."""
    steps = [state["step"] for state in optimizers[-1].state.values() if "step" in state]
    return int(steps[0]) if steps else 0


class Say:
    """Rank 0's lines about the progress."""

    def __init__(self, steps: int) -> None:
        self._began, self._since = time.perf_counter(), steps

    def __call__(self, steps: int, loss: torch.Tensor, val_loss: float) -> None:
        """After so many steps of the run; `loss` is of this worker's last one."""
        now = time.perf_counter()
        ms = 1e3 * (now - self._began) / max(1, steps - self._since)
        if dist.get_rank() == 0:
            print(f"step {steps}: loss {loss:.4f}, val {val_loss:.4f}, {ms:.0f} ms", flush=True)
        self._began, self._since = time.perf_counter(), steps


class DdpRun:
    """What a Gossip has and DDP leaves to the script: checkpoints and metrics."""

    def __init__(
        self,
        model: nn.Module,
        optimizers: list[torch.optim.Optimizer],
        *,
        metrics: Path | None = None,
    ) -> None:
        self._parts = [plain(model), *optimizers]
        self._metrics = gossamer.DdpMetrics(optimizers[-1], metrics) if metrics else None
        dist.barrier()

    def save(self, folder: Path) -> None:
        """All workers are equal, so rank 0 saves for all; whole or not at all."""
        if dist.get_rank() == 0:
            folder.mkdir(parents=True, exist_ok=True)
            torch.save([part.state_dict() for part in self._parts], folder / "ddp.part")
            (folder / "ddp.part").replace(folder / "ddp.pt")
        dist.barrier()

    def load(self, folder: Path) -> None:
        """Goes on from what `save` saved."""
        states = torch.load(folder / "ddp.pt", map_location="cpu")
        for part, state in zip(self._parts, states, strict=True):
            part.load_state_dict(state)
        if self._metrics is not None:
            self._metrics.restart(steps_done(self._parts[1:]))

    def log(self, **values: Any) -> None:
        """Values of the next step; a validation has a line of its own."""
        if self._metrics is not None and "val_loss" in values:
            self._metrics.log_validation(**values)
        elif self._metrics is not None:
            self._metrics.log(**values)

    def close(self) -> None:
        """The metrics end."""
        if self._metrics is not None:
            self._metrics.close()


def plain(model: nn.Module) -> nn.Module:
    """Without DistributedDataParallel, whose names of parameters are others."""
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
