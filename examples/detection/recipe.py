"""What both twins share: the command line, the start, batches, learning rates, validation."""

import argparse
import functools
import math
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gossamer
import torch
import torch.distributed as dist
from torch import nn

import torchvision_models
from coco_data import CocoSet, Example, as_results, average_precision
from detectors import MODELS, Target

Batch = tuple[torch.Tensor, list[Target]]

# What suits an optimizer; each is an argument as well.
PRESETS: dict[str, dict[str, float]] = {
    "sgd": {"lr": 0.1, "weight_decay": 1e-4},
    "adamw": {"lr": 2e-3, "weight_decay": 0.05},
}


def arguments(description: str, *more: str) -> argparse.Namespace:
    """Of the command line; `more` may have "method"."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    is_cuda = torch.cuda.is_available()
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with train.json and val.json")
    add("--model", choices=[*MODELS, *torchvision_models.NAMES], default="retinanet")
    add("--size", type=int, default=96, help="pixels of an image's longer side in the model")
    add("--device", default="cuda" if is_cuda else "cpu", help="cuda: the GPU of the local rank")
    add("--steps", type=int, default=1200)
    add("--batch", type=int, default=4, help="images per worker and step")
    add("--optimizer", choices=PRESETS, default="sgd", help="sgd has momentum")
    add("--lr", type=float, help="at its peak")
    add("--momentum", type=float, default=0.9, help="of sgd")
    add("--weight-decay", type=float)
    add("--warm-up", type=int, default=50, help="steps until the peak")
    add("--final-lr", type=float, default=0.01, help="share of the peak that is left at the end")
    add("--clip", type=float, default=10.0, help="norm of the gradients, at most")
    add("--seed", type=int, default=1, help="of parameters and batches")
    add("--loaders", type=int, default=0, help="processes per worker that read images")
    add("--validate-every", type=int, default=300, help="steps between validations and saves")
    add("--save", type=Path, help="folder for checkpoints")
    add("--resume", type=Path, help="folder of --save to go on from")
    add("--export", type=Path, help="file for the parameters of the model that was validated")
    add("--metrics", type=Path, help="folder for what `gossamer report` reads")
    if "method" in more:
        add("--method", default="aer", help="such as atc@one_peer_exponential or allreduce")
    parser.set_defaults(**PRESETS[parser.parse_known_args()[0].optimizer])
    return parser.parse_args()


def method(args: argparse.Namespace) -> dict[str, Any]:
    """Arguments of Gossip for --method."""
    from gossamer import Method

    return {"topology": Method(args.method), "seed": args.seed}


def start(args: argparse.Namespace) -> torch.device:
    """Joins the other workers and returns this one's device."""
    torch.set_num_threads(1)
    device = torch.device(args.device)
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return device


def make(
    args: argparse.Namespace, classes: int, device: torch.device
) -> tuple[nn.Module, torch.optim.Optimizer]:
    """The model, which is the same on every worker, and its optimizer."""
    torch.manual_seed(args.seed)
    name, size = args.model, args.size
    if name in MODELS:
        model: nn.Module = MODELS[name](classes, size)
    else:
        model = torchvision_models.make(name, classes, size)
    parameters = model.to(device).parameters()
    if args.optimizer == "adamw":
        return model, torch.optim.AdamW(parameters, args.lr, weight_decay=args.weight_decay)
    return model, torch.optim.SGD(
        parameters, args.lr, momentum=args.momentum, weight_decay=args.weight_decay
    )


