"""docs/mistakes.md quotes what is recorded."""

import re

from project import ROOT

GOLDEN = ROOT / "tests" / "golden"


def recorded() -> dict[str, str]:
    """The messages by name, those of the commands by the command."""
    found = {}
    for part in (GOLDEN / "python_errors.txt").read_text().split("== ")[1:]:
        name, message = part.strip().split("\n", 1)
        found[name] = message
    for file in ("mistakes.txt", "train_mistakes.txt"):
        for part in (GOLDEN / file).read_text().split("$ ")[1:]:
            command, message = part.strip().split("\n", 1)
            found[command] = message
    return found


def table() -> list[tuple[str, str]]:
    """(first words, name) of each row."""
    text = (ROOT / "docs" / "mistakes.md").read_text()
    return re.findall(r"^\| [^|]+ \| `([^|]+)` \| ([^|]+) \|$", text, flags=re.MULTILINE)


def begins_with(message: str, words: str) -> bool:
    """After the kind of the error, its place and the rank, which come first."""
    before, found, _ = message.partition(words)
    known = r"\w*(Error|Warning):|\[.*?\]|rank \w+:|worker \d+:"
    return bool(found) and re.sub(known, "", before).strip() == ""


def test_there_are_25_and_each_is_recorded_with_its_words() -> None:
    messages = recorded()
    rows = table()
    assert len(rows) == 25
    assert len({name for _, name in rows}) == 25
    assert [name for words, name in rows if not begins_with(messages.get(name, ""), words)] == []


def test_each_says_what_to_do() -> None:
    """After a semicolon, or as a question."""
    messages = recorded()
    assert [name for _, name in table() if not re.search("[;?]", messages[name])] == []
