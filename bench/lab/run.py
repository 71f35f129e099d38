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

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy: all contenders have one core

import numpy as np
import numpy_workers

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "bin" / "lab_bench"
WORKERS, STEPS, SAMPLES, DIMENSION = 256, 10_000, 2000, 10
# Both draw data of their own from the same distribution; their errors differ by that.
ANSWER_TOLERANCE = 0.35


def gossamer_run() -> tuple[float, float]:
    """(seconds, mean squared error) of one run."""
    name = f"run/ring/workers:{WORKERS}/steps:{STEPS}"
    command = [str(PROGRAM), f"--benchmark_filter={name}", "--benchmark_format=json"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (row,) = json.loads(out)["benchmarks"]
    return row["real_time"] / 1e3, row["mse"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    arguments = parser.parse_args()
    data = numpy_workers.make_data(WORKERS, SAMPLES, DIMENSION)
    best = numpy_workers.minimiser(data)
    ratios: dict[str, list[float]] = {"rolls": [], "dense": []}
    seconds: dict[str, list[float]] = {"gossamer": [], "rolls": [], "dense": []}
    for _ in range(arguments.rounds):
        own_s, own_error = gossamer_run()
        seconds["gossamer"].append(own_s)
        for mixing, column in ratios.items():
            numpy_s, error = numpy_workers.timed_run(data, best, STEPS, mixing)
            if not abs(error / own_error - 1) < ANSWER_TOLERANCE:
                sys.exit(f"the errors differ: {error:.3g} and {own_error:.3g}")
            seconds[mixing].append(numpy_s)
            column.append(numpy_s / own_s)
    figures = {
        "workers": WORKERS,
        "steps": STEPS,
        "numpy": np.__version__,
        "gossamer_s": statistics.median(seconds["gossamer"]),
    }
    for mixing, column in ratios.items():
        figures[f"numpy_{mixing}_s"] = statistics.median(seconds[mixing])
        figures[f"speedup_over_numpy_{mixing}"] = statistics.median(column)
        figures[f"speedup_over_numpy_{mixing}_range"] = [min(column), max(column)]
    for key, value in figures.items():
        print(f"{key:34} {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
