"""Programs as other people write them, with DDP and with Gossip; see bench/METRICS.md.

    bench/programs/run.py --programs nanogpt,resnet --rates 1,3 --json out.jsonl
    tools/cluster.py run demo -- bench/programs/run.py --launched --programs nanogpt

Every run has two processes on one torch thread each, which count as two hosts. A line of JSON for
each run; report.py makes tables of them. What a program needs and is not installed is named.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import platform
import resource
import signal
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
BUILT = FOLDER.parents[1] / "build" / "python"
sys.path[:0] = [str(FOLDER), os.environ.get("GOSSAMER_PYTHON_PATH", str(BUILT))]

import torch  # noqa: E402
import torch._dynamo  # noqa: E402  seconds that the first optimizer of each run would take
import torch.distributed as dist  # noqa: E402
from job import CONTENDERS, Job, changed_lines  # noqa: E402
from parts import text  # noqa: E402

from gossamer import _built  # noqa: E402

PROGRAMS = (
    "nanogpt",
    "mingpt",
    "resnet",
    "dcgan",
    "detection",
    "ema",
    "muon",
    "own_optimizer",
    "accelerate_lm",
    "hf_trainer",
    "lora",
    "lightning_trainer",
    "fabric",
)
SIZE = 2
PATIENCE_S = 300.0


def missing(program: str) -> list[str]:
    """Packages that it needs and that are not here; imports those that are, once for all runs."""
    absent = []
    for need in importlib.import_module(program).NEEDS:
        try:
            importlib.import_module(need)
        except ModuleNotFoundError:
            absent.append(need)
    return absent


def environment(rank: int) -> dict[str, str]:
    """What torchrun gives a rank that is alone on its host."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(SIZE),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "GROUP_RANK": str(rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",  # nobody listens there: the store is a file
        "TORCHELASTIC_RUN_ID": "programs",
        "GLOO_SOCKET_IFNAME": "lo",
    }


def peak_bytes() -> int:
    """The most resident memory since the last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024


def run_rank(program: str, job: Job, store: dist.Store | None) -> dict[str, Any]:
    """Runs it here; what it found, or how it failed. Without a store by what a launcher has set."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, began = peak_bytes(), resource.getrusage(resource.RUSAGE_SELF)
    dist.init_process_group("gloo", store=store, rank=job.rank, world_size=job.size)
    torch.manual_seed(job.seed)
    found: dict[str, Any] = {"status": "ok"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found |= importlib.import_module(program).train(job)
        except ValueError as error:
            found |= {"status": "refused", "error": str(error)}
        except Exception:
            found |= {"status": "failed", "error": traceback.format_exc()}
    ended = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    said = [str(each.message) for each in caught if "[Gossip]" in str(each.message)]
    return {
        **found,
        "cpu_s": round(cpu_s, 2),
        "peak_mb": round((peak_bytes() - before) / 1e6, 1),
        "warnings": said,
    }


def fork_rank(program: str, job: Job, folder: Path) -> int:
    """The process id; the child itself never comes back."""
    child = os.fork()
    if child != 0:
        return child
    try:
        os.environ.update(environment(job.rank))
        log = os.open(folder / f"{job.rank}.log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        store = dist.FileStore(str(folder / "store"), SIZE)
        said = json.dumps(run_rank(program, job, store))
        (folder / f"{job.rank}.json").write_text(said)
    finally:
        os._exit(0)


def run(program: str, contender: str, rate: float, seed: int, steps: int | None) -> dict[str, Any]:
    """One run, with all its processes ended; what rank 0 found."""
    jobs = [Job(contender, rate, seed, rank, SIZE, steps) for rank in range(SIZE)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        deadline = time.monotonic() + PATIENCE_S
        children = [fork_rank(program, job, folder) for job in jobs]
        for child in children:
            while os.waitpid(child, os.WNOHANG)[0] == 0:
                if time.monotonic() > deadline:
                    os.kill(child, signal.SIGKILL)
                time.sleep(0.02)
        said = folder / "0.json"
        if said.exists():
            return dict(json.loads(said.read_text()))
        return {"status": "failed", "error": (folder / "0.log").read_text()[-2000:]}


def chosen(given: str, valid: list[str], what: str) -> list[str]:
    """Names of a list with commas; ends the command for one that is not there."""
    names = given.split(",") if given else valid
    for each in names:
        if each not in valid:
            sys.exit(f"[programs] unknown {what}, got '{each}'; valid: {', '.join(valid)}")
    return names


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "gossamer": _built.VERSION,
    }


def run_launched(program: str, contender: str, options: argparse.Namespace) -> None:
    """One program with one contender, in processes that somebody has started; rank 0 tells."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rate, seed = options.rates.split(",")[0], options.seeds.split(",")[0]
    job = Job(contender, float(rate), int(seed), rank, size, options.steps)
    found = run_rank(program, job, None)
    if rank == 0:
        print(json.dumps({"program": program, "contender": contender, **found}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", default="", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--contenders", default="", help=f"of {', '.join(CONTENDERS)}")
    parser.add_argument("--rates", default="1,2,3", help="times DDP's learning rate")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--steps", type=int, help="instead of the program's own")
    parser.add_argument("--json", type=Path, help="file to add lines to")
    parser.add_argument(
        "--launched", action="store_true", help="be one rank of a launch that is there: one run"
    )
    options = parser.parse_args()
    programs = chosen(options.programs, list(PROGRAMS), "program")
    contenders = chosen(options.contenders, list(CONTENDERS), "contender")
    text()  # once for all processes
    if options.launched:
        run_launched(programs[0], contenders[0], options)
        return
    there = []
    for program in programs:
        absent = missing(program)
        if absent:
            print(f"{program:18}skipped: {', '.join(absent)} not installed", flush=True)
        else:
            there.append(program)
    plan = itertools.product(options.seeds.split(","), options.rates.split(","), there, contenders)
    for seed, rate, program, contender in plan:
        found = run(program, contender, float(rate), int(seed), options.steps)
        row = {"program": program, "contender": contender, "rate": float(rate), "seed": int(seed)}
        row |= found | {"changed": changed_lines(FOLDER / f"{program}.py"), "machine": machine()}
        result = f"{found['loss']:.4f}" if "loss" in found else found["status"]
        print(f"{program:18}{contender:22}{rate:4}{result}", flush=True)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
