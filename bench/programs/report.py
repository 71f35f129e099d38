"""Tables of what run.py has recorded: bench/programs/report.py out.jsonl [more.jsonl …]"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

Row = dict[str, Any]
BOUND = 0.02  # of DDP's loss


def excess(row: Row, rows: list[Row]) -> float | None:
    """Its loss over that of DDP at DDP's own rate, same program and seed, minus 1."""
    for other in rows:
        same = (other["program"], other["seed"]) == (row["program"], row["seed"])
        if same and other["contender"] == "ddp" and other["rate"] == 1 and "loss" in other:
            return float(row["loss"] / other["loss"]) - 1 if "loss" in row else None
    return None


def cell(rows: list[Row], all_rows: list[Row]) -> str:
    """The mean over the seeds; the status where there is no loss."""
    if not rows:
        return ""
    found = [value for row in rows if (value := excess(row, all_rows)) is not None]
    return f"{100 * statistics.mean(found):+.1f} %" if found else str(rows[0]["status"])


def table(rows: list[Row]) -> list[str]:
    """A line for each program, a column for each contender and rate; losses in % of DDP's."""
    programs = list(dict.fromkeys(row["program"] for row in rows))
    columns = sorted({(row["contender"], row["rate"]) for row in rows} - {("ddp", 1.0)})
    heads = [f"{contender}, {rate:g} x" for contender, rate in columns]
    lines = [f"| program | DDP's loss | {' | '.join(heads)} |", "|---" * (len(heads) + 2) + "|"]
    for program in programs:
        of_it = [row for row in rows if row["program"] == program]
        own = [r["loss"] for r in of_it if r["contender"] == "ddp" and r["rate"] == 1]
        cells = [
            cell([r for r in of_it if (r["contender"], r["rate"]) == column], rows)
            for column in columns
        ]
        lines.append(f"| {program} | {statistics.mean(own):.4f} | {' | '.join(cells)} |")
    counts = []
    for column in columns:
        found = [
            value
            for row in rows
            if (row["contender"], row["rate"]) == column
            and (value := excess(row, rows)) is not None
        ]
        counts.append(f"{sum(value <= BOUND for value in found)} of {len(found)}")
    return [*lines, f"| within {100 * BOUND:g} % | | {' | '.join(counts)} |"]


def best_table(rows: list[Row]) -> list[str]:
    """Each contender at the best of its rates, in % of DDP's loss at the best of DDP's; first seed
    only, for not every rate has others."""
    rows = [row for row in rows if row["seed"] == rows[0]["seed"] and "loss" in row]
    contenders = list(dict.fromkeys(row["contender"] for row in rows))
    lines = [f"| program | {' | '.join(contenders)} |", "|---" * (len(contenders) + 1) + "|"]
    within = dict.fromkeys(contenders, 0)
    for program in dict.fromkeys(row["program"] for row in rows):
        best = {
            contender: min(of_it, key=lambda row: row["loss"])
            for contender in contenders
            if (
                of_it := [r for r in rows if (r["program"], r["contender"]) == (program, contender)]
            )
        }
        cells = []
        for contender in contenders:
            if (found := best.get(contender)) is None:
                cells.append("none")
                continue
            over = found["loss"] / best["ddp"]["loss"] - 1
            within[contender] += over <= BOUND
            said = f"{found['loss']:.4f}" if contender == "ddp" else f"{100 * over:+.1f} %"
            cells.append(f"{said}, {found['rate']:g} x")
        lines.append(f"| {program} | {' | '.join(cells)} |")
    counts = [str(within[contender]) for contender in contenders]
    return [*lines, f"| within {100 * BOUND:g} % | {' | '.join(counts)} |"]


def costs(rows: list[Row]) -> list[str]:
    """By contender: processor time and memory over DDP's, medians over programs, and lines."""
    lines = []
    for contender in dict.fromkeys(row["contender"] for row in rows):
        cpu, memory = [], []
        for row in rows:
            ddp = [
                r
                for r in rows
                if r["contender"] == "ddp"
                and (r["program"], r["rate"], r["seed"])
                == (row["program"], row["rate"], row["seed"])
            ]
            if row["contender"] == contender and row["status"] == "ok" and ddp:
                cpu.append(row["cpu_s"] / ddp[0]["cpu_s"])
                memory.append(row["peak_mb"] - ddp[0]["peak_mb"])
        if cpu:
            lines.append(
                f"{contender}: CPU time {statistics.median(cpu):.2f} of DDP's, "
                f"{statistics.median(memory):+.0f} MB, {len(cpu)} runs"
            )
    changed = {row["program"]: row["changed"] for row in rows}
    lines += [f"{name}: +{each['added']} -{each['removed']}" for name, each in changed.items()]
    return lines


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit((__doc__ or "").strip())
    rows = [
        json.loads(line) for name in sys.argv[1:] for line in Path(name).read_text().splitlines()
    ]
    print("\n".join([*table(rows), "", *best_table(rows), "", *costs(rows)]))


if __name__ == "__main__":
    main()
