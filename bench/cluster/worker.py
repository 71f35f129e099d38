"""One worker of the comparison; run.py starts it in its host."""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch.distributed as dist
from answers import complaint
from contenders import CONTENDERS, sleeping_job
from methods import Contender
from sleeping_model import Pace, SleepingModel
from worker_side import cpu_s, guarded, host_number, leave, link_bytes, retransmissions


def measure(contender: Contender, pace: Pace, warm: int, steps: int) -> dict[str, Any]:
    """Means over the steps after the warm ones, and when these ended, and the one before them, by a
    clock that all workers share."""
    for _ in range(warm):
        contender.step()
    begin, cpu, (sent, received) = time.perf_counter(), cpu_s(), link_bytes()
    computed, again = pace.total_s, retransmissions()
    ends = [time.monotonic()]
    for _ in range(steps):
        contender.step()
        ends.append(time.monotonic())
    now_sent, now_received = link_bytes()
    totals = {
        "seconds": time.perf_counter() - begin,
        "computed_s": pace.total_s - computed,
        "cpu_s": cpu_s() - cpu,
        "sent_bytes": now_sent - sent,
        "received_bytes": now_received - received,
        "retransmissions": retransmissions() - again,
    }
    return {**{name: total / steps for name, total in totals.items()}, "ends": ends}


def work(arguments: argparse.Namespace) -> None:
    """Trains, checks, and leaves what was found in the file of the rank, or of all of them."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    hosts = [int(word) for word in arguments.hosts.split(",")]
    factor = float(arguments.factors.split(",")[rank])
    pace = Pace(arguments.compute, arguments.jitter, factor, seed=arguments.seed * 1000 + rank)
    model = SleepingModel(arguments.bytes, pace, float(rank + 1))
    entry = CONTENDERS[arguments.contender]
    try:
        contender = entry.make(sleeping_job(model))
    except ValueError as error:
        leave(arguments.out, rank, "refused", str(error))
        raise
    dist.barrier()
    found = measure(contender, pace, arguments.warm, arguments.steps)
    said = complaint(model, contender, entry.mixing, hosts, arguments.warm + arguments.steps)
    everything = [None] * dist.get_world_size()
    dist.all_gather_object(everything, {**found, "complaint": said, "host": host_number()})
    if rank == 0:
        (arguments.out / "result.json").write_text(json.dumps(everything))
    dist.barrier()
    contender.close()
    dist.destroy_process_group()


def main() -> int:
    """0, or 1 after an error that was left for run.py."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--contender", choices=CONTENDERS, required=True)
    parser.add_argument("--hosts", required=True, help="workers by host, separated by commas")
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--compute", type=float, required=True)
    parser.add_argument("--jitter", type=float, required=True)
    parser.add_argument("--factors", required=True, help="by rank, separated by commas")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--warm", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--patience", type=float, required=True, help="seconds, then stacks")
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    arguments = parser.parse_args()
    return guarded(work, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
