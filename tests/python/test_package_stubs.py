"""The stub of the extension says what the extension is, and type checkers take both."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from package_runs import PACKAGE

from gossamer import _core

Function = ast.FunctionDef
Class = ast.ClassDef
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


def stub_members(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Definitions by name, without what only type checkers need."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, Function | Class):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
    return {name: node for name, node in found.items() if is_own(name)}


def is_own(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__torch_version__")


def real_members(owner: object) -> dict[str, object]:
    return {name: value for name, value in vars(owner).items() if is_own(name)}


def stub_classes() -> Mapping[str, Class]:
    return {n: node for n, node in stub_members(STUB.body).items() if isinstance(node, Class)}


def signature(text: str) -> ast.arguments:
    """Of the first line of what pybind11 writes into a docstring."""
    function = ast.parse(f"def {text.splitlines()[0]}: ...").body[0]
    assert isinstance(function, Function)
    return function.args


def shape(arguments: ast.arguments) -> object:
    """Names, kinds and defaults."""
    return (
        [each.arg for each in arguments.args],
        [each.arg for each in arguments.kwonlyargs],
        [ast.unparse(each) for each in arguments.defaults],
        [each and ast.unparse(each) for each in arguments.kw_defaults],
    )


def functions() -> list[tuple[str, Function, object]]:
    """(name, in the stub, in the module) of all functions and methods."""
    found = []
    for name, node in stub_members(STUB.body).items():
        if isinstance(node, Function):
            found.append((name, node, getattr(_core, name)))
        if isinstance(node, Class):
            for method, inner in stub_members(node.body).items():
                if isinstance(inner, Function) and not inner.decorator_list:
                    found.append((f"{name}.{method}", inner, getattr(getattr(_core, name), method)))
    return found


def test_names_are_the_modules() -> None:
    assert set(stub_members(STUB.body)) == set(real_members(_core))


@pytest.mark.parametrize("name", stub_classes())
def test_members_are_the_classes(name: str) -> None:
    real = getattr(_core, name)
    members = stub_members(stub_classes()[name].body)
    if issubclass(real, Exception):
        bases = [ast.unparse(base) for base in stub_classes()[name].bases]
        assert bases == [base.__name__ for base in real.__bases__]
        return  # their attributes are the instances'
    expected = real_members(real)
    if "__init__" not in members:
        assert "Initialize self" in (real.__init__.__doc__ or ""), "the stub lacks a constructor"
        expected.pop("__init__", None)
    assert set(members) == set(expected)


@pytest.mark.parametrize("name", stub_classes())
def test_what_can_be_set_is_an_attribute_and_the_rest_is_a_property(name: str) -> None:
    members = stub_members(stub_classes()[name].body)
    for member, value in real_members(getattr(_core, name)).items():
        if isinstance(value, property):
            can_be_set = isinstance(members[member], ast.AnnAssign)
            assert can_be_set == (value.fset is not None), member


@pytest.mark.parametrize(("name", "stub", "real"), functions(), ids=lambda each: str(each)[:40])
def test_parameters_are_the_functions(name: str, stub: Function, real: object) -> None:
    assert shape(stub.args) == shape(signature(inspect.getdoc(real) or "")), name


@pytest.mark.parametrize(("name", "stub", "real"), functions(), ids=lambda each: str(each)[:40])
def test_functions_say_what_they_do(name: str, stub: Function, real: object) -> None:
    assert name.endswith("__init__") or ast.get_docstring(stub), name


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
