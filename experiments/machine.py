"""What a result was made with."""

import datetime
import functools
import os
import platform
import subprocess
from pathlib import Path

from grid import ROOT


def machine() -> dict[str, str | int]:
    return {"cpu": cpu_model(), "cores": os.cpu_count() or 0, "kernel": platform.release()}


def cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def version(program: Path) -> str:
    return said(str(program), "--version")


def commit(program: Path) -> str:
    """The commit of the sources; empty if the program is not the one that is built from them."""
    if not program.resolve().is_relative_to(ROOT):
        return ""
    return said("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*")


@functools.cache
def said(*command: str) -> str:
    """What it printed, asked once; empty where it failed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()
