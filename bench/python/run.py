"""Gossamer beside DDP and Decent-DP: four processes, loopback; figures are in bench/METRICS.md.

Needs decent-dp 0.2.3 (`pip install --no-deps decent-dp==0.2.3 loguru`); without it, its rows are
left out, and the output says so.
"""

import argparse
import importlib.util
import json
import math
import statistics
import sys
from pathlib import Path

from launch import launch


def start(arguments: argparse.Namespace, model: str, names: list[str], size: list[int]) -> dict:
    """All contenders in one run, taking turns; `size` is rounds, and steps of each."""
    words = ["--model", model, "--optimizer", arguments.optimizer, "--contenders", ",".join(names)]
    words += ["--rounds", str(size[0]), "--steps", str(size[1])]
    words += ["--each-a-host"] if arguments.each_a_host else []
    name = f"{', '.join(names)} on {model}"
    return launch(name, "worker.py", arguments.workers, words, timeout_s=1800)


def interval(values: list[float]) -> tuple[float, float]:
    """95 % of the median: the order statistics that it lies between (binomial, no assumption)."""
    ordered = sorted(values)
    n = len(ordered)
    below, k = 0.5**n, 0  # the chance that at most k of n values lie below the median
    while k + 1 < n / 2 and below + math.comb(n, k + 1) * 0.5**n <= 0.025:
        k += 1
        below += math.comb(n, k) * 0.5**n
    return ordered[k], ordered[n - 1 - k]


def with_interval(values: list[float]) -> list[float]:
    return [statistics.median(values), *interval(values)]


def over_alone(result: dict, name: str, clock: str) -> dict:
    """What a contender adds to the step of one that is alone, as a part of what DDP adds."""
    rounds = zip(*(result[clock][n] for n in (name, "ddp", "alone")), strict=True)
    parts = [(ours - alone) / (ddp - alone) for ours, ddp, alone in rounds]
    low, high = interval(parts)
    return {"median": statistics.median(parts), "low": low, "high": high}


def row(name: str, result: dict, base: str) -> dict:
    def ratios(clock: str, to: str) -> list[float]:
        return [a / b for a, b in zip(result[clock][name], result[clock][to], strict=True)]

    to_ddp = ratios("ms", "ddp")
    return {
        "over_alone": over_alone(result, name, "ms"),
        "cpu_over_alone": over_alone(result, name, "cpu_ms"),
        "cpu_ms_per_step": statistics.median(result["cpu_ms"][name]),
        "contender": name,
        "ms_per_step": statistics.median(result["ms"][name]),
        "ratio_to_ddp": statistics.median(to_ddp),
        "ratio_min": min(to_ddp),
        "ratio_max": max(to_ddp),
        **{
            f"{clock}_ratio_to_base": with_interval(ratios(clock, base))
            for clock in ("ms", "cpu_ms")
        },
        "last_losses": statistics.mean(result["loss"][name][-5:]),
    }


def in_words(found: dict) -> str:
    (wall, *of_wall), (cpu, *of_cpu) = found["ms_ratio_to_base"], found["cpu_ms_ratio_to_base"]
    return (
        f"{wall:.3f} ({of_wall[0]:.3f}-{of_wall[1]:.3f}), CPU "
        f"{cpu:.3f} ({of_cpu[0]:.3f}-{of_cpu[1]:.3f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--models", default="transformer,conv")
    parser.add_argument("--optimizer", default="adamw", help="adamw, rmsprop or muon")
    parser.add_argument("--contenders", help="names, with commas; alone and ddp are added")
    parser.add_argument("--base", default="ddp", help="a contender that ratios are also given to")
    parser.add_argument("--each-a-host", action="store_true", help="all payloads go over TCP")
    parser.add_argument("--memory", action="store_true", help="one run each for the peak memory")
    parser.add_argument("--quick", action="store_true", help="two workers, one model, two steps")
    parser.add_argument("--json", type=Path, help="write the rows here as well")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.workers, arguments.models = 2, "conv"
        arguments.rounds, arguments.steps = 1, 2
    names = ["alone", "ddp", "gossamer allreduce", "gossamer ring", "gossamer complete"]
    if arguments.contenders:
        names = names[:2] + arguments.contenders.split(",")
    elif arguments.optimizer != "adamw":
        names += ["gossamer"]
    elif importlib.util.find_spec("decent_dp"):
        names += ["decent-dp ring", "decent-dp complete"]
    else:
        print("decent-dp is not installed: its rows are left out", file=sys.stderr)
    rows = []
    for model in arguments.models.split(","):
        result = start(arguments, model, names, [arguments.rounds, arguments.steps])
        for name in names:
            found = {
                "model": model,
                "optimizer": arguments.optimizer,
                **row(name, result, arguments.base),
            }
            if arguments.memory:
                found["peak_mb"] = start(arguments, model, [name], [1, 3])["peak_mb"]
            rows.append(found)
            part = found["over_alone"]
            cpu = found["cpu_over_alone"]
            print(
                f"{model:12} {name:20} {found['ms_per_step']:8.1f} ms  {found['ratio_to_ddp']:.2f} "
                f"({found['ratio_min']:.2f}-{found['ratio_max']:.2f}) of DDP  beyond alone "
                f"{part['median']:.2f} ({part['low']:.2f}-{part['high']:.2f}), CPU "
                f"{cpu['median']:.2f} ({cpu['low']:.2f}-{cpu['high']:.2f}) of DDP's  loss "
                f"{found['last_losses']:.4f}"
                + (f"  {in_words(found)} of {arguments.base}" if arguments.base != "ddp" else "")
                + (f"  peak {found['peak_mb']:.0f} MB" if "peak_mb" in found else "")
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
