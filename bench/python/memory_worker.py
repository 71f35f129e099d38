"""One process of the memory measurement; memory.py starts it under torch.distributed.run."""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTH = 2000
STEPS = 5


def resident_bytes() -> int:
    """Of this process; pages shared by k processes count 1/k each."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--who", choices=("alone", "ddp", "gossamer"), required=True)
    parser.add_argument("--optimizer", choices=("AdamW", "RMSprop"), required=True)
    parser.add_argument("--options", type=json.loads, required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--trainable", type=int, help="layers; the first ones are frozen")
    parser.add_argument("--each-a-host", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # all batches are alike, and hosts are made up
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    if arguments.each_a_host:
        os.environ["GROUP_RANK"] = os.environ["RANK"]
    from gossamer import Gossip

    torch.manual_seed(0)
    layers = [nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(arguments.layers)]
    for layer in layers[: -arguments.trainable] if arguments.trainable else []:
        layer.requires_grad_(False)
    model: nn.Module = nn.Sequential(*layers)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    kind = getattr(torch.optim, arguments.optimizer)
    is_fused = arguments.optimizer == "AdamW" and arguments.who != "gossamer"
    optimizer = kind(trained, lr=1e-4, **({"fused": True} if is_fused else {}))
    close = None
    dist.barrier()
    begin, begin_cpu = time.perf_counter(), time.process_time()
    if arguments.who == "ddp":
        model = DistributedDataParallel(model)
    elif arguments.who == "gossamer":
        close = Gossip(model, optimizer, **arguments.options).close
    making_s, making_cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
    inputs = torch.randn(8, WIDTH)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
    dist.barrier()
    resident = resident_bytes()
    count = sum(parameter.numel() for parameter in trained)
    found = torch.tensor([resident / count, making_s, making_cpu_s], dtype=torch.float64)
    dist.all_reduce(found)  # the sizes of both workers may differ by what they share
    if dist.get_rank() == 0:
        names = ("bytes_per_parameter", "making_s", "making_cpu_s")
        values = (found / dist.get_world_size()).tolist()
        arguments.out.write_text(json.dumps(dict(zip(names, values, strict=True))))
    if close is not None:
        close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
