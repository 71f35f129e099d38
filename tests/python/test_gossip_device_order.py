"""The order of Note [Parameters on a device] and Note [Gradients on a device]: the waits of a step,
left out, are caught. And a device that fails ends the run."""

import gossip_ranks
import pytest
from device_backend import IS_REAL, WHY_NOT
from gossip_ranks import results
from gossip_scenarios_device_order import LEFT_OUT, SCENARIOS

SAME = 1e-10
pytestmark = pytest.mark.skipif(IS_REAL, reason=WHY_NOT)


@pytest.fixture(scope="module")
def ranks() -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(list(SCENARIOS), [2, 2], timeout_s=600)


@pytest.mark.parametrize("rule", LEFT_OUT)
def test_what_does_not_wait_ends_with_other_numbers(
    ranks: list[gossip_ranks.Rank], rule: str
) -> None:
    for found in results(ranks, "device_rules"):
        assert not found[rule] <= SAME


def test_a_fault_of_the_device_is_told_and_keeps_nobody_waiting(
    ranks: list[gossip_ranks.Rank],
) -> None:
    for rank, found in enumerate(results(ranks, "device_faults")):
        assert {each["pattern"] for each in found if "message" not in each} == {"cwa", "allreduce"}
        failed = [each for each in found if "message" in each]
        assert all(each["took_s"] < 20 for each in failed), failed  # far below, but for the machine
        for each in failed:
            told = "the test device has failed" if rank == 0 else "the peer"
            also = "rank 0 could not" if rank != 0 else told  # where the Gossip is made
            assert told in each["message"] or also in each["message"], each
