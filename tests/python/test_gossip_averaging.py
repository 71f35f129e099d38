"""pattern="allreduce": whatever makes the gradients, a step is with their means."""

import gossip_ranks
import pytest
from gossip_scenarios_averaging import CASES

NEAR = 1e-6


@pytest.fixture(scope="module")
def ranks() -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(["averaged_gradients", "unequal_passes"], [1, 1])


@pytest.mark.parametrize("case", CASES)
def test_steps_are_those_with_means_made_by_hand(ranks: list[gossip_ranks.Rank], case: str) -> None:
    for found in gossip_ranks.results(ranks, "averaged_gradients"):
        assert found[case] < NEAR


def test_every_rank_is_told_of_unequal_passes_and_of_what_is_frozen_on_some(
    ranks: list[gossip_ranks.Rank],
) -> None:
    for said in gossip_ranks.results(ranks, "unequal_passes"):
        assert "unequally often in a step" in said["passes"]
        assert "gossip.no_sync()" in said["passes"]
        assert "parameter '0.weight' is frozen on some workers only" in said["frozen"]
