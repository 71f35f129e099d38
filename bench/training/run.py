"""Real training on an emulated cluster: when is DDP's loss reached? See bench/METRICS.md.

    bench/training/run.py --settings main,late --json out.json --picture out.png

Needs Linux, iproute2 and root (tools/cluster.py). Decent-DP's rows need decent-dp 0.2.3, the
picture needs matplotlib.
"""

import argparse
import json
import math
import os
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
PLACES = ("bench/cluster", "bench/python", "examples", "examples/gpt", "tools")
sys.path += [str(ROOT / place) for place in PLACES]

import cluster as emulated  # noqa: E402
import picture  # noqa: E402
from contenders import CONTENDERS  # noqa: E402
from launches import START_S, Launch, check_package, chosen, exit_code, launch, machine  # noqa: E402
from rates import payload_bytes, rate_for  # noqa: E402
from report import heading, line, summary  # noqa: E402
from settings import SETTINGS, Setting  # noqa: E402
from text_data import load  # noqa: E402

TEXT = ROOT.parent / "shared" / "data" / "text"
QUICK: dict[str, Any] = {
    "steps": 12,
    "every": 4,
    "warm_up": 4,
    "batch": 4,
    "compute_s": 0.15,
    "validated": 20_000,
}
QUICK_CONTENDERS = {
    "main": ("ddp", "gossamer aer"),
    "late": ("gossamer ring skip",),
    "quarter": ("gossamer fitted",),
    "gpt": ("ddp", "gossamer aer int8"),
    "gpt_slow": ("gossamer allreduce int8",),
}


def patience_s(setting: Setting) -> float:
    """How long a launch may take: far more than DDP needs."""
    slowest = max(setting.factors, default=1.0) * max(setting.compute_s, 1.0)
    gamma = setting.gamma / min(setting.links, default=1.0)
    return START_S + 3 * setting.steps * setting.longest * slowest * (1 + gamma)


def text_place(given: str | None) -> str | None:
    """Of the text; None: Python's standard library. Raises ClusterError for too little."""
    place = given or (str(TEXT) if TEXT.is_dir() else None)
    try:
        load(place)
    except (OSError, ValueError) as error:
        reason = str(error).removeprefix("--data: ")  # what examples/text_data.py calls it
        raise emulated.ClusterError(f"--text: {reason}; give a larger file or folder") from error
    return place


def adjusted(setting: Setting, arguments: argparse.Namespace) -> Setting:
    """With what the command line says instead. Raises ClusterError for what makes no sense."""
    given = {
        "steps": arguments.steps,
        "compute_s": arguments.compute,
        "gamma": arguments.gamma,
        "batch": arguments.batch,
    }
    changes: dict[str, Any] = dict(QUICK) if arguments.quick else {}
    changes |= {name: value for name, value in given.items() if value is not None}
    if arguments.contenders:
        changes["contenders"] = chosen(arguments.contenders, list(CONTENDERS), "contender")
    elif arguments.quick:
        changes["contenders"] = QUICK_CONTENDERS[setting.name]
    found: Setting = replace(setting, **changes)
    for name in ("steps", "gamma", "batch"):
        if not getattr(found, name) > 0:
            raise emulated.ClusterError(f"--{name} must be above 0, got {getattr(found, name)}")
    may_be_free = arguments.rate and not found.factors
    if found.compute_s < 0 or (found.compute_s == 0 and not may_be_free):
        raise emulated.ClusterError(
            f"--compute must be above 0, got {found.compute_s:g}; 0 is for --rate, which then is "
            "not chosen by it, and for settings in which nobody is late"
        )
    return found


def run_setting(
    setting: Setting, arguments: argparse.Namespace, text: str | None, logs: Path
) -> dict[str, Any]:
    """All contenders, one after the other, on one cluster; DDP's loss is the others' target."""
    workers = emulated.parse_hosts(setting.hosts)
    if arguments.rate:
        rates = emulated.parse_rates(arguments.rate, len(workers))
    else:
        rate = rate_for(setting, sum(workers))
        rates = tuple(factor * rate for factor in setting.links or (1.0,) * len(workers))
    cluster = emulated.Cluster(f"t{os.getpid()}", workers, rates)
    print(heading(setting, payload_bytes(setting), rates, text), flush=True)
    rows: list[dict[str, Any]] = []
    target = arguments.target
    with emulated.running(cluster):
        for name in setting.contenders:
            lr = arguments.lr or setting.rates.get(name, CONTENDERS[name].lr)
            options = {
                "contender": name,
                "setting": json.dumps(asdict(setting)),
                "lr": lr,
                "seed": arguments.seed,
                "target": math.inf if target is None else target,
            }
            options |= {"text": text} if text else {}
            planned = Launch(
                FOLDER / "worker.py", options, patience_s(setting), logs, f"{setting.name}-{name}"
            )
            before = os.getloadavg()[0]
            row = summary(setting, name, launch(cluster, planned), rows, target)
            rows.append({**row, "lr": lr, "load_average": [before, os.getloadavg()[0]]})
            if name == "ddp" and target is None:
                target = row.get("final_loss")
            print(line(rows[-1]), flush=True)
    return {"setting": asdict(setting), "rates": rates, "target": target, "rows": rows}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join(setting.name for setting in SETTINGS)
    parser.add_argument("--settings", default="main,late", help=f"of {names}")
    parser.add_argument(
        "--contenders", help=f"instead of each setting's own: {', '.join(CONTENDERS)}"
    )
    parser.add_argument("--quick", action="store_true", help="a few steps of a few contenders")
    parser.add_argument("--text", help=f"a file or folder; by default {TEXT} or Python's sources")
    parser.add_argument("--seed", type=int, default=1, help="of parameters and batches")
    parser.add_argument("--steps", type=int, help="of DDP")
    parser.add_argument("--batch", type=int, help="windows per worker and step")
    parser.add_argument("--compute", type=float, help="seconds per step")
    parser.add_argument("--gamma", type=float, help="all-reduce over compute, by bytes")
    parser.add_argument(
        "--rate", help="of the links, instead of one that gives gamma: none, 9Mbit/s"
    )
    parser.add_argument("--lr", type=float, help="of all contenders, instead of their own")
    parser.add_argument("--target", type=float, help="a loss to reach, instead of DDP's last")
    parser.add_argument("--json", type=Path, help="write everything here as well")
    parser.add_argument("--picture", type=Path, help="draw the losses over time into this PNG file")
    parser.add_argument("--logs", type=Path, help="a folder for what the workers print")
    return parser


def compare(arguments: argparse.Namespace) -> dict[str, Any]:
    """All settings; raises ClusterError before the first one for every mistake that can be seen."""
    check_package()
    known = {setting.name: setting for setting in SETTINGS}
    wanted = chosen(arguments.settings, list(known), "setting")
    settings = [adjusted(known[name], arguments) for name in wanted]
    text = text_place(arguments.text)
    if arguments.picture and (reason := picture.missing()):
        raise emulated.ClusterError(f"--picture {reason}")
    about: dict[str, Any] = {"machine": machine(), "seed": arguments.seed, "settings": []}
    with tempfile.TemporaryDirectory() as scratch:
        for setting in settings:
            logs = arguments.logs or Path(scratch)
            about["settings"].append(run_setting(setting, arguments, text, logs))
            if arguments.json:
                arguments.json.write_text(json.dumps(about, indent=2))
            if arguments.picture:
                picture.draw(about, arguments.picture)
    return about


if __name__ == "__main__":
    parsed = _parser().parse_args()
    sys.exit(exit_code("training", lambda: compare(parsed)))
