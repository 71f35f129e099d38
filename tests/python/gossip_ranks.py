"""Starts the workers of a test as processes of one machine; see gossip_scenarios.py."""

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import forked


@dataclass
class Rank:
    """How one process ended and what each of its scenarios returned, or how that failed."""

    code: int | None = None
    said: dict[str, Any] = field(default_factory=dict)
    stderr: str = ""


def run(scenarios: list[str], hosts: list[int], *, timeout_s: float = 150) -> list[Rank]:
    """Runs scenarios one after the other in sum(hosts) processes; hosts holds processes per host.

    None of the processes outlives the timeout or this call.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = [name, ",".join(map(str, hosts)), str(timeout_s), *scenarios]
        launcher = forked.start("gossip_scenarios", words)
        try:
            out, err = launcher.communicate(timeout_s + 30)
        finally:
            launcher.kill()
        assert launcher.returncode == 0, err
        ranks = []
        for rank, code in enumerate(json.loads(out.splitlines()[-1])):
            lines = (folder / f"{rank}.jsonl").read_text().splitlines()
            said = dict(json.loads(line) for line in lines)
            ranks.append(Rank(code, said, (folder / f"{rank}.err").read_text()))
        return ranks


def results(ranks: list[Rank], scenario: str) -> list[Any]:
    """What a scenario returned on every rank; fails where it did not return."""
    for number, rank in enumerate(ranks):
        assert scenario in rank.said, (
            f"rank {number} did not get there:\n{rank.stderr}\n{_failures(ranks)}"
        )
        assert "failed" not in rank.said[scenario], f"rank {number}: {rank.said[scenario]}"
    return [rank.said[scenario]["result"] for rank in ranks]


def _failures(ranks: list[Rank]) -> str:
    """What failed on any rank, which may be why others wait."""
    return "\n".join(
        f"rank {number}, {scenario}: {said['failed']}"
        for number, rank in enumerate(ranks)
        for scenario, said in rank.said.items()
        if "failed" in said
    )
