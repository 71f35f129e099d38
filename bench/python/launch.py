"""Starts the processes of a measurement and reads what rank 0 of them writes."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BUILT = Path(os.environ.get("GOSSAMER_PYTHON_PATH", FOLDER.parents[1] / "build" / "python"))


def launch(name: str, script: str, workers: int, words: list[str], *, timeout_s: float) -> dict:
    """What the script has written to --out; ends this program where there is nothing."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(workers), str(FOLDER / script), "--out", str(out)]
        path = os.pathsep.join([str(BUILT), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        done = subprocess.run([*command, *words], check=False, env=environment, timeout=timeout_s)
        if not out.exists():
            sys.exit(f"{name}: ended with code {done.returncode}")
        if done.returncode != 0:  # decent-dp has no close and may abort after the result is written
            print(f"{name}: aborted at exit", file=sys.stderr)
        found: dict = json.loads(out.read_text())
        return found
