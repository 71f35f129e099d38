"""A command whose output is lost says so, and fails."""

import os
from pathlib import Path

import pytest
from package_runs import start_program
from report_runs import make_run
from test_working_folder import TINY

PRINTING = [
    *("--help", "--version", "topology --list", "topology aer --hosts 2", "topology aer --json"),
    *("simulate ring --hosts 2 --compute 1ms --parameters 1k", "train --help", "report --help"),
    *("plan --hosts 2 --parameters 1M --compute 10ms", TINY, TINY + " --json", "man"),
    *("lab run --steps 2", "theory rates", "completion bash", "report run --json", "report run"),
    *("doctor", "doctor --json", "doctor --help"),
]


@pytest.mark.parametrize("command", PRINTING)
def test_output_that_is_lost_is_said(command: str, tmp_path: Path) -> None:
    make_run(tmp_path / "run", "cwa", 4.0)
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = start_program(command.split(), tmp_path, full)
    finally:
        os.close(full)
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1] == (
        "[gossamer] cannot write to stdout; the output is not complete: free space where it goes"
    )
    assert "Traceback" not in done.stderr
