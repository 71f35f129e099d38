"""Writes python/gossamer/_core.pyi from the built module: .venv/bin/python tools/stubs.py [FILE]

Signatures and docstrings are those of bindings/, as pybind11-stubgen reads them. The tables below
hold what it cannot know; the rest of the script gives the stub the order of bindings/ and our look.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pybind11_stubgen

from gossamer import _core

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "python" / "gossamer" / "_core.pyi"
IMPORTS = """\
from collections.abc import Callable, Mapping, Sequence
from typing import Any
import torch
"""

# Left: the words of pybind11. Right: those of the stub.
SPELLINGS = {
    # It would convert more than numbers. Our functions promise to take numbers.
    "typing.SupportsInt | typing.SupportsIndex": "int",
    "typing.SupportsFloat | typing.SupportsIndex": "float",
    # Short names keep signatures on a line.
    "collections.abc.": "",
    "typing.Any": "Any",
}
# An exception gets them when it is raised; its class does not have them.
ATTRIBUTES = {
    "TransportError": "rank: int; peer: int; operation: str; elapsed_s: float; reason: str",
}
# A property without words that is set as it is read.
FIELD = re.compile(
    r"""@property
 +def (\w+)\(self\) -> (.+):
 +\.\.\.
 +@\1\.setter
 +def \1\(self, arg0: \2\) -> None:
 +\.\.\.
"""
)


def raw_stub() -> str:
    """The stub as it comes from pybind11-stubgen, which fails for types that Python lacks."""
    for value in vars(_core).values():
        if isinstance(value, type) and issubclass(value, Exception):
            # For tracebacks they are gossamer's. A stub that imports them from there is a circle.
            value.__module__ = _core.__name__
    with tempfile.TemporaryDirectory() as folder:
        pybind11_stubgen.main([_core.__name__, "--output-dir", folder, "--exit-code"])
        return Path(folder, "gossamer", "_core.pyi").read_text()


def name_of(node: ast.stmt) -> str:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return node.name
    return ast.unparse(node.target) if isinstance(node, ast.AnnAssign) else ""


def docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> list[ast.stmt]:
    """Without the indentation of bindings/; the quotes that end paragraphs have their own line."""
    text = ast.get_docstring(node)
    if text is None:
        return []
    return [ast.Expr(ast.Constant(f"{text}\n" if "\n\n" in text else text))]


def in_order(body: list[ast.stmt], owner: object) -> list[ast.stmt]:
    """As bindings/ defines them, not by kind and name; without what the owner does not have."""
    order = {name: place for place, name in enumerate(vars(owner))}
    return sorted((n for n in body if name_of(n) in order), key=lambda n: order[name_of(n)])


class OurLook(ast.NodeTransformer):
    def visit_Module(self, node: ast.Module) -> ast.Module:
        self.generic_visit(node)
        imports = ast.parse(IMPORTS).body
        node.body = [*docstring(node), *imports, *in_order(node.body, _core)]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self.generic_visit(node)
        attributes = ast.parse(ATTRIBUTES.get(node.name, "")).body
        members = in_order(node.body, getattr(_core, node.name))
        node.body = [*docstring(node), *attributes, *members] or node.body
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = docstring(node) or node.body
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.value = None  # the version of torch, which changes without us
        return node


def ruff(words: str, text: str) -> str:
    command = [sys.executable, "-m", "ruff", *words.split(), "--stdin-filename", str(TARGET), "-"]
    done = subprocess.run(
        command, cwd=ROOT, input=text, text=True, stdout=subprocess.PIPE, check=True
    )
    return done.stdout


def stub() -> str:
    text = raw_stub()
    for written, wanted in SPELLINGS.items():
        text = text.replace(written, wanted)
    tree = OurLook().visit(ast.parse(FIELD.sub(r"\1: \2\n", text)))
    return ruff("format", ruff("check --fix-only --quiet", ast.unparse(tree)))


if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else TARGET
    target.write_text(stub())
    sys.stderr.write(f"[stubs] wrote {target}\n")
