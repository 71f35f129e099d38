"""Every code block of the documentation works, and every link leads somewhere."""

import re
import warnings
from pathlib import Path

import pytest
from doc_blocks import blocks, try_block, work_folder
from project import project_files, relative

LANGUAGES = {"bash", "cpp", "toml", "text", "console", "python", "diff", "json"}
DOCUMENTS = project_files(".md")
NOTE = re.compile(r"Note \[([^\]]+)\]")


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_every_block_works(document: Path, tmp_path: Path) -> None:
    folder = work_folder(tmp_path)
    for block in blocks(document.read_text()):
        place = f"{relative(document)}:{block.line}"
        assert block.language in LANGUAGES, f"{place}: a block must name its language"
        if block.not_run:
            warnings.warn(f"{place} is not run: {block.not_run}", stacklevel=1)
        said = try_block(block, folder)
        assert not said, f"{place}:\n{block.text}\n{said}"


def anchors(markdown: str) -> set[str]:
    """What a link may have behind its `#`: headings as GitHub names them, and names set by hand."""
    bare = re.sub(r"^(`{3,}).*?^\1`*$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    found = set(re.findall(r'<a id="([^"]+)">', bare))
    for heading in re.findall(r"^#+ (.+?)\s*$", bare, re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = next(k for k in range(1000) if (f"{name}-{k}" if k else name) not in found)
        found.add(f"{name}-{number}" if number else name)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_every_link_leads_somewhere(document: Path) -> None:
    text = document.read_text()
    wrong = []
    for file, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if "://" in file:
            continue
        target = document.parent / file if file else document
        if not target.exists():
            wrong.append(file)
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
            wrong.append(f"{file}#{anchor}")
    assert wrong == []


def test_every_note_that_is_named_exists() -> None:
    code = "".join(path.read_text() for path in project_files(".h", ".cpp", ".py"))
    notes = {name for path in DOCUMENTS for name in NOTE.findall(path.read_text())}
    assert "Plans" in notes
    assert {
        name for name in notes if not re.search(rf"Note \[{re.escape(name)}\][:.]", code)
    } == set()


def test_anchors_are_those_of_headings() -> None:
    markdown = '# What\'s `a_b`, and [why](c.md)?\n\n```bash\n# no heading\n```\n<a id="own"></a>\n'
    assert anchors(markdown) == {"whats-a_b-and-why", "own"}


def test_blocks_know_language_line_and_reason() -> None:
    text = "# T\n```bash\ntrue\n```\n\n<!-- not run: slow -->\n```cpp\nint x;\n```\n"
    first, second = blocks(text)
    assert (first.language, first.line, first.text, first.not_run) == ("bash", 2, "true\n", "")
    assert (second.language, second.line, second.text) == ("cpp", 7, "int x;\n")
    assert second.not_run == "slow"


@pytest.mark.parametrize(
    ("language", "good", "bad"),
    [
        ("bash", "test -f Makefile > made.txt", "false | true"),
        ("cpp", '#include "gossamer/base/rng.h"\ngossamer::Rng rng(1);', "int x"),
        ("toml", "a = 1", "a = "),
    ],
)
def test_the_runner_tells_good_from_bad(language: str, good: str, bad: str, tmp_path: Path) -> None:
    folder = work_folder(tmp_path)
    good_block, bad_block = blocks(f"```{language}\n{good}\n```\n```{language}\n{bad}\n```\n")
    assert try_block(good_block, folder) == ""
    assert try_block(bad_block, folder) != ""
