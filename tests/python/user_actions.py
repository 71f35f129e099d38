"""What users do between two steps, at random, against a dense reference in one process.

usage: python tests/python/user_actions.py [--sequences N] [--seed S] [--workers N] [--tcp]

Every worker computes the reference of all workers with plain torch: each has a model and an
optimizer of its own, steps it, and is mixed by W as the patterns say. A sequence is a seed: it
chooses model, optimizer, pattern, update and actions. Prints the seeds of sequences that differ.
"""

import argparse
import copy
import io
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import conftest  # noqa: F401  the package's place, before the package
import torch
from action_reference import OPTIMIZERS, Reference, Worker, batch_of
from torch import nn

import gossamer

STEPS = 10
TIMEOUT_S = 5.0
NEAR = {torch.float64: 1e-9, torch.float32: 1e-5}
FUSED = ("sgd", "momentum", "nesterov", "adam", "adamw", "accum_adamw")
PATTERNS = ("cwa", "cwa", "atc", "allreduce", "gradient_gossip")
LAYERS = ("a", "norm", "b", "c")


# Actions: each is done to the real worker and, in turn, to all of the reference's. `rng` is fresh
# for each of them and equal; `rank` is the worker's.

Action = Callable[[Worker, int, random.Random], None]


def pick(worker: Worker, rng: random.Random) -> tuple[str, nn.Parameter]:
    mixed = worker.mixed()
    name = rng.choice(sorted(mixed))
    return name, mixed[name]


def freeze(worker: Worker, rank: int, rng: random.Random) -> None:
    names = [
        n for n in LAYERS if all(p.requires_grad for p in getattr(worker.model, n).parameters())
    ]
    if len(names) > 1:
        getattr(worker.model, rng.choice(names)).requires_grad_(False)


def thaw(worker: Worker, rank: int, rng: random.Random) -> None:
    worker.model.requires_grad_(True)


def replace(worker: Worker, rank: int, rng: random.Random) -> None:
    name, old = pick(worker, rng)
    new = nn.Parameter(old.detach() * 0.5 + 0.01 * rank)
    path, _, leaf = name.rpartition(".")
    setattr(worker.model.get_submodule(path), leaf, new)
    for group in worker.optimizer.param_groups:
        group["params"] = [new if p is old else p for p in group["params"]]
    entry = worker.optimizer.state.pop(old, None)
    if entry is not None and rng.random() < 0.5:
        worker.optimizer.state[new] = entry


def move(worker: Worker, rank: int, rng: random.Random) -> None:
    _, p = pick(worker, rng)
    groups = worker.optimizer.param_groups
    for group in groups:
        group["params"] = [each for each in group["params"] if each is not p]
    rng.choice(groups)["params"].append(p)


def add_group(worker: Worker, rank: int, rng: random.Random) -> None:
    ours = {id(p) for group in worker.optimizer.param_groups for p in group["params"]}
    if id(worker.model.late.weight) not in ours:
        with torch.no_grad():
            worker.model.late.weight.add_(0.01 * rank)
        worker.optimizer.add_param_group(
            {"params": list(worker.model.late.parameters()), "lr": 0.01}
        )


def set_by_hand(worker: Worker, rank: int, rng: random.Random) -> None:
    _, p = pick(worker, rng)
    how = rng.choice(["fill", "clamp", "scale", "noise", "one", "data", "version"])
    with torch.no_grad():
        if how == "fill":
            p.data.fill_(0.1)
        elif how == "clamp":
            p.clamp_(-0.05, 0.05)
        elif how == "scale":
            p.data.mul_(0.9)
        elif how == "noise":
            p.add_(0.01 * (rank + 1))
        elif how == "one":
            p.data.view(-1)[rng.randrange(p.numel())] = 0.2 * (rank + 1)
        elif how == "data":
            p.data = p.data * 0.8 + 0.01 * rank
        else:
            p.copy_(p.detach() * 1.1)


def swap_and_back(worker: Worker, rank: int, rng: random.Random) -> None:
    kept = {name: p.detach().clone() for name, p in worker.model.named_parameters()}
    with torch.no_grad():
        for p in worker.model.parameters():
            p.data.fill_(9.0)
        for name, p in worker.model.named_parameters():
            p.data.copy_(kept[name])


def other_memory(worker: Worker, rank: int, rng: random.Random) -> None:
    if rng.random() < 0.5:
        worker.model.share_memory()
    else:
        for p in worker.model.parameters():
            p.data = p.data.clone()


