"""Writes docs/api.md from the docstrings of the Python package: .venv/bin/python tools/api_docs.py

It reads sources and examples without importing them, so it needs neither a build nor Lightning.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "gossamer"
TARGET = ROOT / "docs" / "api.md"
INTRODUCTION = """# The Python API

`tools/api_docs.py` writes this page from the docstrings, which `help()` shows as well. Do not edit
it by hand. To start, read [from DDP in one line](from-ddp.md).

The examples use the names of a training script: `model`, `optimizer`, `loader`, `loss_of`, `rank`,
and a batch `x, y`.
"""
LONGEST_SIGNATURE = 96
OUTSIDE = (
    "theory",
    "trackers",
    "lightning",
    "transformers",
)  # what `import gossamer` does not bring

Definition = ast.ClassDef | ast.FunctionDef


def source_of(module: str) -> Path:
    """The file of a module of the package: its stub where it is not Python."""
    name = module.removeprefix("gossamer").removeprefix(".").replace(".", "/")
    path = PACKAGE / f"{name or '__init__'}.py"
    package = PACKAGE / name / "__init__.py"
    return next(each for each in (path, package, path.with_suffix(".pyi")) if each.exists())


def tree_of(module: str) -> ast.Module:
    return ast.parse(source_of(module).read_text())


def definitions(tree: ast.Module | ast.ClassDef) -> dict[str, Definition]:
    return {node.name: node for node in tree.body if isinstance(node, Definition)}


OF_CORE = ("gossamer._core", "gossamer.core_functions")
"""Whose names are those of the C++ side."""


def exported(module: str = "gossamer") -> Iterator[tuple[str, Definition]]:
    """What its `__all__` names of other modules, in the order of the imports, the C++ side last."""
    tree = tree_of(module)
    names: list[str] = next(
        (
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ),
        [],
    )
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    for node in sorted(imports, key=lambda each: each.module in OF_CORE):
        source = "gossamer._core" if node.module in OF_CORE else str(node.module)
        for alias in node.names:
            if alias.name in names:
                yield alias.name, definitions(tree_of(source))[alias.name]


def public(found: dict[str, Definition]) -> Iterator[tuple[str, Definition]]:
    for name, node in found.items():
        if not name.startswith("_") and ast.get_docstring(node):
            yield name, node


# Markdown.


def joined_blocks(docstring: str) -> list[str]:
    """Paragraphs; those of one indented block are one."""
    found: list[str] = []
    for part in docstring.split("\n\n"):
        if found and part.startswith("    ") and found[-1].startswith("    "):
            found[-1] += f"\n\n{part}"
        else:
            found.append(part)
    return found


def decorators(node: Definition) -> list[str]:
    return [ast.unparse(each).split(".")[-1] for each in node.decorator_list]


def plain(node: ast.expr) -> str:
    return ast.unparse(node).replace("_core.", "").replace("'", '"')


def argument(node: ast.arg, default: ast.expr | None, stars: str = "") -> str:
    kind = f": {plain(node.annotation)}" if node.annotation else ""
    space = " " if kind else ""
    value = f"{space}={space}{plain(default)}" if default is not None else ""
    return f"{stars}{node.arg}{kind}{value}"


def arguments_of(function: ast.FunctionDef) -> list[str]:
    """As written, without self."""
    given = function.args
    defaults = [*[None] * (len(given.args) - len(given.defaults)), *given.defaults]
    found = [argument(*pair) for pair in zip(given.args, defaults, strict=True)]
    if found[:1] == ["self"]:
        del found[0]
    if given.vararg or given.kwonlyargs:
        found.append(argument(given.vararg, None, "*") if given.vararg else "*")
    found += [argument(*pair) for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return found + ([argument(given.kwarg, None, "**")] if given.kwarg else [])


def fields_of(made: ast.ClassDef) -> list[str]:
    """Of a dataclass."""
    if not any(each.startswith("dataclass") for each in map(ast.unparse, made.decorator_list)):
        return []
    return [
        f"{ast.unparse(node.target)}: {plain(node.annotation)}"
        for node in made.body
        if isinstance(node, ast.AnnAssign)
    ]


def signature(name: str, function: ast.FunctionDef) -> str:
    returned = plain(function.returns) if function.returns else "None"
    return call(name, arguments_of(function), ")" if returned == "None" else f") -> {returned}")


def call(name: str, arguments: list[str], end: str = ")") -> str:
    """One line, or a line for each argument where that would be long."""
    line = f"{name}({', '.join(arguments)}{end}"
    if len(line) <= LONGEST_SIGNATURE:
        return line
    return "\n".join([f"{name}(", *[f"    {each}," for each in arguments], end])


def language_of(block: str) -> str:
    try:
        ast.parse(block)
    except SyntaxError:
        return "text"
    return "python"


def gossip_examples() -> dict[str, str]:
    """Fenced blocks by the member of Gossip that they show."""
    examples, left_out = (
        next(
            ast.literal_eval(node.value)
            for node in tree_of("gossamer.gossip_examples").body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
        )
        for name in ("EXAMPLES", "NOT_RUN")
    )
    return {
        name: (f"<!-- not run: {left_out[name]} -->\n" if name in left_out else "")
        + f"```python\n{text.strip()}\n```"
        for name, text in examples.items()
    }


def markdown(docstring: str) -> str:
    """Paragraphs stay; blocks after `::` are fenced, as one; `Args:` become a list."""
    parts: list[str] = []
    fence = False
    for part in joined_blocks(docstring):
        if fence and part.startswith("    "):
            block = textwrap.dedent(part)
            parts.append(f"```{language_of(block)}\n{block}\n```")
            continue
        fence = part.endswith("::")
        part = part.removesuffix(":") if fence else part
        if part.startswith("Args:\n"):
            part = textwrap.dedent(part.removeprefix("Args:\n"))
            part = re.sub(r"^(\w+(?:, \w+)*): ", r"- `\1`: ", part, flags=re.M)
            part = re.sub(r"^    ", "  ", part, flags=re.M)
        parts.append(part.replace("``", "`"))
    return "\n\n".join(parts)


def about_function(name: str, node: ast.FunctionDef, *, level: str, example: str = "") -> str:
    if "property" in decorators(node):
        head = f"{name}: {plain(node.returns)}" if node.returns else name
    else:
        head = "".join(f"@{each}\n" for each in decorators(node)) + signature(name, node)
    text = with_example(markdown(ast.get_docstring(node) or ""), example)
    return f"{level} {name}\n\n```python\n{head}\n```\n\n{text}\n"


def with_example(text: str, example: str) -> str:
    return f"{text}\n\nExample:\n\n{example}" if example else text


def about_class(name: str, node: ast.ClassDef, *, methods: bool) -> str:
    parts = [f"## {name}\n"]
    inside = definitions(node)
    if isinstance(made := inside.get("__init__"), ast.FunctionDef):
        parts.append(f"```python\n{signature(name, made)}\n```\n")
    elif fields := fields_of(node):
        parts.append(f"```python\n{call(name, fields)}\n```\n")
    examples = gossip_examples() if name == "Gossip" else {}
    text = markdown(ast.get_docstring(node) or "")
    parts.append(with_example(text, examples.get(name, "")) + "\n")
    for method, body in public(inside) if methods else ():
        if isinstance(body, ast.FunctionDef):
            example = examples.get(method, "")
            parts.append(about_function(method, body, level="###", example=example))
    return "\n".join(parts)


def about(name: str, node: Definition, *, methods: bool = True) -> str:
    if isinstance(node, ast.ClassDef):
        return about_class(name, node, methods=methods)
    return about_function(name, node, level="##")


def page() -> str:
    parts = [INTRODUCTION, *[about(name, node) for name, node in exported()]]
    for module in OUTSIDE:
        tree = tree_of(f"gossamer.{module}")
        parts.append(f"# gossamer.{module}\n\n{markdown(ast.get_docstring(tree) or '')}\n")
        # Methods there are hooks that Lightning or the Trainer call.
        found = [*exported(f"gossamer.{module}"), *public(definitions(tree))]
        parts += [about(name, node, methods=False) for name, node in found]
    return "\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(page())
    sys.stderr.write(f"[api_docs] wrote {TARGET.relative_to(ROOT)}\n")
