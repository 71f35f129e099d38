"""What lies in the folder that a command is started in is not run, however it is named."""

import subprocess
from pathlib import Path

import pytest
from package_runs import start_program
from report_runs import make_run

TINY = (
    "train --steps 1 --width 8 --layers 1 --heads 1 --context 8 --hosts 1 --per-host 1 "
    "--global-batch 2 --validation-samples 2 --max-bytes 20000 --transport threads"
)
MODULES = (
    *("sysconfig", "os", "site", "sitecustomize", "usercustomize", "encodings", "json", "torch"),
    *("gossamer", "gossamer_command", "numpy", "matplotlib", "jinja2", "markupsafe", "tomllib"),
    *("argparse", "importlib", "types", "pathlib", "gzip", "safetensors", "evil"),
)
COMMANDS = [
    *("topology aer --hosts 2", "simulate ring --hosts 2 --compute 1ms --parameters 1k"),
    *("plan --hosts 2 --parameters 1M --compute 10ms", "probe --transport threads", TINY),
    *("lab run --steps 2", "theory rates", "completion bash", "man", "translate run"),
    *("report run", "doctor", "demo --steps 0", "no-such-command"),
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with modules and programs that leave a mark when they are run."""
    folder = tmp_path_factory.mktemp("hostile")
    marks = folder / "marks"
    marks.mkdir()
    for name in MODULES:
        mark = f"open({str(marks / name)!r}, 'w')\n"
        (folder / f"{name}.py").write_text(mark)
    for name in ("python3", "python", "sh", "fc-list"):
        (folder / name).write_text(f"#!/bin/sh\ntouch {marks / name}\n")
        (folder / name).chmod(0o755)
    (folder / "matplotlibrc").write_text("backend: module://evil\n")
    (folder / "pyvenv.cfg").write_text(f"home = {folder}\n")
    make_run(folder / "run", "cwa", 4.0)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_of_the_working_folder_is_run(command: str, hostile: Path) -> None:
    for mark in (hostile / "marks").iterdir():
        mark.unlink()
    done = start_program(command.split(), hostile, subprocess.DEVNULL)
    assert [path.name for path in (hostile / "marks").iterdir()] == []
    is_mistake = command.split()[0] in ("translate", "demo", "no-such-command")
    assert done.returncode == (2 if is_mistake else 0), done.stderr
