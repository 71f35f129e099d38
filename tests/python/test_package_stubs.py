"""The stub of the extension is what tools/stubs.py makes of it, and type checkers take both."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from example_runs import ROOT
from package_runs import PACKAGE, run

STUB = ast.parse((PACKAGE / "_core.pyi").read_text())

USER_SCRIPT = """
from torch import nn

import gossamer


def train(model: nn.Module) -> float:
    optimizer = gossamer.AccumAdamW(model.parameters(), lr=1e-3)
    schedule: gossamer.Schedule = gossamer.make_schedule("ring", [2, 2], lazy=True)
    with gossamer.Gossip(model, optimizer, topology=schedule) as gossip:
        try:
            optimizer.step()
        except gossamer.TransportError as error:
            print(error.peer + 1, error.operation.upper())
        with gossip.averaged() as consensus:
            consensus.eval()
        return gossip.disagreement()
"""
WRONG_LINES = [
    'gossamer.make_schedule("ring", 4)',
    "gossamer.make_schedule(topology=3, workers_per_host=[1])",
    'gossamer.make_schedule("ring", [1]).period.upper()',
    "gossamer.Gossip()",
]
# Torch's own annotations take minutes and are not ours to check.
MYPY_SETTINGS = """
[mypy]
strict = true
[mypy-torch.*]
follow_imports = skip
[mypy-gossamer.*]
ignore_errors = true
"""


def functions() -> list[ast.FunctionDef]:
    """Of the module and its classes, without properties and special methods."""
    owners: list[ast.Module | ast.ClassDef] = [STUB]
    owners += [node for node in STUB.body if isinstance(node, ast.ClassDef)]
    found = [each for owner in owners for each in owner.body if isinstance(each, ast.FunctionDef)]
    return [each for each in found if not each.decorator_list and not each.name.startswith("__")]


def test_the_stub_is_up_to_date(tmp_path: Path) -> None:
    pytest.importorskip("pybind11_stubgen", reason="tools/setup.sh installs pybind11-stubgen")
    renewed = tmp_path / "_core.pyi"
    done = run([str(ROOT / "tools" / "stubs.py"), str(renewed)])
    assert done.returncode == 0, done.stderr
    assert (PACKAGE / "_core.pyi").read_text() == renewed.read_text(), "run tools/stubs.py"


@pytest.mark.parametrize("function", functions(), ids=lambda each: each.name)
def test_functions_say_what_they_do(function: ast.FunctionDef) -> None:
    assert ast.get_docstring(function)


def mypy(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "user.py").write_text(script)
    (folder / "mypy.ini").write_text(MYPY_SETTINGS)
    is_installed = PACKAGE.parent.name == "site-packages"  # where mypy looks by itself
    return subprocess.run(
        [sys.executable, "-m", "mypy", "user.py"],
        cwd=folder,
        env={"MYPYPATH": "" if is_installed else str(PACKAGE.parent), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_users_script_passes_strict_type_checks(tmp_path: Path) -> None:
    done = mypy(USER_SCRIPT, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrong_calls_do_not_pass(tmp_path: Path) -> None:
    done = mypy("import gossamer\n" + "\n".join(WRONG_LINES), tmp_path)
    refused = {
        int(line.split(":")[1]) - 2 for line in done.stdout.splitlines() if ": error:" in line
    }
    assert refused == set(range(len(WRONG_LINES))), done.stdout


def test_the_package_is_marked_as_typed() -> None:
    assert (PACKAGE / "py.typed").exists()
