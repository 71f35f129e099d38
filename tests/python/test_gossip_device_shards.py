"""fully_shard and DDP inside a worker whose ranks have a device each: the numbers of CPU memory."""

import gossip_ranks
import pytest
from device_backend import IS_REAL, WHY_NOT
from gossip_scenarios_device_shards import RUNS_OF_DDP, SCENARIOS
from gossip_scenarios_mesh import RUNS

NEAR = 1e-6  # float32


@pytest.fixture(scope="module")
def ranks() -> list[gossip_ranks.Rank]:
    names = [name for name in SCENARIOS if name != "memory" or not IS_REAL]
    return gossip_ranks.run(names, [2, 2], timeout_s=300)


@pytest.mark.parametrize(
    "run", [*(f"fsdp {name}" for name in RUNS), *(f"ddp {name}" for name in RUNS_OF_DDP)]
)
def test_replicas_on_a_device_train_as_in_cpu_memory(
    ranks: list[gossip_ranks.Rank], run: str
) -> None:
    for found in gossip_ranks.results(ranks, "replicas_on_device"):
        assert found[run] <= NEAR


def test_a_nan_in_one_shard_stops_all_of_its_replica_a_step_late(
    ranks: list[gossip_ranks.Rank],
) -> None:
    first, second, *others = gossip_ranks.results(ranks, "nan_on_device")
    assert "got another number in a shard of another rank" in first["message"]
    assert "the gradient of parameter '0.weight' on worker 0 in step 1" in second["message"]
    assert "a step or two later" in first["message"] and "a step or two later" in second["message"]
    assert others == [{}, {}]


@pytest.mark.skipif(IS_REAL, reason=WHY_NOT)
@pytest.mark.parametrize(
    ("case", "device", "pinned"),
    [("cwa", 4, 4), ("atc", 4, 4), ("allreduce", 4, 4), ("cwa bfloat16", 10, 4)],
)
def test_memory_is_what_the_guide_says(
    ranks: list[gossip_ranks.Rank], case: str, device: float, pinned: float
) -> None:
    """Beside the outboxes, which a GPU pins where they are, in memory that ranks share."""
    for found in gossip_ranks.results(ranks, "memory"):
        assert found[case] == pytest.approx([device, pinned], rel=0.1)


def test_an_empty_parameter_is_served_on_a_device(ranks: list[gossip_ranks.Rank]) -> None:
    for gap in gossip_ranks.results(ranks, "empty_parameter"):
        assert gap <= NEAR