def deep_copy(worker: Worker, rank: int, rng: random.Random) -> None:
    other = copy.deepcopy(worker.model)
    other(torch.ones(1, 5, dtype=other.a.weight.dtype)).sum().backward()


def save_part(worker: Worker, rank: int, rng: random.Random) -> None:
    file = io.BytesIO()
    torch.save(worker.model.a.bias.detach(), file)
    assert file.tell() < 3000, file.tell()
    torch.save(worker.model, io.BytesIO())


def change_lr(worker: Worker, rank: int, rng: random.Random) -> None:
    rng.choice(worker.optimizer.param_groups)["lr"] *= 0.5


def reload_optimizer(worker: Worker, rank: int, rng: random.Random) -> None:
    worker.optimizer.load_state_dict(copy.deepcopy(worker.optimizer.state_dict()))


def clear_state(worker: Worker, rank: int, rng: random.Random) -> None:
    worker.optimizer.state.clear()


def half_buffer(worker: Worker, rank: int, rng: random.Random) -> None:
    worker.model.register_buffer(
        "half_precision", torch.ones(3, dtype=torch.bfloat16), persistent=False
    )


def load_model(worker: Worker, rank: int, rng: random.Random) -> None:
    state = {key: value * 0.9 + 0.01 * rank for key, value in worker.model.state_dict().items()}
    worker.model.load_state_dict(state)


def edit_state(worker: Worker, rank: int, rng: random.Random) -> None:
    for entry in worker.optimizer.state.values():
        for key, value in entry.items():
            if key != "step" and isinstance(value, torch.Tensor) and value.dim() > 0:
                entry[key] = value * 0.5 if rng.random() < 0.5 else value.mul_(0.5)


ACTIONS: dict[str, Action] = {
    each.__name__: each
    for each in (
        freeze, thaw, replace, move, add_group, set_by_hand, set_by_hand, swap_and_back,
        other_memory, deep_copy, save_part, change_lr, reload_optimizer, clear_state, half_buffer,
        load_model, edit_state,
    )
}  # fmt: skip
SPECIAL = ("averaged", "disagreement", "skip", "second_backward", "no_gradient", "save_load")
NAMES = (*ACTIONS, "freeze", "thaw", "set_by_hand", "set_by_hand", *SPECIAL)


class Sequence:
    """One seed's run."""

    def __init__(
        self, seed: int, rank: int, size: int, make: Callable[..., gossamer.Gossip]
    ) -> None:
        rng = self.rng = random.Random(seed)
        self.seed, self.rank = seed, rank
        self.kind = rng.choice(sorted(OPTIMIZERS))
        # Where a first gradient is divided by its own size, rounding is not small in float32.
        is_linear = self.kind in ("sgd", "momentum", "nesterov")
        self.dtype = rng.choice([torch.float64, torch.float32 if is_linear else torch.float64])
        self.pattern = rng.choice(PATTERNS)
        if self.pattern == "gradient_gossip" and self.kind not in FUSED:
            self.pattern = "cwa"
        may_step_early = self.kind in FUSED and self.pattern in ("cwa", "atc")
        self.update = "backward" if may_step_early and rng.random() < 0.3 else "step"
        topology = rng.choice(["ring", "complete"])
        self.real = Worker(seed, self.kind, self.dtype)
        self.gossip = make(
            self.real.model,
            self.real.optimizer,
            topology=topology,
            pattern=self.pattern,
            update=self.update,
            timeout_s=TIMEOUT_S,
        )
        weights = torch.tensor(self.gossip._run.session.schedule.matrix(0), dtype=torch.float64)
        if self.pattern == "allreduce":
            weights = torch.eye(size, dtype=torch.float64)
        workers = [Worker(seed, self.kind, self.dtype) for _ in range(size)]
        self.reference = Reference(workers, weights, self.pattern)
        self.done: list[str] = []

    def act(self, name: str, step: int) -> None:
        self.done.append(name)
        if name == "averaged":
            with self.gossip.averaged():
                for key, p in self.real.mixed().items():
                    every = [dict(w.model.named_parameters())[key] for w in self.reference.workers]
                    mean = sum(each.detach().double() for each in every) / len(every)
                    self.check(p.detach().double(), mean, f"mean of {key}")
        elif name == "disagreement":
            self.gossip.disagreement()
        elif name == "save_load":
            self.save_and_load()
        elif name in ACTIONS:
            seed = self.rng.random()
            ACTIONS[name](self.real, self.rank, random.Random(seed))
            for rank, worker in enumerate(self.reference.workers):
                ACTIONS[name](worker, rank, random.Random(seed))
            self.reference.loaded |= name == "load_model"

    def save_and_load(self) -> None:
        folder = shared_folder(self.rank)
        self.gossip.save(folder)
        self.gossip.load(folder)
        self.reference.loaded = True
        self.gossip._run.team.engine.barrier()

    def train(self, name: str, step: int) -> None:
        if name == "skip":
            return
        times = 2 if name == "second_backward" else 1
        for rank, worker in [(self.rank, self.real), *enumerate(self.reference.workers)]:
            is_real = worker is self.real
            worker.optimizer.zero_grad()
            for k in range(0 if name == "no_gradient" else times):
                early = is_real and self.update == "backward" and k + 1 < times
                with self.gossip.no_sync() if early else nullcontext():
                    x = batch_of(self.seed, step + 1000 * k, rank, self.dtype)
                    loss = worker.model(x).square().mean() + worker.model(x).sin().mean()
                    loss.backward()
        self.real.optimizer.step()
        self.reference.step()
        mine = dict(self.reference.workers[self.rank].model.named_parameters())
        for key, p in self.real.model.named_parameters():
            self.check(p.detach(), mine[key].detach(), key)

    def check(self, found: torch.Tensor, expected: torch.Tensor, what: str) -> None:
        scale = max(float(expected.abs().max()), 0.1)
        gap = float((found.double() - expected.double()).abs().max()) / scale
        if not gap <= NEAR[self.dtype]:
            raise AssertionError(f"{what} differs by {gap:.3g}")

    def run(self) -> None:
        for step in range(STEPS):
            name = self.rng.choice(NAMES)
            self.act(name, step)
            self.train(name, step)

    def about(self) -> str:
        return f"{self.kind}, {self.pattern}, {self.update}, {self.dtype}: {', '.join(self.done)}"


