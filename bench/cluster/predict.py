"""Predicted beside measured: `gossamer simulate` on settings that bench/cluster/run.py measured.

    bench/cluster/predict.py results.json ... --json predictions.json

Reads the files that `run.py --json` wrote; several of the same setting count as rounds of one.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path[:0] = [str(ROOT / "tools")]

import cluster as emulated  # noqa: E402
from settings import PATTERNS  # noqa: E402
from sleeping_model import FORWARD_SHARE, LAYERS, payload_bytes  # noqa: E402

PROGRAM = ROOT / "build" / "bin" / "gossamer"
STEPS = 200

# What a contender is called by `gossamer simulate`. Who is not here computes or sends otherwise.
METHODS = {
    "ddp": "ddp",
    "gossamer aer": "aer",
    "gossamer aer bf16": "aer:bf16",
    "gossamer aer int8": "aer:int8",
    "gossamer aer backward": "aer:backward",
    "gossamer fitted": "fitted",
    "gossamer ring": "ring",
    "gossamer one-peer-ring": "one_peer_ring",
    "gossamer one-peer-exp": "one_peer_exponential",
    "gossamer complete": "complete",
    "gossamer allreduce": "allreduce",
    "gossamer allreduce int8": "allreduce:int8",
    "gossamer gradients": "aer:int8:gradients=4",
    "gossamer gradients 2": "aer:int8:gradients=2",
    "gossamer gradients complete": "complete:int8:gradients=1",
    "gossamer gradients ring": "ring:int8:gradients=1",
    "gossamer gradients ring average 4": "ring:int8:gradients=1:average=4",
    "gossamer ring skip": "ring:skip",
    "gossamer one-peer skip": "one_peer_ring:skip",
    **{words: words for words in PATTERNS},
}
# DistributedDataParallel's first bucket has 1 MB, the next ones 25 MB.
DDP_FIRST_LAYERS = 3


@dataclass(frozen=True)
class Prediction:
    """One contender on one setting; seconds per step."""

    setting: str
    contender: str
    measured_s: float
    predicted_s: float
    compute_s: float

    @property
    def error(self) -> float:
        return self.predicted_s / self.measured_s - 1


def cluster_toml(setting: dict[str, Any]) -> str:
    """The emulated hosts, without what of them `simulate` is told by flags."""
    hosts = emulated.parse_hosts(setting["hosts"])
    rates = emulated.parse_rates(setting["rate"], len(hosts))
    return "".join(
        f'[[hosts]]\nworkers = {workers}\nlink_rate = "{rate:.0f}bit/s"\nlink_latency = "50us"\n'
        for workers, rate in zip(hosts, rates, strict=True)
    )


def workload_toml(setting: dict[str, Any], contender: str) -> str:
    layer = payload_bytes(setting["payload_bytes"]) // 4 // LAYERS
    sizes = [layer] * LAYERS
    if contender == "ddp":
        sizes = [layer * DDP_FIRST_LAYERS, layer * (LAYERS - DDP_FIRST_LAYERS)]
    text = f'bucket_sizes = {sizes}\ncompute = "{setting["compute_s"]}s"\n'
    if setting["jitter"]:
        text += f'deviation = "{setting["jitter"] * setting["compute_s"]}s"\n'
    return text + f"forward_share = {FORWARD_SHARE}\n"


def predicted_s(setting: dict[str, Any], contender: str) -> float:
    """By simulation; of those who are not late where late neighbours are skipped."""
    with tempfile.TemporaryDirectory() as folder:
        cluster, workload = Path(folder) / "cluster.toml", Path(folder) / "workload.toml"
        cluster.write_text(cluster_toml(setting))
        workload.write_text(workload_toml(setting, contender))
        line = [str(PROGRAM), "simulate", METHODS[contender], "--json", "--steps", str(STEPS)]
        line += ["--cluster", str(cluster), "--workload", str(workload)]
        skips = "skip" in METHODS[contender]
        for worker, factor in enumerate(setting["factors"]):
            if factor != 1 and not skips:
                line += ["--slow", f"{worker}:{factor}"]
        done = subprocess.run(line, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["methods"][0]["step_s"])


def measured_rows(paths: Iterable[Path]) -> dict[tuple[str, str], tuple[dict[str, Any], list[Any]]]:
    """By setting and contender: the setting, and the rows of all files that went well."""
    rows: dict[tuple[str, str], tuple[dict[str, Any], list[Any]]] = {}
    for path in paths:
        for part in json.loads(path.read_text())["settings"]:
            setting = part["setting"]
            for row in part["rows"]:
                if row["status"] != "ok" or row["contender"] not in METHODS:
                    continue
                key = (setting["name"], row["contender"])
                rows.setdefault(key, (setting, []))[1].append(row)
    return rows


def predictions(paths: Iterable[Path]) -> list[Prediction]:
    made = []
    for (name, contender), (setting, rows) in sorted(measured_rows(paths).items()):
        measured = statistics.median(row["seconds"] for row in rows)
        compute = statistics.median(row["compute_s"] for row in rows)
        made.append(Prediction(name, contender, measured, predicted_s(setting, contender), compute))
    return made


def best_choice_loss(made: Sequence[Prediction]) -> float:
    """How much longer than the best measured the one takes that was predicted to be best."""
    chosen = min(made, key=lambda each: each.predicted_s)
    return chosen.measured_s / min(each.measured_s for each in made) - 1


def print_table(made: Sequence[Prediction]) -> None:
    wide = 1 + max(len(each.contender) for each in made)
    print(f"{'setting':15}{'contender':{wide}}{'measured s':>11}{'predicted s':>12}{'error':>8}")
    for each in made:
        print(
            f"{each.setting:15}{each.contender:{wide}}{each.measured_s:11.3f}"
            f"{each.predicted_s:12.3f}{100 * each.error:+7.1f}%"
        )
    errors = [abs(each.error) for each in made]
    print(
        f"\n{len(made)} configurations: median error {100 * statistics.median(errors):.1f} %, "
        f"worst {100 * max(errors):.1f} %"
    )
    for name in sorted({each.setting for each in made}):
        loss = best_choice_loss([each for each in made if each.setting == name])
        print(f"{name}: the predicted best takes {100 * loss:.1f} % longer than the best measured")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", type=Path, help="files of run.py --json")
    parser.add_argument("--json", type=Path, help="write everything here as well")
    arguments = parser.parse_args()
    if not PROGRAM.exists():
        print(f"[predict] {PROGRAM} is missing; run `make build` first", file=sys.stderr)
        return 2
    made = predictions(arguments.results)
    if not made:
        print("[predict] no contender of these files can be predicted", file=sys.stderr)
        return 2
    print_table(made)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(each) for each in made], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
