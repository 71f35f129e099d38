"""Whether `gossamer plan` chooses what `gossamer simulate` finds best, on a grid of clusters.

    bench/prediction/choices.py --json choices.json     (an hour)
    bench/prediction/choices.py --quick                 (some seconds)

Four hosts of 1 to 8 workers, 1 to 300 GB/s inside a host, 1 to 100 Gbit/s between hosts; 65 M
parameters, 70 ms of compute. Figures are defined in bench/METRICS.md.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PER_HOST = tuple(range(1, 9))
INSIDE_GBYTE_PER_S = (1, 3, 10, 30, 100, 300)
LINK_GBIT_PER_S = (1, 2, 4, 6, 10, 16, 25, 50, 100)
WARM_UP = 20
# Whole periods of nearly all schedules, of those with averages over all, and of base_k with local
# steps.
STEPS, AVERAGING_STEPS, LONG_STEPS = 60, 64, 120
WORST_FACTOR, WORST_APART = 1.05, 0.10


@dataclass(frozen=True)
class Case:
    """`factor`: time to the loss of plan's first choice over the best's, both by simulation, with
    plan's ratio of steps. `apart`: the largest difference of plan's steps from the simulated ones,
    relative to these, over what plan simulates, the ten best; `recursion_apart`: over all others,
    and how many of these are further than `WORST_APART`."""

    per_host: int
    inside: float
    link: float
    chosen: str
    best: str
    factor: float
    apart: float
    recursion_apart: float
    recursion_far: int
    methods: int


def call(program: Path, words: Sequence[str]) -> dict[str, Any]:
    done = subprocess.run([str(program), *words, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def steps_of(method: str) -> int:
    if ":average" in method:
        return AVERAGING_STEPS
    return LONG_STEPS if method.startswith("base_k") and ":local" in method else STEPS


def compare(program: Path, per_host: int, inside: float, link: float) -> Case:
    scene = ["--hosts", "4", "--per-host", str(per_host), "--inside-rate", f"{inside}GB/s"]
    scene += ["--link-rate", f"{link}Gbit/s", "--parameters", "65M", "--compute", "70ms"]
    plan = call(program, ["plan", *scene, "--show", "1000"])["candidates"]
    planned = {each["method"]: each for each in plan}
    by_steps: dict[int, list[str]] = {}
    for method in planned:
        by_steps.setdefault(steps_of(method), []).append(method)
    simulated = {
        each["method"]: each["step_s"]
        for steps, methods in by_steps.items()
        for each in call(
            program,
            ["simulate", *methods, *scene, "--steps", str(steps), "--warm-up", str(WARM_UP)],
        )["methods"]
    }
    total = {
        method: simulated[method] * each["steps_ratio"]
        for method, each in planned.items()
        if each["steps_ratio"] is not None
    }
    best = min(total, key=lambda method: total[method])
    chosen = plan[0]["method"]
    apart: dict[bool, list[float]] = {True: [], False: []}
    for method, each in planned.items():
        apart[each["simulated"]].append(abs(each["step_s"] / simulated[method] - 1))
    return Case(
        per_host,
        inside,
        link,
        chosen,
        best,
        total[chosen] / total[best],
        max(apart[True]),
        max(apart[False]),
        sum(each > WORST_APART for each in apart[False]),
        len(planned),
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write everything here as well")
    parser.add_argument("--quick", action="store_true", help="two clusters")
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "bin" / "gossamer")
    arguments = parser.parse_args()
    axes: list[tuple[float, ...]] = [PER_HOST, INSIDE_GBYTE_PER_S, LINK_GBIT_PER_S]
    if arguments.quick:
        axes = [(1, 2), (10,), (10,)]
    cases = []
    for per_host, inside, link in itertools.product(*axes):
        case = compare(arguments.program, int(per_host), inside, link)
        cases.append(case)
        if arguments.json:  # a run that is stopped has shown something, too
            arguments.json.write_text(json.dumps([asdict(each) for each in cases], indent=1) + "\n")
        if case.factor > WORST_FACTOR or case.apart > WORST_APART:
            print(case, flush=True)
    factors = [case.factor for case in cases]
    methods = sum(case.methods for case in cases)
    print(
        f"{len(cases)} cases, {methods} methods: the first choice takes "
        f"{statistics.median(factors):.3f} (median) to {max(factors):.3f} of the best's time; "
        "plan and simulate are at most "
        f"{100 * max(case.apart for case in cases):.1f} % apart in the ten best, and in the others "
        f"{100 * max(case.recursion_apart for case in cases):.1f} %, "
        f"{sum(case.recursion_far for case in cases)} of them more than {100 * WORST_APART:.0f} %"
    )
    is_good = max(factors) <= WORST_FACTOR and max(c.apart for c in cases) <= WORST_APART
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