class Data:
    """This worker's share of both parts of the set."""

    def __init__(self, args: argparse.Namespace, device: torch.device) -> None:
        self._args, self._device = args, device
        self._train = CocoSet(args.data, "train", args.size)
        self._val = CocoSet(args.data, "val", args.size)
        self.classes = len(self._train.categories)

    def batches(self, done: int) -> Iterator[Batch]:
        """Those of the steps after `done`. They follow from seed, rank and number, so a run that is
        resumed has the same ones."""
        args = self._args
        own = [self._numbers(step) for step in range(done, args.steps)]
        loader = torch.utils.data.DataLoader(
            self._train, batch_sampler=own, num_workers=args.loaders, collate_fn=list
        )
        for step, examples in enumerate(loader, done):
            # For models that draw anchors at random.
            torch.manual_seed((args.seed * 1_000_003 + step) * 1009 + dist.get_rank())
            yield self._moved(examples)

    def _numbers(self, step: int) -> list[int]:
        """Every image comes once per epoch, to one of the workers."""
        share = self._args.batch * dist.get_world_size()
        epoch, place = divmod(step, max(1, len(self._train) // share))
        order = shuffled(len(self._train), f"{self._args.seed} {epoch}")
        begin = place * share + dist.get_rank() * self._args.batch
        return [order[k % len(order)] for k in range(begin, begin + self._args.batch)]

    def _moved(self, examples: list[Example]) -> Batch:
        images = torch.stack([each.image for each in examples]).to(self._device)
        return images, [Target(*(t.to(self._device) for t in each.target)) for each in examples]

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Loss and average precision over all of the validation part. Every worker takes its share
        of the images; rank 0 evaluates what all have found."""
        own = range(dist.get_rank(), len(self._val), dist.get_world_size())
        total = torch.zeros(2, device=self._device)
        results: list[dict[str, Any]] = []
        for begin in range(0, len(own), 32):
            examples = [self._val[index] for index in own[begin : begin + 32]]
            images, targets = self._moved(examples)
            loss = model(images, targets)
            total += torch.stack([loss * len(images), torch.full_like(loss, len(images))])
            for found, example in zip(plain(model).detect(images), examples, strict=True):
                results += as_results(found, example, self._val.categories)
        dist.all_reduce(total)
        every = [results] * dist.get_world_size() if dist.get_rank() == 0 else None
        dist.gather_object(results, every)
        precisions = torch.zeros(2, device=self._device)
        if every:
            found = [each for part in every for each in part]
            precisions += torch.tensor(average_precision(self._val.annotations, found))
        dist.broadcast(precisions, 0)
        ap, ap50 = precisions.tolist()
        return {"val_loss": float(total[0] / total[1]), "ap": ap, "ap50": ap50}


@functools.lru_cache(maxsize=1)
def shuffled(count: int, key: str) -> list[int]:
    return random.Random(key).sample(range(count), count)


def set_rate(args: argparse.Namespace, optimizer: torch.optim.Optimizer, step: int) -> None:
    """Before a step, counted from 0. The rate follows from its number alone, so there is nothing
    to save."""
    factor = (step + 1) / max(1, args.warm_up)
    if step >= args.warm_up:
        done = (step - args.warm_up) / max(1, args.steps - args.warm_up)
        factor = args.final_lr + (1 - args.final_lr) * (1 + math.cos(math.pi * done)) / 2
    for group in optimizer.param_groups:
        group["lr"] = args.lr * factor


class Say:
    """Rank 0's lines about the progress."""

    def __init__(self, steps: int) -> None:
        self._began, self._since = time.perf_counter(), steps

    def __call__(self, steps: int, loss: torch.Tensor, validated: dict[str, float]) -> None:
        """After so many steps of the run; `loss` is of this worker's last one."""
        now = time.perf_counter()
        ms = 1e3 * (now - self._began) / max(1, steps - self._since)
        if dist.get_rank() == 0:
            found = ", ".join(f"{name} {value:.4f}" for name, value in validated.items())
            print(f"step {steps}: loss {loss:.4f}, {found}, {ms:.0f} ms", flush=True)
        self._began, self._since = time.perf_counter(), steps


class DdpRun:
    """What a Gossip has and DDP leaves to the script: steps, checkpoints and metrics."""

    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, *, metrics: Path | None = None
    ) -> None:
        self._parts = [plain(model), optimizer]
        self._steps = 0
        self._metrics = gossamer.DdpMetrics(optimizer, metrics) if metrics else None
        optimizer.register_step_post_hook(lambda *_: self._end_step())
        dist.barrier()

    def stats(self) -> dict[str, Any]:
        """The number of steps so far."""
        return {"steps": self._steps}

    def save(self, folder: Path) -> None:
        """All workers are equal, so rank 0 saves for all; whole or not at all."""
        if dist.get_rank() == 0:
            folder.mkdir(parents=True, exist_ok=True)
            states = [part.state_dict() for part in self._parts]
            torch.save([self._steps, *states], folder / "ddp.part")
            (folder / "ddp.part").replace(folder / "ddp.pt")
        dist.barrier()

    def load(self, folder: Path) -> None:
        """Goes on from what `save` saved."""
        self._steps, *states = torch.load(folder / "ddp.pt", map_location="cpu")
        for part, state in zip(self._parts, states, strict=True):
            part.load_state_dict(state)
        if self._metrics is not None:
            self._metrics.restart(self._steps)

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

    def _end_step(self) -> None:
        self._steps += 1


def plain(model: nn.Module) -> nn.Module:
    """Without DistributedDataParallel, whose names of parameters are others."""
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
