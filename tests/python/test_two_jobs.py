"""Two jobs that save into one folder at once: no save that returned is lost in silence.

GOSSAMER_REPETITIONS=20 pytest -s tests/python/test_two_jobs.py    # as for docs/results/faults.md
"""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gossip_ranks
import pytest
from gossip_scenarios_jobs import SAVES

REPETITIONS = int(os.environ.get("GOSSAMER_REPETITIONS", "3"))
SAID = re.compile(r"another job uses .*a job that saves with gossamer.Gossip, process \d+")


@pytest.mark.parametrize("repetition", range(REPETITIONS))
def test_no_save_is_lost(repetition: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOSSAMER_TEST_FOLDER", str(tmp_path))
    with ThreadPoolExecutor() as pool:
        launches = [
            pool.submit(gossip_ranks.run, ["contested"], [2], timeout_s=450) for _ in range(2)
        ]
        jobs = [gossip_ranks.results(launch.result(), "contested") for launch in launches]
    refused = [len(ranks[0]["refused"]) for ranks in jobs]
    print(f"{repetition}: saves refused to the two jobs {refused}")
    for ranks in jobs:
        for rank in ranks:
            assert rank["lost"] == []
            assert rank["saved"] == SAVES
            assert [text for text in rank["refused"] if not SAID.search(text)] == []
    assert min(refused) == 0, "who has the folder first keeps it"
    assert max(refused) > 0, "the other one is told"
