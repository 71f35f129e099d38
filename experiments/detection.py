"""Methods of parallel and decentralized SGD on the detection example: methods x graphs x seeds.

    .venv/bin/python experiments/detection.py --list
    .venv/bin/python experiments/detection.py --idx mnist --seeds 1
    .venv/bin/python experiments/detection.py --model fasterrcnn --seeds 1
    .venv/bin/python experiments/detection.py --table

Each run is one call of examples/detection/train_gossip.py with 8 workers on this machine. Outcomes
are in results/detection.jsonl, a line per run. A call does the runs that are not there yet; one
that was stopped goes on from its last checkpoint.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import records
from grid import ROOT, key_of
from machine import machine, said, today
from plan import Record

MINUS = "\N{MINUS SIGN}"
ALL_REDUCE = "allreduce"
METHODS = ("atc", "dmsgd", "qg_dmsgd")
GRAPHS = ("exponential", "one_peer_exponential")
NAMES = (ALL_REDUCE, *(f"{method}@{graph}" for method in METHODS for graph in GRAPHS))
TITLES = {
    ALL_REDUCE: "parallel SGD",
    "atc": "vanilla DmSGD",
    "dmsgd": "DmSGD",
    "qg_dmsgd": "QG-DmSGD",
}

RESULTS = ROOT / "experiments" / "results" / "detection.jsonl"
RUNS = ROOT / "build" / "experiments" / "detection"
EXAMPLE = ROOT / "examples" / "detection"
WORKERS = 8
RETINANET = "retinanet"
SETTINGS: dict[str, dict[str, Any]] = {
    RETINANET: {"model": RETINANET, "batch": 4, "steps": 1200, "lr": 0.1},
    "fasterrcnn": {"model": "fasterrcnn", "batch": 4, "steps": 1200, "lr": 0.1},
}
"""By model."""
EVERY = 300  # steps between validations and checkpoints
CPU_S_PER_IMAGE = 0.015  # of one core, for the estimate before any run is done


@dataclass(frozen=True)
class Run:
    name: str  # of the method, as --method takes it
    seed: int
    model: str = RETINANET

    @property
    def parts(self) -> tuple[str, str]:
        """Method and graph."""
        method, _, graph = self.name.partition("@")
        return method, graph

    @property
    def key(self) -> str:
        return key_of("", *self.parts, self.seed, SETTINGS[self.model], "")

    @property
    def folder(self) -> Path:
        name = self.name.replace("@", "-")
        return RUNS / f"{name}-{self.seed}-{hashlib.sha256(self.key.encode()).hexdigest()[:8]}"

    def words(self) -> list[str]:
        """Of the command, without the folders."""
        said = ["--method", self.name, "--seed", str(self.seed), "--validate-every", str(EVERY)]
        settings = SETTINGS[self.model].items()
        return said + [word for key, value in settings for word in (f"--{key}", str(value))]


def grid(names: Sequence[str], seeds: Iterable[int], model: str = RETINANET) -> list[Run]:
    """Seed by seed, so that whole rows of the table come early."""
    return [Run(name, seed, model) for seed in seeds for name in names]


def estimate_s(count: int, done: Iterable[Record], model: str = RETINANET) -> float:
    """Of so many runs, by those that are done on this machine or by the work of a run."""
    settings = SETTINGS[model]
    same = [each for each in done if each["settings"] == settings]
    here = [each["seconds"] for each in same if each["machine"] == machine()]
    images = WORKERS * settings["batch"] * settings["steps"]
    one = statistics.mean(here) if here else images * CPU_S_PER_IMAGE / (os.cpu_count() or 1)
    return count * one


def do(run: Run, data: Path) -> Record:
    """Trains to the end, from the last checkpoint if there is one. Raises RuntimeError where it
    fails."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(WORKERS)]
    words = [str(EXAMPLE / "train_gossip.py"), *run.words(), "--data", str(data)]
    places = ["--metrics", str(run.folder), "--save", str(run.folder / "saved")]
    is_begun = (run.folder / "saved" / "latest").exists()
    again = ["--resume", str(run.folder / "saved")] if is_begun else []
    run.folder.mkdir(parents=True, exist_ok=True)
    with (run.folder / "log").open("a") as log:
        done = subprocess.run(
            [sys.executable, *launcher, *words, *places, *again],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{run.name}, seed {run.seed} failed; {run.folder / 'log'} says why")
    return {**record_of(run), "resumed": is_begun}


def record_of(run: Run) -> Record:
    lines = [json.loads(line) for line in (run.folder / "metrics.rank0.jsonl").open()]
    checks = [line for line in lines if "ap50" in line]
    steps = [line for line in lines if "step_ms" in line]
    last = checks[-1]
    typed = ["torchrun", "--standalone", "--nproc-per-node", str(WORKERS)]
    typed += ["examples/detection/train_gossip.py", "--data", "digits", *run.words()]
    return {
        "experiment": "detection",
        "case": "",
        "method": run.parts[0],
        "topology": run.parts[1],
        "seed": run.seed,
        "settings": SETTINGS[run.model],
        "recipe_hash": "",
        "workers": WORKERS,
        "command": shlex.join(typed),
        "commit": said("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"),
        "machine": machine(),
        "date": today(),
        "ap": last["ap"],
        "ap50": last["ap50"],
        "val_loss": last["val_loss"],
        "loss": statistics.mean(line["loss"] for line in steps[-50:]),
        "disagreement": max(line.get("disagreement", 0.0) for line in checks),
        "seconds": round(sum(line["step_ms"] for line in steps) / 1e3, 1),
        "curve": [
            [line["step"], line["val_loss"], line["ap"], line["ap50"], line.get("disagreement", 0)]
            for line in checks
        ],
    }


def with_spread(values: Sequence[float]) -> str:
    mean = f"{statistics.mean(values):.3f}"
    return f"{mean} ± {statistics.stdev(values):.3f}" if len(values) > 1 else mean


def table(done: Iterable[Record], model: str = RETINANET) -> str:
    """In Markdown; differences are to parallel SGD, seed by seed."""
    here = [each for each in done if each["settings"] == SETTINGS[model]]
    base = {each["seed"]: each["ap50"] for each in here if each["method"] == ALL_REDUCE}
    lines = [
        "| method | `--method` | AP at .5 | over parallel SGD | AP | loss | seeds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in NAMES:
        method, graph = Run(name, 0).parts
        own = [each for each in here if (each["method"], each["topology"]) == (method, graph)]
        own.sort(key=lambda each: each["seed"])
        if not own:
            continue
        apart = [each["ap50"] - base[each["seed"]] for each in own if each["seed"] in base]
        apart_word = f"{statistics.mean(apart):+.3f}" if apart and graph else ""
        words = [TITLES[method], f"`{name}`", with_spread([each["ap50"] for each in own])]
        words += [apart_word.replace("-", MINUS), with_spread([each["ap"] for each in own])]
        words += [with_spread([each["val_loss"] for each in own])]
        words += [", ".join(str(each["seed"]) for each in own)]
        lines.append(f"| {' | '.join(words)} |")
    return "\n".join(lines)


def made_set(idx: Path) -> Path:
    """The example's set of 4,000 and 1,000 images, written where it is not there yet."""
    folder = RUNS / "digits"
    if not (folder / "val.json").exists():
        script = EXAMPLE / "digits.py"
        subprocess.run([sys.executable, script, "--idx", idx, "--out", folder], check=True)
    return folder


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = ROOT.parent / "shared" / "data" / "mnist"
    parser.add_argument("--idx", type=Path, default=default, help="folder with MNIST's files")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--model", choices=SETTINGS, default=RETINANET)
    parser.add_argument("--only", default="", help="methods whose names match this expression")
    parser.add_argument("--list", action="store_true", help="the grid, and what is done of it")
    parser.add_argument("--table", action="store_true", help="only the table")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    done = records.read(RESULTS)
    names = [name for name in NAMES if re.search(args.only, name)]
    runs = grid(names, map(int, args.seeds.split(",")), args.model)
    left = [run for run in runs if run.key not in done]
    if args.list:
        for run in runs:
            print(f"{'left' if run in left else 'done'}  {run.name}, seed {run.seed}")
    elif not args.table:
        minutes = estimate_s(len(left), done.values(), args.model) / 60
        print(f"{len(left)} of {len(runs)} runs are left: about {minutes:.0f} minutes", flush=True)
        if left and not args.idx.exists():
            print(f"skipped: there is no folder {args.idx} with MNIST's files; name it by --idx")
            return 0
        data = made_set(args.idx) if left else None
        for run in left:
            assert data is not None
            record = do(run, data)
            records.append(RESULTS, record)
            done[run.key] = record
            print(f"{run.name}, seed {run.seed}: AP at .5 {record['ap50']:.3f}", flush=True)
    if not args.list:
        print(table(done.values(), args.model))
    return 0


if __name__ == "__main__":
    sys.exit(main())
