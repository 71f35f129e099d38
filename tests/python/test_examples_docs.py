"""The Python in the guides runs: each block alone, on one worker, with a script's names."""

import re
from pathlib import Path

import docs_script
import pytest
from example_runs import ROOT

import gossamer

GUIDES = (
    "from-ddp.md",
    "which-model.md",
    "methods.md",
    "methods/own.md",
    "lost-workers.md",
    "migrating.md",
    "api.md",
    "theory.md",
    "research.md",
    "when-not.md",
)


# Other tests try these: with files of a cluster, before a Gossip, with packages of others, started
# by a launcher.
ELSEWHERE = (
    '"cluster.toml"',
    "gossamer.probe(",
    "gossamer.lightning",
    "gossamer.transformers",
    "gossamer.trackers",
    "gossamer.init(",
    "gossamer.DdpMetrics(",  # tests/python/test_ddp_metrics.py makes its calls
)


MARKS = ("<!-- not run: ", "<!-- run on hosts of ")


def code_blocks(guide: str) -> list[tuple[str, str]]:
    """(place, code) of each block that is not marked, but the signatures of api.md. What is marked
    `run on hosts of 2, 2` is of test_docs_workers.py."""
    lines = (ROOT / "docs" / guide).read_text().splitlines()
    found = []
    for start, line in enumerate(lines):
        if line == "```python" and not lines[start - 1].startswith(MARKS):
            code = "\n".join(lines[start + 1 : lines.index("```", start)])
            is_signature = guide == "api.md" and lines[start - 2].startswith("#")
            if not is_signature and not any(word in code for word in ELSEWHERE):
                found.append((f"{guide}:{start + 1}", code))
    return found


BLOCKS = [block for guide in GUIDES for block in code_blocks(guide)]


@pytest.mark.parametrize("code", [code for _, code in BLOCKS], ids=[place for place, _ in BLOCKS])
def test_a_block_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = docs_script.names()
    if "gossamer.Gossip(" not in code:
        names["gossip"] = gossamer.Gossip(names["model"], names["optimizer"])
    before = names["gossip"].stats()["steps"] if "gossip" in names else 0
    exec(compile(code, "block", "exec"), names)
    if "with gossamer.Gossip(" not in code and "gossip.close()" not in code:
        stepped = names["gossip"].stats()["steps"] > before
        names["gossip"].close()
        assert stepped == ("optimizer.step()" in code or "scaler.step(" in code)
    is_told_to_stop = "StopOnSignal" in code  # which nobody does here, so nothing is saved
    saved = [] if is_told_to_stop else re.findall(r'save\((?:.+, )?"([^"]+)"', code)
    saved += re.findall(r'(?:metrics|trace)="([^"]+)"', code)
    assert [path.name for path in tmp_path.iterdir()] == saved


def test_every_guide_but_the_last_has_code() -> None:
    assert {place.split(":")[0] for place, _ in BLOCKS} == set(GUIDES[:-1])
