"""The package as tests run it: in processes of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import gossamer

PACKAGE = Path(gossamer.__file__).parent
LIMIT_S = 120


_LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def with_package(
    environment: Mapping[str, str] | None = None, path: str | Path = PACKAGE.parent
) -> dict[str, str]:
    """An environment in which Python has the package of a folder, not the source tree's."""
    own = {"PYTHONPATH": str(path), "PYTHONSAFEPATH": "1", **(environment or {})}
    kept = {name: value for name, value in os.environ.items() if name not in _LAUNCHERS}
    return {**kept, **own}


def run(
    arguments: list[str],
    environment: Mapping[str, str] | None = None,
    path: str | Path = PACKAGE.parent,
) -> subprocess.CompletedProcess[str]:
    """Python with these arguments, with the package of a folder, outside of the source tree."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd="/",
        env=with_package(environment, path),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def start_program(words: list[str], cwd: Path, stdout: int) -> subprocess.CompletedProcess[str]:
    """`gossamer` as a user types it in a folder, with its output elsewhere."""
    without = (*_LAUNCHERS, "PYTHONPATH", "PYTHONSAFEPATH")
    return subprocess.run(
        [str(PACKAGE / "bin" / "gossamer"), *words],
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if name not in without},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def started(
    words: str, program: Path = PACKAGE / "bin" / "gossamer", **changes: str
) -> subprocess.CompletedProcess[str]:
    """`gossamer` with the words of a line, beside the Python that runs the tests."""
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(program), *words.split()],
        cwd=changes.pop("cwd", "/"),
        env={**os.environ, "PATH": here, **changes},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def launch(workers: int, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """torchrun on this machine."""
    torchrun = f"-m torch.distributed.run --standalone --nproc-per-node {workers}"
    return run([*torchrun.split(), *arguments])


def watched(
    command: list[str], environment: Mapping[str, str], limit_s: float
) -> subprocess.CompletedProcess[str]:
    """A launcher, which ends its workers where it takes too long; what all said is then shown."""
    with subprocess.Popen(
        command,
        env=with_package(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.terminate()
            out, err = process.communicate()
            raise AssertionError(f"not over after {limit_s:g} s:\n{out}\n{err}") from None
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def last_json(text: str) -> dict:
    """The object of the last line."""
    return json.loads(text.splitlines()[-1])
