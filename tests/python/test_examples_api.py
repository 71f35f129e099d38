"""docs/api.md is what the docstrings say now."""

import ast
import importlib
import importlib.util
import inspect
import pydoc

from example_runs import ROOT

import gossamer
from gossamer.gossip_examples import EXAMPLES, NOT_RUN

_spec = importlib.util.spec_from_file_location("api_docs", ROOT / "tools" / "api_docs.py")
assert _spec is not None and _spec.loader is not None
api_docs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(api_docs)


def nodes_of(module: str) -> list[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    """The public names of a module beside the package, with their sources."""
    name = f"gossamer.{module}"
    own = api_docs.public(api_docs.definitions(api_docs.tree_of(name)))
    return [*api_docs.exported(name), *own]


def names_of(module: str) -> list[str]:
    if module != "gossamer":
        return [name for name, _ in nodes_of(module)]
    return [name for name in gossamer.__all__ if name != "__version__"]


def test_the_page_is_up_to_date() -> None:
    assert api_docs.TARGET.read_text() == api_docs.page(), "run .venv/bin/python tools/api_docs.py"


def test_every_member_of_gossip_has_an_example() -> None:
    gossip = api_docs.definitions(api_docs.tree_of("gossamer.gossip"))["Gossip"]
    members = {name for name, _ in api_docs.public(api_docs.definitions(gossip))}
    assert set(api_docs.gossip_examples()) == {"Gossip", *members}
    assert set(NOT_RUN) < set(EXAMPLES)


def test_help_has_an_example_for_every_public_name() -> None:
    """Lightning and transformers need packages that may be missing: their sources are read."""
    found = {name: inspect.getdoc(getattr(gossamer, name)) for name in names_of("gossamer")}
    for module in ("theory", "trackers"):
        there = importlib.import_module(f"gossamer.{module}")
        found |= {name: inspect.getdoc(getattr(there, name)) for name in names_of(module)}
    for module in ("lightning", "transformers"):
        nodes = dict(nodes_of(module))
        found |= {name: ast.get_docstring(node) for name, node in nodes.items()}
    found |= {
        f"Gossip.{name}": inspect.getdoc(getattr(gossamer.Gossip, name))
        for name in EXAMPLES
        if name != "Gossip"
    }
    assert len(found) >= 39 + 18
    assert [name for name, words in found.items() if "Example" not in str(words)] == []


def test_help_shows_the_example_of_the_page() -> None:
    shown = pydoc.plain(pydoc.render_doc(gossamer.Gossip.mean))
    assert "The mean over all workers" in shown
    assert EXAMPLES["mean"].strip().splitlines()[-1] in shown


def test_everything_exported_has_a_section_and_words() -> None:
    sections = api_docs.page().split("\n## ")[1:]
    words = {each.split("\n", 1)[0]: "".join(each.split("```")[::2]).split() for each in sections}
    names = [name for name, _ in api_docs.exported()]
    assert {"Gossip", "AccumAdam", "Schedule", "make_schedule"} <= set(names)
    assert all(len(words[name]) > 3 for name in names)


def test_arguments_become_a_list_and_formulas_a_block() -> None:
    text = "Adds.\n\nArgs:\n    one: ``1``,\n        or more.\n\nSo::\n\n    a ← b\n\nEnd."
    assert api_docs.markdown(text) == (
        "Adds.\n\n- `one`: `1`,\n  or more.\n\nSo:\n\n```text\na ← b\n```\n\nEnd."
    )


def test_a_block_keeps_its_empty_lines_and_is_python_where_it_can_be() -> None:
    text = "Adds.\n\nExample::\n\n    a = 1\n\n    b = a\n\nEnd."
    assert api_docs.markdown(text) == "Adds.\n\nExample:\n\n```python\na = 1\n\nb = a\n```\n\nEnd."
