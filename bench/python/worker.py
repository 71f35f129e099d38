"""One process of the comparison; run.py starts it under torch.distributed.run."""

import argparse
import json
import resource
import time
from pathlib import Path

import torch
import torch.distributed as dist
from contenders import CONTENDERS, Contender
from models import MODELS


def run(contender: Contender, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple:
    """Milliseconds per step from all workers' start to the last one's end, and the losses."""
    dist.barrier()
    begin = time.perf_counter()
    losses = [contender.step(batch) for batch in batches]
    dist.barrier()
    return 1e3 * (time.perf_counter() - begin) / len(batches), losses


def mean_over_workers(values: list[float]) -> list[float]:
    tensor = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(tensor)
    return (tensor / dist.get_world_size()).tolist()


def counted_elsewhere_kb() -> int:
    """Of this process' resident shared memory, the part that belongs to those it shares it with."""
    fields = dict(
        line.split(":", 1)
        for path in ("/proc/self/status", "/proc/self/smaps_rollup")
        for line in Path(path).read_text().splitlines()
        if ":" in line
    )
    return int(fields["RssShmem"].split()[0]) - int(fields["Pss_Shmem"].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--contenders", required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    names = arguments.contenders.split(",")
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = {name: CONTENDERS[name](arguments.model) for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    curves: dict[str, list[float]] = {name: [] for name in names}
    for number in range(arguments.rounds + 1):
        generator = torch.Generator().manual_seed(1000 * number + rank)
        batches = [MODELS[arguments.model][1](generator) for _ in range(arguments.steps)]
        for name, contender in made.items():
            ms, losses = run(contender, batches)
            curves[name] += mean_over_workers(losses)
            if number > 0:  # the first round pays for allocations and bucket building
                times[name].append(ms)
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - counted_elsewhere_kb()
    if rank == 0:
        result = {"ms": times, "loss": curves, "peak_mb": (peak_kb - before_kb) / 1024}
        arguments.out.write_text(json.dumps(result))
    dist.barrier()
    for contender in made.values():
        contender.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
