"""The loss after equally many steps, by method, without links; figures are in bench/METRICS.md.

    bench/training/losses.py --settings text,"text sharded" --seeds 1,2,3 --json out.json

Every rank is a process with one thread of its own on this machine. It belongs to a host as the
setting says.
"""

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"  # so that there is one thread to fork

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path += [str(ROOT / place) for place in ("bench/cluster", "bench/python", "examples", "tools")]

import torch._dynamo  # noqa: E402  seconds that the first optimizer of each run would take
import torch.distributed as dist  # noqa: E402
from launches import check_package, chosen, exit_code, machine  # noqa: E402  finds gossamer
from loss_runs import SETTINGS, Losses, train  # noqa: E402
from run import text_place  # noqa: E402

import gossamer  # noqa: E402, F401  once for all runs

PATIENCE_S = 1800.0


def environment(setting: Losses, rank: int) -> dict[str, str]:
    """What torchrun gives a rank."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(setting.hosts * setting.ranks),
        "LOCAL_RANK": str(rank % setting.ranks),
        "LOCAL_WORLD_SIZE": str(setting.ranks),
        "GROUP_RANK": str(rank // setting.ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",  # nobody listens there: the store is a file
        "TORCHELASTIC_RUN_ID": f"losses-{os.getpid()}",
        "GLOO_SOCKET_IFNAME": "lo",
    }


def work(setting: Losses, rank: int, case: tuple[Any, ...], folder: Path) -> None:
    """One rank: leaves what was found, or what went wrong."""
    store = dist.FileStore(str(folder / "store"), setting.hosts * setting.ranks)
    size = setting.hosts * setting.ranks
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    found = {**train(setting, *case), "status": "ok"}
    if found["words"]:
        found["status"] = "wrong"
    (folder / f"{rank}.json").write_text(json.dumps(found))


def fork(setting: Losses, rank: int, case: tuple[Any, ...], folder: Path) -> int:
    """The process id; the child itself never comes back."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.environ.update(environment(setting, rank))
        torch.set_num_threads(1)
        # What the models return is only read.
        warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")
        work(setting, rank, case, folder)
        status = 0
    except Exception:
        (folder / f"{rank}.txt").write_text(traceback.format_exc())
    finally:
        os._exit(status)


def run(setting: Losses, case: tuple[Any, ...]) -> dict[str, Any]:
    """A run of (contender, rate, seed, text), with all its processes ended."""
    with tempfile.TemporaryDirectory() as name:
        folder, deadline = Path(name), time.monotonic() + PATIENCE_S
        children = {fork(setting, r, case, folder) for r in range(setting.hosts * setting.ranks)}
        failed = False
        while children:
            for child in tuple(children):
                pid, status = os.waitpid(child, os.WNOHANG)
                children -= {pid}
                failed = failed or status != 0
            if children and (failed or time.monotonic() > deadline):
                for child in children:
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.05)
        if not failed:
            return dict(json.loads((folder / "0.json").read_text()))
        words = [path.read_text().strip() for path in sorted(folder.glob("*.txt"))]
        return {"status": "failed", "words": words[0] if words else "no result in time"}


def rows_of(setting: Losses, seeds: list[int], text: str | None) -> list[dict[str, Any]]:
    """By contender and rate, all seeds; printed as they come."""
    rows: list[dict[str, Any]] = []
    first: list[float] = []
    for contender, rates in setting.rates.items():
        for rate in rates:
            runs = [run(setting, (contender, rate, seed, text)) for seed in seeds]
            row: dict[str, Any] = {"contender": contender, "rate": rate, "runs": runs}
            bad = [each for each in runs if each["status"] != "ok"]
            row["status"] = bad[0]["status"] if bad else "ok"
            row["load_average"] = os.getloadavg()[0]
            if not bad:
                row["losses"] = [each["loss"] for each in runs]
                first = first or row["losses"]
                row["excess"] = [a / b - 1 for a, b in zip(row["losses"], first, strict=True)]
            rows.append(row)
            print(line(row, bad), flush=True)
    return rows


def line(row: dict[str, Any], bad: list[dict[str, Any]]) -> str:
    """The row as it is printed."""
    name = f"{row['contender']:24}{row['rate']:>5g} x"
    if bad:
        return f"{name}  {row['status']}: {bad[0]['words']}"
    losses = " ".join(f"{each:.4f}" for each in row["losses"])
    excess = " ".join(f"{100 * each:+.2f} %" for each in row["excess"])
    return f"{name}{statistics.mean(row['losses']):9.4f}  {losses}  {excess}"


def compare(arguments: argparse.Namespace) -> dict[str, Any]:
    """All settings; raises ClusterError for mistakes."""
    check_package()
    known = {setting.name: setting for setting in SETTINGS}
    wanted = chosen(arguments.settings, list(known), "setting")
    seeds = [int(word) for word in arguments.seeds.split(",")]
    text = text_place(arguments.text)
    about: dict[str, Any] = {"machine": machine(), "seeds": seeds, "settings": []}
    for name in wanted:
        setting = known[name]
        if arguments.quick:
            setting = setting.short()
        hosts = f"{setting.hosts} x {setting.ranks}"
        print(f"\n{name}: {hosts}, {setting.steps} steps, lr {setting.lr}, text {text}")
        rows = rows_of(setting, seeds, text)
        about["settings"].append({"name": name, "steps": setting.steps, "rows": rows})
        if arguments.json:
            arguments.json.write_text(json.dumps(about, indent=2) + "\n")
    return about


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join(setting.name for setting in SETTINGS)
    parser.add_argument("--settings", default="text,text sharded", help=f"of {names}")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--text", help="a file or folder; by default as bench/training/run.py")
    parser.add_argument("--quick", action="store_true", help="a few steps")
    parser.add_argument("--json", type=Path, help="write everything here as well")
    arguments = parser.parse_args()
    return exit_code("losses", lambda: compare(arguments))


if __name__ == "__main__":
    sys.exit(main())
