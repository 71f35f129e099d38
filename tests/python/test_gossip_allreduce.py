"""pattern="allreduce" is what DistributedDataParallel does."""

import gossip_ranks
import pytest

NEAR = 1e-6


@pytest.fixture(scope="module")
def ranks() -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(["allreduce_and_ddp", "accumulation"], [2, 1])


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw"])
def test_allreduce_equals_ddp_with_groups_schedule_and_clipping(
    ranks: list[gossip_ranks.Rank], optimizer: str
) -> None:
    for found in gossip_ranks.results(ranks, "allreduce_and_ddp"):
        assert found[optimizer]["difference"] < NEAR
        assert found[optimizer]["clipped"] > 10


def test_accumulated_gradients_are_averaged_once_and_everywhere(
    ranks: list[gossip_ranks.Rank],
) -> None:
    found = gossip_ranks.results(ranks, "accumulation")
    for rank in found[1:]:
        assert rank["gradients"] == found[0]["gradients"]
        assert rank["local"] != found[0]["local"]  # what no_sync() left alone
    assert any(value != 0 for value in found[0]["gradients"][-1])  # rank 0 never used the head
