"""Times the fused passes beside torch and the memory yardsticks in one run.

    cmake --build build --target bench_kernels_c
    python bench/kernels/run.py --library build/bin/libbench_kernels_c.so

Numbers are defined in bench/METRICS.md, section Kernels.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from pathlib import Path

import checks
import contenders
import torch
from contenders import Contender
from native import Kernels

QUICK_PARAMETERS = 100_003


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=Path, default=Path("build/bin/libbench_kernels_c.so"))
    parser.add_argument("--parameters", type=int, default=25_000_000)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall",
                        help="cpu: time of this thread, for a machine with other work")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="few parameters, once each")
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.parameters, arguments.rounds = QUICK_PARAMETERS, 1
    return arguments


def time_rounds(entries: list[Contender], rounds: int, clock: str) -> dict[str, list[float]]:
    """Seconds of every contender in every round; one round runs each once."""
    now = time.perf_counter if clock == "wall" else time.thread_time
    seconds: dict[str, list[float]] = {entry.name: [] for entry in entries}
    for _ in range(rounds):
        for entry in entries:
            begin = now()
            entry.step()
            seconds[entry.name].append(now() - begin)
    return seconds


def ratio(seconds: dict[str, list[float]], slow: str, fast: str) -> float:
    """Median over the rounds of slow / fast."""
    return statistics.median(a / b for a, b in zip(seconds[slow], seconds[fast], strict=True))


def rows(entries: list[Contender], seconds: dict[str, list[float]], n: int) -> list[dict]:
    result = []
    for entry in entries:
        median = statistics.median(seconds[entry.name])
        size = entry.bytes_per_parameter
        gb_per_s = None if size is None else size * n / median / 1e9
        result.append({"name": entry.name, "median_s": median, "best_s": min(seconds[entry.name]),
                       "bytes_per_parameter": size, "gb_per_s": gb_per_s})  # fmt: skip
    return result


def ratios(seconds: dict[str, list[float]], entries: list[Contender]) -> dict[str, float]:
    adamw, accum, foreach, fused, alone, accum_torch, triad, streaming = (
        e.name for e in entries[:8]
    )
    result = {
        "speedup_over_foreach_sequence": ratio(seconds, foreach, adamw),
        "speedup_over_fused_sequence": ratio(seconds, fused, adamw),
        "speedup_over_fused_adamw_alone": ratio(seconds, alone, adamw),
        "accum_speedup_over_torch_operations": ratio(seconds, accum_torch, accum),
    }
    for yardstick, word in ((triad, "triad"), (streaming, "streaming_triad")):
        result[f"adamw_bandwidth_of_{word}"] = 32 / 12 * ratio(seconds, yardstick, adamw)
        result[f"accum_bandwidth_of_{word}"] = 128 / 12 * ratio(seconds, yardstick, accum)
    return result


def print_table(report: dict) -> None:
    print(f"{report['parameters']:,} parameters, one thread, {report['isa']}, "
          f"{report['rounds']} rounds, {report['clock']} time")  # fmt: skip
    for row in report["results"]:
        speed = "" if row["gb_per_s"] is None else f"{row['gb_per_s']:7.1f} GB/s"
        print(f"  {row['name']:44s} {row['median_s'] * 1e3:8.2f} ms {speed}")
    for name, value in report["ratios"].items():
        print(f"  {name:44s} {value:8.2f}")


def main() -> None:
    args = parse()
    torch.set_num_threads(1)
    kernels = Kernels(args.library)
    shared = contenders.Shared.make(args.parameters)
    entries = [
        contenders.ours_adamw(kernels, shared),
        contenders.ours_accum_adamw(kernels, shared),
        contenders.torch_adamw(shared, mix=True, foreach=True),
        contenders.torch_adamw(shared, mix=True, fused=True),
        contenders.torch_adamw(shared, mix=False, fused=True),
        contenders.torch_accum_adamw(shared),
        *contenders.yardsticks(kernels, shared),
    ]
    checks.sgd_has_the_bits_of_torch(kernels, checks.QUICK_SIZES if args.quick else checks.SIZES)
    checks.adam_has_the_answer_of_torch(kernels)
    seconds = time_rounds(entries, args.rounds, args.clock)
    report = {
        "parameters": args.parameters, "rounds": args.rounds, "clock": args.clock,
        "isa": kernels.isa(), "torch": torch.__version__, "machine": platform.processor(),
        "seed": 7, "results": rows(entries, seconds, args.parameters),
        "ratios": ratios(seconds, entries), "seconds": seconds,
    }  # fmt: skip
    print_table(report)
    if args.json:
        args.json.write_text(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
