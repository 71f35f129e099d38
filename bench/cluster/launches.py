"""Launches of workers in an emulated cluster: from a command line to what they left."""

import importlib
import importlib.metadata
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("GOSSAMER_PYTHON_PATH", ROOT / "build" / "python"))
sys.path[:0] = [str(BUILT), str(ROOT / "tools")]

import cluster as emulated  # noqa: E402

START_S = 90.0  # for the imports of all workers
TO_END_S = 10.0  # between the stacks of a launch that hangs and its end
FIRST_PORT = 29400
PORTS = 500  # taken in turn: the last launch's may still be closing
_launches = iter(range(sys.maxsize))


@dataclass(frozen=True)
class Launch:
    """A worker's script and options; what the workers print goes to a file in `logs`, whose name
    begins with `name`. `patience_s`: how long it may take, far more than it should."""

    script: Path
    options: Mapping[str, object]
    patience_s: float
    logs: Path
    name: str


def launch(cluster: emulated.Cluster, what: Launch) -> dict[str, Any]:
    """What its workers found, or a status and words instead."""
    what.logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, str(what.script)]
        for option, value in {**what.options, "patience": what.patience_s, "out": out}.items():
            command += [f"--{option}", str(value)]
        number = next(_launches)
        path = os.pathsep.join([str(BUILT), os.environ.get("PYTHONPATH", "")])
        log_path = what.logs / f"{what.name.replace(' ', '-')}-{number}.log"
        with log_path.open("w") as log:
            processes = emulated.start(
                cluster,
                command,
                port=FIRST_PORT + (os.getpid() + number) % PORTS,
                extra={"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
                output=log,
            )
            codes = emulated.finish(processes, what.patience_s + TO_END_S)
        return {**read(Path(out), codes, what.patience_s), "log": log_path.name}


def read(out: Path, codes: Sequence[int], patience: float) -> dict[str, Any]:
    """What the workers of a launch left. A result counts also if they failed to end well."""
    if (out / "result.json").exists():
        workers = json.loads((out / "result.json").read_text())
        said = sorted({worker["complaint"] for worker in workers} - {""})
        status = "wrong" if said else "ok"
        return {"status": status, "words": "; ".join(said), "workers": workers, "codes": codes}
    left = [json.loads(path.read_text()) for path in out.glob("rank*.json")]
    if left:  # a refusal is the cause of what others saw; else the first error is
        first = min(left, key=lambda each: (each["status"] != "refused", each["at"]))
        return {"status": first["status"], "words": first["words"], "codes": codes}
    if all(code in (0, -signal.SIGKILL) for code in codes):
        return {"status": "hung", "words": f"no result after {patience:.0f} s", "codes": codes}
    return {"status": "failed", "words": f"workers ended with {codes}", "codes": codes}


def machine() -> dict[str, Any]:
    """What the figures depend on besides the settings."""
    packages = {}
    for package in ("torch", "decent-dp"):
        try:
            packages[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            packages[package] = "not installed"
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = {each.split(":")[1].strip() for each in lines if each.startswith("model name")}
    return {
        "cpu": sorted(models),
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "gossamer": importlib.import_module("gossamer._built").VERSION,
        "congestion_control": emulated.CONGESTION_CONTROL,
        **packages,
    }


def chosen(text: str, known: Sequence[str], what: str) -> list[str]:
    """The names in a list separated by commas."""
    names = text.split(",")
    for name in names:
        if name not in known:
            raise emulated.ClusterError(f"no {what} '{name}'; there are: {', '.join(known)}")
    return names


def check_package() -> None:
    """Raises ClusterError where there is no package to compare."""
    if not (BUILT / "gossamer" / "_built.py").exists():
        raise emulated.ClusterError(f"no gossamer in {BUILT}; run make build")


def exit_code(place: str, compare: Callable[[], dict[str, Any]]) -> int:
    """Of a command that compares: 0, or 1 where something could not run or computed the wrong
    thing, 130 where it was interrupted. `compare` returns what goes to --json."""
    emulated.exit_on_sigterm()
    try:
        about = compare()
    except emulated.ClusterError as error:
        print(f"[{place}] {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    statuses = {row["status"] for each in about["settings"] for row in each["rows"]}
    return 0 if statuses <= {"ok", "refused"} else 1
