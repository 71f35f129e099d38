"""Parameters in half precision on a device: they have masters there, as in CPU memory."""

from pathlib import Path
from typing import Any

import gossip_ranks
import pytest
from gossip_ranks import results
from gossip_scenarios_device_half import SCENARIOS, WAYS

ULP = 2.0**-7  # of bfloat16, of numbers from 1 to 2; the largest here
EXACT = 1e-6  # float32


@pytest.fixture(scope="module")
def ranks(folder: Path) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(list(SCENARIOS), [2, 2], timeout_s=300)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "late"])
def test_half_precision_trains_as_in_cpu_memory(ranks: list[gossip_ranks.Rank], way: str) -> None:
    """A sum in another order may round one step's value up instead of down."""
    for found in results(ranks, "half_on_device"):
        assert max(found[way]["parameters"], found[way]["masters"]) <= 2 * ULP


def test_masters_hold_what_the_parameters_cannot(ranks: list[gossip_ranks.Rank]) -> None:
    for found in results(ranks, "half_on_device"):
        for way, apart in found.items():
            assert apart["rounding"] == 0 if way == "allreduce" else 0 < apart["rounding"] <= ULP


def test_mixes_below_an_ulp_add_up(ranks: list[gossip_ranks.Rank]) -> None:
    for found in results(ranks, "half_mixing_on_device"):
        assert found["gap"] <= EXACT
        for before, after in found["apart"]:
            assert 0 < after < 0.1 * before


def test_looks_at_the_mean_leave_all_bits(ranks: list[gossip_ranks.Rank]) -> None:
    everybody: list[dict[str, Any]] = results(ranks, "half_looks_on_device")
    assert all(found["same"] for found in everybody)
    assert all(found["mean"] == everybody[0]["mean"] for found in everybody)


@pytest.mark.parametrize("way", ["cwa", "exact_diffusion", "allreduce"])
def test_a_resumed_run_has_equal_bits(ranks: list[gossip_ranks.Rank], way: str) -> None:
    for found in results(ranks, "half_resumed_on_device"):
        whole, resumed, in_cpu = found[way]
        assert resumed == whole
        assert in_cpu["parameters"] == pytest.approx(whole["parameters"], abs=2 * ULP)


@pytest.mark.parametrize("pattern", ["cwa", "atc", "allreduce"])
def test_shards_in_half_precision_train_as_in_cpu_memory(
    ranks: list[gossip_ranks.Rank], pattern: str
) -> None:
    for found in results(ranks, "half_shards_on_device"):
        assert found[pattern] <= 2 * ULP
