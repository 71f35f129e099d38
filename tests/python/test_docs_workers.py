"""The Python of the pages that needs several workers: every block, on the hosts that it names."""

import math

import gossip_ranks
import pytest
from gossip_scenarios_docs import BLOCKS, STEPS

SHAPES = sorted({tuple(hosts) for hosts, _ in BLOCKS.values()})


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_blocks_train(shape: tuple[int, ...]) -> None:
    places = [place for place, (hosts, _) in BLOCKS.items() if tuple(hosts) == shape]
    ranks = gossip_ranks.run(places, list(shape))
    for place in places:
        for found in gossip_ranks.results(ranks, place):
            assert found["steps"] == STEPS, place
            assert math.isfinite(found["loss"]), place
            assert found["disagreement"] < 1, place
    assert [rank.code for rank in ranks] == [0] * len(ranks)


def test_there_are_such_blocks() -> None:
    assert len(BLOCKS) >= 9
