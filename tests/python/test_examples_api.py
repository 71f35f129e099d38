"""docs/api.md is what the docstrings say now."""

import importlib.util

from example_runs import ROOT

_spec = importlib.util.spec_from_file_location("api_docs", ROOT / "tools" / "api_docs.py")
assert _spec is not None and _spec.loader is not None
api_docs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(api_docs)


def test_the_page_is_up_to_date() -> None:
    assert api_docs.TARGET.read_text() == api_docs.page(), "run .venv/bin/python tools/api_docs.py"


def test_every_member_of_gossip_has_an_example() -> None:
    gossip = api_docs.definitions(api_docs.tree_of("gossamer.gossip"))["Gossip"]
    members = {name for name, _ in api_docs.public(api_docs.definitions(gossip))}
    assert set(api_docs.gossip_examples()) == {"Gossip", *members}


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
