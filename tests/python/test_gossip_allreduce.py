"""pattern="allreduce" is what DistributedDataParallel does."""

import gossip_ranks
import pytest

NEAR = 1e-6


@pytest.fixture(scope="module")
def ranks() -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(["allreduce_and_ddp", "accumulation", "partly_used"], [2, 1])


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


@pytest.mark.parametrize(
    ("codec", "rounding"), [("fp32", 1e-6), ("bf16", 2**-8), ("int8", 1 / 127)]
)
def test_who_has_a_gradient_is_not_coded(
    ranks: list[gossip_ranks.Rank], codec: str, rounding: float
) -> None:
    found = [rank[codec] for rank in gossip_ranks.results(ranks, "partly_used")]
    assert all(each == found[0] for each in found)
    large, rank_1s, nobodys = found[0]
    assert large == pytest.approx([2e6] * 4, rel=rounding)  # the mean of 1, 2 and 3 million
    assert rank_1s == pytest.approx([1e4] * 2, abs=3e6 * rounding)
    assert nobodys is None
