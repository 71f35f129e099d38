"""What gossip costs a worker whose parameters are on a GPU, beside one in CPU memory.

    bench/gpu/run.py --device cuda --json out.json

Both workers are on one machine and exchange over TCP on loopback. With --device testdev it runs
to its end without a GPU, on the device of the tests; its times then mean nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import places
import torch

HERE = Path(__file__).resolve().parent
Found = dict[str, Any]
LOSSES = [
    *(("cwa", codec) for codec in ("fp32", "int8")),
    *((pattern, "fp32") for pattern in ("atc", "gradient_gossip")),
    *(("allreduce", codec) for codec in ("fp32", "bf16", "int8")),
]
AT_ONCE = 4


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def run_workers(work: str, devices: list[str], limit_s: float, *words: str) -> list[Found]:
    """One worker per device, each as a host of its own; what they found, by rank."""
    port = _free_port()
    workers = []
    for rank, device in enumerate(devices):
        environment = {
            **os.environ,
            "RANK": str(rank),
            "WORLD_SIZE": str(len(devices)),
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "GROUP_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        command = [sys.executable, str(HERE / "worker.py"), work, "--device", device, *words]
        workers.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        )
    found: list[Found] = []
    deadline = time.monotonic() + limit_s
    try:
        for worker in workers:
            out, _ = worker.communicate(timeout=max(1.0, deadline - time.monotonic()))
            lines = [line for line in out.splitlines() if line.startswith("RESULT ")]
            failed = worker.returncode != 0 or not lines
            found.append({"failed": worker.returncode} if failed else json.loads(lines[-1][7:]))
    except subprocess.TimeoutExpired:
        found = [{"failed": f"not done in {limit_s} s"}] * len(devices)
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
    return found


def facts(device: str) -> Found:
    """What the numbers were measured with."""
    about: Found = {"torch": torch.__version__, "python": platform.python_version()}
    about["cores"] = os.cpu_count()
    if device == "cuda":
        about["device"] = torch.cuda.get_device_name()
        about["cuda"] = torch.version.cuda
    return about


def copy_rate(into: torch.Tensor, source: torch.Tensor) -> float:
    """GB/s, the best of a few."""
    best = float("inf")
    for _ in range(3):
        torch.accelerator.synchronize()
        begin = time.perf_counter()
        into.copy_(source, non_blocking=True)
        torch.accelerator.synchronize()
        best = min(best, time.perf_counter() - begin)
    return into.nbytes / best / 1e9


def copy_rates(device: torch.device) -> Found:
    """GB/s between pinned memory of both kinds and the device."""
    from gossamer import _core

    count = (256 << 20) if device.type == "cuda" else (1 << 16)
    there = torch.zeros(count // 4, device=device)
    pinned = torch.zeros(count // 4, pin_memory=True)
    plain = torch.zeros(count // 4)
    rows: Found = {}
    for name, host in (("pinned", pinned), ("pageable", plain)):
        for way, into, source in (("out", host, there), ("in", there, host)):
            rows[f"{name} {way} GB/s"] = copy_rate(into, source)
    rows["can pin memory of others"] = _core.can_pin(device)
    return rows


def compare_losses(device: str, limit_s: float) -> list[Found]:
    """The same run with a worker on the device, and with both in CPU memory."""

    def compare(way: tuple[str, str]) -> Found:
        pattern, codec = way
        words = ("--pattern", pattern, "--codec", codec, "--steps", "40")
        here = run_workers("losses", [device, "cpu"], limit_s, *words)
        there = run_workers("losses", ["cpu", "cpu"], limit_s, *words)
        row: Found = {"pattern": pattern, "codec": codec}
        if any("failed" in each for each in (*here, *there)):
            return {**row, "failed": [*here, *there]}
        pairs = [
            (a, b)
            for mine, other in zip(here, there, strict=True)
            for a, b in zip(mine["losses"], other["losses"], strict=True)
        ]
        row["largest difference"] = max(abs(a - b) for a, b in pairs)
        return {**row, "last loss": pairs[-1][0]}

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(compare, LOSSES))


def without_waiting(device: str, limit_s: float, *words: str) -> Found:
    """By pattern: AMP, clipping and the step, where a wait for the device is an error."""
    options = ("--steps", "20", *words)
    return {
        pattern: run_workers("amp", [device, device], limit_s, "--pattern", pattern, *options)
        for pattern in ("cwa", "allreduce", "gradient_gossip")
    }


def step_times(device: str, limit_s: float, quick: bool) -> list[Found]:
    """By size and codec, for a compute that is longer than what travels, and for a shorter one."""
    rows = []
    sizes = [(65_000_000, 0.3, 5), (65_000_000, 0.1, 8), (350_000_000, 1.5, 3)]
    if quick:
        sizes = [(100_000, 0.01, 2)]
    for parameters, compute, steps in sizes:
        for codec in ("fp32", "bf16", "int8"):
            words = ["--parameters", str(parameters), "--compute", str(compute)]
            words += ["--steps", str(steps), "--codec", codec]
            workers = run_workers("step_time", [device, "cpu"], limit_s, *words)
            row = {"parameters": parameters, "compute_s": compute, "codec": codec}
            rows.append({**row, "on the device": workers[0], "in CPU memory": workers[1]})
            shown = {key: workers[0].get(key) for key in ("ratio", "in_step_s", "exposed_s")}
            print(row, shown, workers[0].get("failed", ""), flush=True)
    return rows


def main() -> int:
    """Prints each part as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="small models")
    parser.add_argument("--parts", default="facts,copies,passes,losses,amp,kills,times")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one run")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    places.make_known(arguments.device)
    limit = arguments.limit
    size = "200000" if arguments.quick else "65000000"
    found: Found = {}
    for part in arguments.parts.split(","):
        begin = time.monotonic()
        if part == "facts":
            found[part] = facts(arguments.device)
        elif part == "copies":
            found[part] = copy_rates(torch.device(arguments.device))
        elif part == "losses":
            found[part] = compare_losses(arguments.device, limit)
        elif part == "amp":
            found[part] = without_waiting(arguments.device, limit)
        elif part == "passes":
            found[part] = run_workers(part, [arguments.device], limit, "--parameters", size)
        elif part == "kills":
            words = ["--parameters", size, "--compute", "0.1"]
            pair = [arguments.device, "cpu"]
            found[part] = [
                run_workers("until_killed", pair, limit, *words, "--dies", dies) for dies in "01"
            ]
        elif part == "nccl":
            found[part] = without_waiting(arguments.device, limit, "--backend", "nccl")
        elif part == "ddp":
            words = ["--steps", "5", "--width", "64" if arguments.quick else "2048"]
            pair = [arguments.device, arguments.device]
            found[part] = run_workers("ddp", pair, limit, *words)
        elif part == "times":
            found[part] = step_times(arguments.device, limit, arguments.quick)
        print(part, f"{time.monotonic() - begin:.1f} s", "" if part == "times" else found[part])
        sys.stdout.flush()
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
