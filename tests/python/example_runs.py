"""Starts examples as users do, in two processes, and reads what they print."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gossamer.launching import ports

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SECONDS = 240
EPOCH = re.compile(r"^epoch (\d+): loss ([\d.]+), test ([\d.]+)", re.MULTILINE)


@dataclass
class Run:
    losses: list[float]  # the mean of each epoch, on rank 0
    tests: list[float]
    averages: list[dict[str, float]]  # what watch_example.py noted


def example_module(name: str) -> Any:
    """What the scripts import from beside them."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def environment() -> dict[str, str]:
    package = os.environ.get("GOSSAMER_PYTHON_PATH", str(ROOT / "build" / "python"))
    paths = [package, os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def free_port() -> int:
    """Of this machine, for somebody who listens after a while."""
    return ports.free_port()


def start(script: Path, *arguments: str, workers: int = 2) -> str:
    """Runs a script under torchrun and returns its stdout; its stderr where it fails."""
    launcher = "-m torch.distributed.run --standalone --nproc-per-node".split()
    command = [sys.executable, *launcher, str(workers), str(script), *arguments]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, f"{script.name} {' '.join(arguments)}\n{done.stderr[-6000:]}"
    return done.stdout


def launch(
    program: str, *words: str | Path, restarts: int, limit_s: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """Runs a program of this folder with three workers under `gossamer launch`."""
    script = str(Path(__file__).with_name(program))
    launcher = f"-m gossamer launch -n 3 --restarts {restarts} --".split()
    return subprocess.run(
        [sys.executable, *launcher, sys.executable, script, *map(str, words)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )


def run(name: str, notes: Path, *arguments: str) -> Run:
    """Runs an example; `notes` is a file that it may not have written to yet."""
    watcher = Path(__file__).with_name("watch_example.py")
    said = start(watcher, str(notes), str(EXAMPLES / name), *arguments)
    epochs = EPOCH.findall(said)
    assert [int(number) for number, _, _ in epochs] == list(range(len(epochs))), said
    return Run(
        losses=[float(loss) for _, loss, _ in epochs],
        tests=[float(test) for _, _, test in epochs],
        averages=[json.loads(line) for line in notes.read_text().splitlines()]
        if notes.exists()
        else [],
    )
