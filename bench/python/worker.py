"""One process of the comparison; run.py starts it under torch.distributed.run."""

import argparse
import json
import os
import resource
import time
from pathlib import Path

import torch
import torch.distributed as dist
from contenders import CONTENDERS, OPTIMIZERS, Contender
from models import MODELS


def run(contender: Contender, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple:
    """Per step: ms from all workers' start to the last one's end, this worker's CPU ms; losses."""
    dist.barrier()
    begin, begin_cpu = time.perf_counter(), time.process_time()
    losses = [contender.step(batch) for batch in batches]
    dist.barrier()
    cpu_ms = 1e3 * (time.process_time() - begin_cpu) / len(batches)
    return 1e3 * (time.perf_counter() - begin) / len(batches), cpu_ms, losses


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
    parser.add_argument("--optimizer", choices=OPTIMIZERS, required=True)
    parser.add_argument("--contenders", required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--each-a-host", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.each_a_host:
        os.environ["GROUP_RANK"] = os.environ["RANK"]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    names = arguments.contenders.split(",")
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = {name: CONTENDERS[name](arguments.model, arguments.optimizer) for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    curves: dict[str, list[float]] = {name: [] for name in names}
    for number in range(arguments.rounds + 1):
        generator = torch.Generator().manual_seed(1000 * number + rank)
        batches = [MODELS[arguments.model][1](generator) for _ in range(arguments.steps)]
        for name, contender in made.items():
            ms, cpu_ms, losses = run(contender, batches)
            *means, cpu_ms = mean_over_workers([*losses, cpu_ms])
            curves[name] += means
            if number > 0:  # the first round pays for allocations and bucket building
                times[name].append(ms)
                cpu[name].append(cpu_ms)
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - counted_elsewhere_kb()
    if rank == 0:
        peak_mb = (peak_kb - before_kb) / 1024
        result = {"ms": times, "cpu_ms": cpu, "loss": curves, "peak_mb": peak_mb}
        arguments.out.write_text(json.dumps(result))
    dist.barrier()
    for contender in made.values():
        contender.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