_FOLDER: list[str] = []


def shared_folder(rank: int) -> str:
    """The same folder on all workers of this machine."""
    if not _FOLDER:
        names = [tempfile.mkdtemp() if rank == 0 else None]
        torch.distributed.broadcast_object_list(names)
        _FOLDER.append(names[0] or "")
    return _FOLDER[0]


def run(seeds: range, rank: int, size: int, **options: Any) -> tuple[int, list[str]]:
    """The last sequence that was run, and what went wrong in it on this worker."""
    seed = seeds.start
    for seed in seeds:
        problems = []
        sequence = Sequence(seed, rank, size, partial(make_gossip, **options))
        try:
            sequence.run()
        except Exception as error:
            problems = [f"seed {seed}: {type(error).__name__}: {error}; {sequence.about()}"]
        failed: list[Any] = [None] * size
        torch.distributed.all_gather_object(failed, bool(problems))
        sequence.gossip.close()
        if any(failed):
            return seed, problems
    return seed, []


def make_gossip(*args: Any, tcp: bool = False, **options: Any) -> gossamer.Gossip:
    with apart() if tcp else nullcontext():
        return gossamer.Gossip(*args, **options)


@contextmanager
def apart() -> Iterator[None]:
    """As another user's process, which shares no memory with those of others: over TCP."""
    folder = Path(sys.argv[1])  # of the ranks, with the file that is their store
    folder.chmod(0o777)
    for file in folder.glob("store*"):
        file.chmod(0o666)
    os.seteuid(60000 + int(os.environ["RANK"]))
    try:
        yield
    finally:
        os.seteuid(0)


def main() -> int:
    """Runs sequences by hand; 1 where any differs."""
    import gossip_ranks  # it starts the processes, which import this module

    parser = argparse.ArgumentParser()
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tcp", action="store_true")
    options = parser.parse_args()
    first, last, bad = options.seed, options.seed + options.sequences, 0
    while first < last:
        os.environ["GOSSAMER_ACTIONS"] = f"{first} {last} {int(options.tcp)}"
        limit = 60 + 5 * (last - first)
        ranks = gossip_ranks.run(["user_actions"], [1] * options.workers, timeout_s=limit)
        found = gossip_ranks.results(ranks, "user_actions")
        for number, (_, problems) in enumerate(found):
            for problem in problems:
                print(f"worker {number}: {problem}", flush=True)
        bad += any(problems for _, problems in found)
        first = max(done for done, _ in found) + 1
    print(f"{options.sequences} sequences, {bad} differ")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
