"""Predicted beside measured: steps of real engines over emulated links, in one process each.

    bench/prediction/run.py --json prediction.json     (about a quarter of an hour)
    bench/prediction/run.py --quick                    (less than a minute)

Figures are defined in bench/METRICS.md. Computing is slept, so one or two cores are enough; beside
other work put `chrt -r 10` before it.
"""

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from configurations import GROUPS, INSIDE, PATTERNS, SIDES, Scene
from launching import Bench, Programs
from sides import Side, agreement, measure_side

ROOT = Path(__file__).resolve().parents[2]
REPETITIONS = 3
SECONDS, QUICK_SECONDS = 3.0, 1.0  # of a measured run
QUICK_GROUPS = 2
QUICK_SIDES = (0, -1)


@dataclass(frozen=True)
class Row:
    """One method on one scene; seconds per step."""

    scene: str
    method: str
    steps: int
    predicted_s: float
    model_s: float  # by the recursion of plan; NaN: it has none
    measured_s: tuple[float, ...]  # by launch
    compute_s: float
    cpu_load: float  # the most of all launches, in cores

    @property
    def median_s(self) -> float:
        return statistics.median(self.measured_s)

    @property
    def error(self) -> float:
        return self.predicted_s / self.median_s - 1


def measure_row(bench: Bench, scene: Scene, method: str, repetitions: int) -> Row:
    steps, predicted, model = bench.predict(scene, method)
    launches = [bench.measure(scene, method, steps) for _ in range(repetitions)]
    return Row(
        scene=scene.name,
        method=method,
        steps=steps,
        predicted_s=predicted,
        model_s=model,
        measured_s=tuple(launch["step_s"] for launch in launches),
        compute_s=launches[0]["compute_s"],
        cpu_load=max(launch["cpu_load"] for launch in launches),
    )


def choice_losses(rows: Sequence[Row]) -> dict[str, float]:
    """By scene, how much longer the steps of the predicted best are than of the measured best."""
    losses = {}
    for scene in dict.fromkeys(row.scene for row in rows):
        here = [row for row in rows if row.scene == scene]
        chosen = min(here, key=lambda row: row.predicted_s)
        losses[scene] = chosen.median_s / min(row.median_s for row in here) - 1
    return losses


def summary(rows: Sequence[Row]) -> str:
    errors = [abs(row.error) for row in rows]
    if not errors:
        return "0 configurations"
    return (
        f"{len(rows)} configurations: median error {100 * statistics.median(errors):.1f} %, "
        f"worst {100 * max(errors):.1f} %"
    )


def print_row(row: Row) -> None:
    least, most = min(row.measured_s), max(row.measured_s)
    print(
        f"{row.scene:38}{row.method:22}{1e3 * row.median_s:8.1f} "
        f"({1e3 * least:.1f}-{1e3 * most:.1f}){1e3 * row.predicted_s:9.1f}"
        f"{100 * row.error:+7.1f} %{1e3 * row.model_s:9.1f}  cpu {row.cpu_load:.2f}",
        flush=True,
    )


def print_side(side: Side) -> None:
    word = "close" if side.is_close else "right" if side.is_right else "WRONG"
    print(
        f"{side.scene:38}{side.allreduce:16}{1e3 * side.allreduce_s:8.1f}   {side.gossip:26}"
        f"{1e3 * side.gossip_s:8.1f}{side.balance:7.2f}   {side.recommended:26}{word}",
        flush=True,
    )


def measure_rows(
    bench: Bench,
    is_quick: bool,
    failures: list[str],
    groups: tuple[tuple[Scene, tuple[str, ...]], ...] = GROUPS,
) -> list[Row]:
    print(
        f"{'scene':38}{'method':22}{'measured ms':>21}{'predicted':>11}{'error':>7}{'by plan':>11}"
    )
    rows: list[Row] = []
    for scene, methods in GROUPS[:QUICK_GROUPS] if is_quick else groups:
        for method in methods:
            try:
                rows.append(measure_row(bench, scene, method, 1 if is_quick else REPETITIONS))
                print_row(rows[-1])
            except RuntimeError as error:
                failures.append(str(error))
                print(f"{scene.name:38}{method:22}  FAILED: {error}", flush=True)
    print(f"\n{summary(rows)}")
    for name, loss in choice_losses(rows).items():
        print(f"{name}: the predicted best takes {100 * loss:.1f} % longer than the best")
    return rows


def measure_sides(bench: Bench, is_quick: bool, failures: list[str]) -> list[Side]:
    print(f"\n{'scene':38}{'all-reduce':16}{'ms':>8}   {'gossip':26}{'ms':>8}{'balance':>8}")
    sides: list[Side] = []
    for scene in [SIDES[k] for k in QUICK_SIDES] if is_quick else SIDES:
        try:
            sides.append(measure_side(bench, scene))
            print_side(sides[-1])
        except RuntimeError as error:
            failures.append(str(error))
            print(f"{scene.name:38}FAILED: {error}", flush=True)
    for faster, name in ((True, "all-reduce"), (False, "gossip")):
        right, counted = agreement(sides, faster)
        print(f"{name} is faster: {right} of {counted} answered right")
    return sides


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write everything here as well")
    parser.add_argument("--quick", action="store_true", help="a few configurations, once each")
    parser.add_argument(
        "--only", choices=["steps", "patterns", "inside", "sides"], help="a part of it"
    )
    parser.add_argument("--programs", type=Path, default=ROOT / "build" / "bin", help="folder")
    arguments = parser.parse_args()
    programs = Programs(arguments.programs)
    if programs.missing():
        print(f"[prediction] {programs.missing()}: no such file; run `make build`", file=sys.stderr)
        return 2
    bench = Bench(programs, QUICK_SECONDS if arguments.quick else SECONDS)
    failures: list[str] = []
    rows: list[Row] = []
    sides: list[Side] = []
    if arguments.only in (None, "steps"):
        rows = measure_rows(bench, arguments.quick, failures)
    if arguments.only in (None, "patterns") and not arguments.quick:
        rows += measure_rows(bench, False, failures, PATTERNS)
    if arguments.only in (None, "inside") and not arguments.quick:
        rows += measure_rows(bench, False, failures, INSIDE)
    if arguments.only in (None, "sides"):
        sides = measure_sides(bench, arguments.quick, failures)
    if arguments.json:
        losses = choice_losses(rows)
        results = {
            "machine": platform.platform(),
            "load_average": os.getloadavg(),
            "rows": [asdict(row) | {"error": row.error} for row in rows],
            "choice_losses": losses,
            "sides": [asdict(side) | {"balance": side.balance} for side in sides],
            "failures": failures,
        }
        arguments.json.write_text(json.dumps(results, indent=1))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
