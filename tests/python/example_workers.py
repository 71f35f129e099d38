"""Runs of example scripts: two processes without a launcher, what they leave, and the commands of
their pages."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import example_runs

GPT = example_runs.EXAMPLES / "gpt"
WORKERS = 2
WAIT_S = 240


def start(script: str, *words: object) -> list[subprocess.Popen[str]]:
    """The workers, with the variables of torchrun."""
    port = str(example_runs.free_port())
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    counts = {"WORLD_SIZE": str(WORKERS), "LOCAL_WORLD_SIZE": str(WORKERS)}
    return [
        subprocess.Popen(
            [sys.executable, str(GPT / script), *map(str, words)],
            env=example_runs.environment()
            | shared
            | counts
            | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(WORKERS)
    ]


def finish(workers: list[subprocess.Popen[str]]) -> str:
    """What they said, once all have ended well."""
    try:
        said = [worker.communicate(timeout=WAIT_S) for worker in workers]
    finally:
        kill(workers)
    assert [worker.returncode for worker in workers] == [0] * WORKERS, said
    return "".join(out + error for out, error in said)


def kill(workers: list[subprocess.Popen[str]]) -> None:
    """At once, as a machine that is taken away."""
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.wait()


def kill_when_there(path: Path, workers: list[subprocess.Popen[str]]) -> None:
    """As soon as the path exists."""
    end = time.monotonic() + WAIT_S
    while not path.exists() and time.monotonic() < end:
        assert all(worker.poll() is None for worker in workers), finish(workers)
        time.sleep(0.005)
    kill(workers)
    for worker in workers:
        worker.communicate()
    assert path.exists(), "nothing was saved"


def losses(folder: Path, rank: int = 0, name: str = "loss") -> dict[int, float]:
    """By step; a step that was done again counts as it was done last."""
    lines = (folder / f"metrics.rank{rank}.jsonl").read_text().splitlines()
    # A line may be cut where its writer was killed.
    whole = [json.loads(line) for line in lines if line.endswith("}")]
    return {line["step"]: line[name] for line in whole if name in line}


def commands_of(page: Path, test: str) -> list[str]:
    """The blocks that this file of tests runs, by what stands above them. All blocks have a reason
    there."""
    text = page.read_text()
    blocks = re.findall(r"<!-- not run: (.+?) -->\n```bash\n(.+?)```", text, re.DOTALL)
    assert len(blocks) == text.count("```bash")
    return [block for reason, block in blocks if Path(test).name in reason]


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A block of a page as a user types it, in a folder that has what it names."""
    environment = example_runs.environment()
    package = environment["PYTHONPATH"].split(os.pathsep)[0]
    places = [str(Path(sys.executable).parent), f"{package}/gossamer/bin", environment["PATH"]]
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env={**environment, "PATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
