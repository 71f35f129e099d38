"""What a page quotes of a command is what the command says, as its golden file has it."""

import pytest
from project import ROOT

QUOTES = {"docs/planning.md": ("> aer:bf16", "plan_slow.txt")}  # page: words of the block, its file


@pytest.mark.parametrize("page", QUOTES)
def test_a_quoted_output_is_a_recorded_one(page: str) -> None:
    words, file = QUOTES[page]
    blocks = (ROOT / page).read_text().split("```text\n")[1:]
    (block,) = [each for each in (text.split("```")[0] for text in blocks) if words in each]
    recorded = (ROOT / "tests" / "golden" / file).read_text().splitlines()
    quoted = [line for line in block.splitlines() if line.strip() not in ("", "…")]
    assert [line for line in quoted if line not in recorded] == []
