"""The command `gossamer` of the package."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from package_runs import PACKAGE, run

COMMAND = ["-m", "gossamer_command"]


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The program that the command stands before."""
    command = [str(PACKAGE / "bin" / "gossamer"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def without_torch(tmp_path: Path) -> str:
    """A path to import from on which torch cannot be imported."""
    (tmp_path / "torch.py").write_text("raise AssertionError('torch was imported')")
    return f"{tmp_path}:{PACKAGE.parent}"


@pytest.mark.parametrize(
    "arguments", ["--version", "topology --list", "no-such-command", "train --no-such"]
)
def test_it_says_what_the_program_says_and_loads_no_torch(
    arguments: str, without_torch: str
) -> None:
    done = run([*COMMAND, *arguments.split()], path=without_torch)
    expected = program(*arguments.split())
    assert (done.returncode, done.stdout) == (expected.returncode, expected.stdout)
    assert done.stderr == expected.stderr


@pytest.mark.parametrize("arguments", ["", "--help", "-h", "help"])
def test_the_help_is_the_programs_and_names_the_doctor(arguments: str, without_torch: str) -> None:
    done = run([*COMMAND, *arguments.split()], path=without_torch)
    assert (done.returncode, done.stdout) == (0, program("--help").stdout)
    assert "doctor" in done.stdout


@pytest.mark.parametrize("command", ["report", "doctor", "launch"])
def test_the_programs_help_has_the_flags_of_pythons_commands(command: str) -> None:
    def flags(text: str) -> set[str]:
        found = re.findall(r"--[a-z]+(?:-[a-z]+)*", text.split("usage:")[-1])
        return {flag for flag in found if not flag.startswith("--nproc")}  # torchrun's

    ours, pythons = program(command, "--help"), run([*COMMAND, command, "--help"])
    assert (ours.returncode, pythons.returncode) == (0, 0)
    assert flags(ours.stdout) >= flags(pythons.stdout) >= {"--help"}


def test_the_package_as_a_module_is_the_command() -> None:
    assert run(["-m", "gossamer", "--version"]).stdout == program("--version").stdout


def test_a_package_without_programs_says_so(tmp_path: Path) -> None:
    (tmp_path / "gossamer").mkdir()
    (tmp_path / "gossamer" / "__init__.py").touch()
    both = f"{tmp_path}:{PACKAGE.parent}"
    done = run([*COMMAND, "topology"], path=both)
    assert done.returncode == 1
    assert "pip install" in done.stderr


def test_the_doctor_says_what_keeps_the_package_from_loading(without_torch: str) -> None:
    Path(without_torch.split(":")[0], "torch.py").write_text("raise ImportError('[here] broken')")
    done = run([*COMMAND, "doctor"], path=without_torch)
    assert (done.returncode, done.stdout) == (2, "")
    assert "[here] broken" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_a_python_that_this_user_may_not_enter_is_named() -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        for folder in ("build/bin", "build/python", ".venv/bin", "private"):
            (top / folder).mkdir(parents=True)
        shutil.copy(PACKAGE / "bin" / "gossamer", top / "build" / "bin")
        (top / "build" / "python" / "gossamer_command.py").touch()
        (top / "private").chmod(0o700)
        (top / ".venv" / "bin" / "python3").symlink_to(top / "private" / "python3")
        done = subprocess.run(
            [str(top / "build" / "bin" / "gossamer"), "report", "run"],
            user=65534,
            group=65534,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "[report] cannot start Python: Permission denied" in done.stderr
    assert f"{name}/.venv/bin/python3; let this user read and enter" in done.stderr
