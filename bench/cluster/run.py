"""Gossamer beside DDP and Decent-DP on an emulated cluster; figures are in bench/METRICS.md.

    bench/cluster/run.py --settings slow,fast --repetitions 3 --json out.json

Needs Linux, iproute2 and root (tools/cluster.py). Decent-DP's rows need decent-dp 0.2.3.
"""

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path[:0] = [str(ROOT / "tools")]

import cluster as emulated  # noqa: E402
from contenders import CONTENDERS  # noqa: E402
from launches import START_S, Launch, check_package, chosen, exit_code, launch, machine  # noqa: E402
from limits import link_s, planned_bytes  # noqa: E402
from settings import SETTINGS, Setting  # noqa: E402
from sleeping_model import payload_bytes  # noqa: E402

COLUMNS = ("s/step", "spread", "worst", "/compute", "limit s", "/limit", "CPU s", "MB/host")


def patience_s(setting: Setting, slowest: float) -> float:
    """How long a launch may take: far more than DDP needs."""
    payload_s = 8 * setting.payload_bytes / slowest if slowest else 1.0
    compute_s = setting.compute_s * max(setting.factors, default=1.0)
    return START_S + (setting.warm + setting.steps) * 2 * (compute_s + 6 * payload_s)


def planned_launch(
    setting: Setting, cluster: emulated.Cluster, name: str, seed: int, logs: Path
) -> Launch:
    """One run of one contender."""
    shaped = [rate for rate in cluster.rates if rate]
    factors = setting.factors or (1.0,) * cluster.size
    options = {
        "contender": name,
        "hosts": ",".join(map(str, cluster.workers)),
        "bytes": setting.payload_bytes,
        "compute": setting.compute_s,
        "jitter": setting.jitter,
        "factors": ",".join(map(str, factors)),
        "seed": seed,
        "warm": setting.warm,
        "steps": setting.steps,
    }
    patience = patience_s(setting, min(shaped, default=0.0))
    return Launch(FOLDER / "worker.py", options, patience, logs, f"{setting.name}-{name}")


def summary(
    setting: Setting, cluster: emulated.Cluster, name: str, runs: list[dict[str, Any]]
) -> dict[str, Any]:
    """The row of a contender: medians over the runs, or the first run that has no figures."""
    row: dict[str, Any] = {"contender": name, "runs": runs, "status": "ok", "words": ""}
    for run in runs:
        if run["status"] != "ok":
            return {**row, "status": run["status"], "words": run["words"]}
    factors = setting.factors or (1.0,) * cluster.size
    skips = CONTENDERS[name].skips_late
    pace = min(factors) if skips else max(factors)
    counted = [rank for rank, factor in enumerate(factors) if factor == pace or not skips]
    seconds = [statistics.mean(run["workers"][r]["seconds"] for r in counted) for run in runs]
    compute = pace * statistics.median(
        statistics.mean(run["workers"][r]["computed_s"] / factors[r] for r in counted)
        for run in runs
    )
    hosts = [by_host(run["workers"], len(cluster.workers)) for run in runs]
    measured = [[(each["sent_bytes"], each["received_bytes"]) for each in run] for run in hosts]
    mixing = CONTENDERS[name].mixing
    if mixing is None:
        bytes_s = statistics.median(link_s(each, cluster.rates) for each in measured)
    else:
        planned = planned_bytes(mixing, cluster.workers, payload_bytes(setting.payload_bytes))
        bytes_s = link_s(planned, cluster.rates)
    median = statistics.median(seconds)
    return {
        **row,
        "seconds": median,
        "seconds_min": min(seconds),
        "seconds_max": max(seconds),
        "worst_step_s": max(worst_step_s(run["workers"]) for run in runs),
        "compute_s": compute,
        "ratio_to_compute": median / compute,
        "byte_limit_s": bytes_s,
        "ratio_to_limit": median / max(bytes_s, compute),
        "cpu_s": statistics.median(sum(w["cpu_s"] for w in run["workers"]) for run in runs),
        "busiest_host_bytes": statistics.median(max(map(max, each)) for each in measured),
        "retransmissions": statistics.median(
            sum(host["retransmissions"] for host in run) for run in hosts
        ),
    }


def worst_step_s(workers: list[dict[str, Any]]) -> float:
    """The longest of the counted steps, each from the last worker's end of the one before on."""
    ends = [max(each) for each in zip(*(worker["ends"] for worker in workers), strict=True)]
    return max(after - before for before, after in itertools.pairwise(ends))


