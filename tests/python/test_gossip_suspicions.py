"""What would silently be something else than gossip is said, once; what is not, is not."""

import gossip_ranks
import pytest
from gossip_scenarios_suspicions import CLEAN, MISTAKES

SAID = {scenario.__name__: text for scenario, text in MISTAKES.items()}
SILENT = [scenario.__name__ for scenario in CLEAN]
ON_ALL_RANKS = "ddp_in_a_wrapper"  # an error, not a warning


@pytest.fixture(scope="module")
def two() -> list[gossip_ranks.Rank]:
    return gossip_ranks.run([*SAID, *SILENT], [1, 1])


@pytest.mark.parametrize("scenario", SAID)
def test_says_once(scenario: str, two: list[gossip_ranks.Rank]) -> None:
    first, second = gossip_ranks.results(two, scenario)
    assert len(first) == 1
    assert SAID[scenario] in first[0]
    assert len(second) == (scenario == ON_ALL_RANKS)


@pytest.mark.parametrize("scenario", SILENT)
def test_says_nothing(scenario: str, two: list[gossip_ranks.Rank]) -> None:
    for found in gossip_ranks.results(two, scenario):
        assert not any(found.values()) if isinstance(found, dict) else found == []
