"""Blocks of the pages that are marked `run on hosts of 2, 2`: each worker runs the block, then
takes some steps with the Gossip that it made."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docs_script

DOCS = Path(__file__).parents[2] / "docs"
MARKED = re.compile(r"<!-- run on hosts of ([\d, ]+) -->\n```python\n(.+?)```", re.DOTALL)
STEPS = 4


def marked() -> dict[str, tuple[list[int], str]]:
    """By place: workers per host, and the code."""
    found = {}
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text()
        for block in MARKED.finditer(text):
            line = text[: block.start()].count("\n") + 1
            hosts = [int(count) for count in block[1].split(",")]
            found[f"docs: {page.relative_to(DOCS)}:{line}"] = (hosts, block[2])
    return found


def trained_by(code: str, hosts: list[int], rank: int) -> dict[str, Any]:
    names = docs_script.names()
    names |= {"rank": rank, "hosts": len(hosts), "ranks_per_host": hosts[0]}
    exec(compile(code, "block", "exec"), names)
    gossip, model, optimizer = (names[name] for name in ("gossip", "model", "optimizer"))
    already = gossip.stats()["steps"]
    for x, y in names["loader"][:STEPS]:
        optimizer.zero_grad()
        loss = names["loss_of"](model, x, y)
        loss.backward()
        gossip.observe(loss)
        optimizer.step()
    found = {"steps": gossip.stats()["steps"] - already, "loss": loss.item()}
    found["disagreement"] = gossip.disagreement()
    gossip.close()
    return found


def scenario(code: str, hosts: list[int]) -> Callable[[int, int], dict[str, Any]]:
    return lambda rank, size: trained_by(code, hosts, rank)


BLOCKS = marked()
SCENARIOS = {place: scenario(code, hosts) for place, (hosts, code) in BLOCKS.items()}