def by_host(workers: list[dict[str, Any]], hosts: int) -> list[dict[str, Any]]:
    """The first worker of each host, which saw what the host's counters say."""
    first = {worker["host"]: worker for worker in reversed(workers)}
    return [first[host] for host in range(hosts)]


def line(row: dict[str, Any]) -> str:
    """The row as it is printed."""
    name = f"{row['contender']:22}"
    if row["status"] != "ok":
        return f"{name}{row['status']}: {row['words']}"
    spread = f"{row['seconds_min']:.3f}-{row['seconds_max']:.3f}"
    return (
        f"{name}{row['seconds']:8.3f}{spread:>14}{row['worst_step_s']:8.3f}{row['ratio_to_compute']:9.3f}"
        f"{row['byte_limit_s']:9.3f}{row['ratio_to_limit']:8.3f}{row['cpu_s']:8.3f}"
        f"{row['busiest_host_bytes'] / 1e6:9.3f}"
    )


def heading(setting: Setting) -> str:
    """What stands above the rows of a setting."""
    about = f"{setting.name}: hosts {setting.hosts}, {setting.rate}"
    about += f", {setting.payload_bytes / 1e6:g} MB, compute {setting.compute_s:g} s"
    if setting.jitter:
        about += f", jitter {setting.jitter:g}"
    if setting.factors:
        about += f", factors {','.join(f'{factor:g}' for factor in setting.factors)}"
    widths = (8, 14, 8, 9, 9, 8, 8, 9)
    columns = "".join(f"{word:>{width}}" for word, width in zip(COLUMNS, widths, strict=True))
    return f"\n{about}\n{'':22}{columns}"


def run_setting(
    setting: Setting, names: Sequence[str], repetitions: int, seed: int, logs: Path
) -> dict[str, Any]:
    """All contenders in turn, again and again, on one cluster."""
    workers = emulated.parse_hosts(setting.hosts)
    rates = emulated.parse_rates(setting.rate, len(workers))
    cluster = emulated.Cluster(f"b{os.getpid()}", workers, rates)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    loads = [os.getloadavg()[0]]
    with emulated.running(cluster):
        for repetition in range(repetitions):
            for name in names:
                if any(run["status"] != "ok" for run in runs[name]):
                    continue
                begin = time.monotonic()
                planned = planned_launch(setting, cluster, name, seed + repetition, logs)
                found = launch(cluster, planned)
                runs[name].append(found)
                loads.append(os.getloadavg()[0])
                took = time.monotonic() - begin
                print(f"{setting.name}: {name}: {found['status']}, {took:.0f} s", file=sys.stderr)
    print(heading(setting))
    rows = [summary(setting, cluster, name, runs[name]) for name in names]
    for row in rows:
        print(line(row), flush=True)
    return {"setting": asdict(setting), "load_average": loads, "rows": rows}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join(setting.name for setting in SETTINGS)
    parser.add_argument("--settings", default="slow,fast", help=f"of {names}")
    parser.add_argument(
        "--contenders", help=f"instead of each setting's own: {', '.join(CONTENDERS)}"
    )
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="of the jitter")
    parser.add_argument("--json", type=Path, help="write everything here as well")
    parser.add_argument("--logs", type=Path, help="a folder for what the workers print")
    return parser


def compare(arguments: argparse.Namespace) -> dict[str, Any]:
    """All settings; raises ClusterError for mistakes."""
    check_package()
    settings = {setting.name: setting for setting in SETTINGS}
    about: dict[str, Any] = {"machine": machine(), "seed": arguments.seed, "settings": []}
    if arguments.repetitions < 1:
        raise emulated.ClusterError(f"one repetition at least, got {arguments.repetitions}")
    wanted = chosen(arguments.settings, list(settings), "setting")
    own = arguments.contenders and chosen(arguments.contenders, list(CONTENDERS), "contender")
    with tempfile.TemporaryDirectory() as scratch:
        logs = arguments.logs or Path(scratch)
        for name in wanted:
            names = own or settings[name].contenders
            about["settings"].append(
                run_setting(settings[name], names, arguments.repetitions, arguments.seed, logs)
            )
            if arguments.json:
                arguments.json.write_text(json.dumps(about, indent=2) + "\n")
    return about


if __name__ == "__main__":
    parsed = _parser().parse_args()
    sys.exit(exit_code("cluster", lambda: compare(parsed)))
