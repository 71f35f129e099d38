"""Virtual workers beside NumPy: 256 workers on a ring, logistic regression, one sample per step.

Figures are defined in bench/METRICS.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy: all contenders have one core

import numpy as np
import numpy_workers

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "bin" / "lab_bench"
WORKERS, STEPS, SAMPLES = 256, 10_000, 2000
DIMENSIONS = (5, 10, 15, 16, 20, 30, 40)  # lab_bench has the same ones
MIXINGS = ("rolls", "dense")
# Both draw data of their own from the same distribution; their errors differ by that, by 52 % with
# 20 features.
ANSWER_FACTOR = 2.0


def gossamer_run(dimension: int) -> tuple[float, float]:
    """(CPU seconds, mean squared error) of one run; other work on the machine counts little."""
    name = f"run/ring/workers:{WORKERS}/steps:{STEPS}/dimension:{dimension}$"
    command = [str(PROGRAM), f"--benchmark_filter={name}", "--benchmark_format=json"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (row,) = json.loads(out)["benchmarks"]
    return row["cpu_time"] / 1e3, row["mse"]


def compare(dimension: int, rounds: int) -> dict:
    """The figures of a dimension; contenders take turns."""
    data = numpy_workers.make_data(WORKERS, SAMPLES, dimension)
    best = numpy_workers.minimiser(data)
    seconds: dict[str, list[float]] = {name: [] for name in ("gossamer", *MIXINGS)}
    for _ in range(rounds):
        own_s, own_error = gossamer_run(dimension)
        seconds["gossamer"].append(own_s)
        for mixing in MIXINGS:
            numpy_s, error = numpy_workers.timed_run(data, best, STEPS, mixing)
            if not 1 / ANSWER_FACTOR < error / own_error < ANSWER_FACTOR:
                sys.exit(f"d {dimension}: the errors differ: {error:.3g} and {own_error:.3g}")
            seconds[mixing].append(numpy_s)
    figures: dict[str, Any] = {"dimension": dimension}
    figures["gossamer_s"] = statistics.median(seconds["gossamer"])
    for mixing in MIXINGS:
        ratios = [a / b for a, b in zip(seconds[mixing], seconds["gossamer"], strict=True)]
        figures[f"numpy_{mixing}_s"] = statistics.median(seconds[mixing])
        figures[f"speedup_over_numpy_{mixing}"] = statistics.median(ratios)
        figures[f"speedup_over_numpy_{mixing}_range"] = [min(ratios), max(ratios)]
    return figures


def line(figures: dict) -> str:
    said = f"d {figures['dimension']:3}  gossamer {figures['gossamer_s']:.3f} s"
    for mixing in MIXINGS:
        low, high = figures[f"speedup_over_numpy_{mixing}_range"]
        said += f"  NumPy, {mixing} {figures[f'numpy_{mixing}_s']:.3f} s"
        said += f", {figures[f'speedup_over_numpy_{mixing}']:.1f} ({low:.1f}-{high:.1f}) times it"
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dimensions", default=",".join(map(str, DIMENSIONS)))
    parser.add_argument("--quick", action="store_true", help="one dimension, once")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    arguments = parser.parse_args()
    dimensions = [int(word) for word in arguments.dimensions.split(",")]
    if unknown := set(dimensions) - set(DIMENSIONS):
        parser.error(f"--dimensions must be of {DIMENSIONS}, got {sorted(unknown)}")
    if arguments.quick:
        arguments.rounds, dimensions = 1, dimensions[:1]
    found = []
    for dimension in dimensions:
        found.append(compare(dimension, arguments.rounds))
        print(line(found[-1]), flush=True)
    if arguments.json:
        about = {"workers": WORKERS, "steps": STEPS, "numpy": np.__version__, "rows": found}
        arguments.json.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
