"""Parameters on a device: the numbers of CPU memory, whenever the device's copies land."""

from typing import Any

import gossip_ranks
import pytest
from device_backend import IS_REAL, WHY_NOT
from gossip_scenarios_devices import SCENARIOS

EXACT = 1e-11 if IS_REAL else 1e-13  # a GPU adds in another order
FLOATS = 1e-5
CODED = 2e-2  # rounding differs in the last bit, and the codec makes a step of its own of that


@pytest.fixture(scope="module")
def ranks() -> list[gossip_ranks.Rank]:
    names = [name for name in SCENARIOS if name != "device_counts" or not IS_REAL]
    return gossip_ranks.run(names, [2, 2], timeout_s=300)


def results(ranks: list[gossip_ranks.Rank], scenario: str) -> list[Any]:
    return gossip_ranks.results(ranks, scenario)


@pytest.mark.parametrize(
    ("way", "within"),
    [
        ("aer", EXACT),
        ("ring", EXACT),
        ("complete", EXACT),
        ("one peer", EXACT),
        ("atc", EXACT),
        ("adamw", EXACT),
        ("float32", FLOATS),
        ("bf16", CODED),
        ("local steps", EXACT),
        ("exact_diffusion", EXACT),
        ("extra", EXACT),
        ("not staggered", EXACT),
        ("allreduce", EXACT),
        ("allreduce adamw", EXACT),
        ("gradient_gossip", EXACT),
        ("gradient_gossip adamw", EXACT),
        ("allreduce bf16", CODED),
    ],
)
def test_a_device_trains_as_cpu_memory_does(
    ranks: list[gossip_ranks.Rank], way: str, within: float
) -> None:
    for found in results(ranks, "device_ways"):
        assert found[way] <= within


def test_state_is_mixed_as_in_cpu_memory(ranks: list[gossip_ranks.Rank]) -> None:
    for found in results(ranks, "device_state"):
        assert max(found.values()) <= (EXACT if IS_REAL else 1e-14)


def test_a_device_and_cpu_memory_can_be_neighbours(ranks: list[gossip_ranks.Rank]) -> None:
    assert max(results(ranks, "device_among_others")) <= EXACT


@pytest.mark.skipif(IS_REAL, reason=WHY_NOT)
def test_a_step_waits_for_nothing_on_the_device(ranks: list[gossip_ranks.Rank]) -> None:
    """Ten steps on a ring: one copy out and one in, of 8 bytes each per parameter."""
    for found in results(ranks, "device_counts"):
        assert found["blocking_copies"] == 0
        assert found["scalar_reads"] == 0
        norms = 10  # of the gradients, for the check a step later
        assert found["late_copies"] == 20 + norms
        padded = -(-found["parameters"] // 64) * 64
        assert found["bytes_in"] <= 10 * 8 * (padded + 64)
        assert found["bytes_out"] <= 10 * 8 * (padded + 64) + norms * 8 * 16


def test_the_mean_stands_on_the_device_for_a_while(ranks: list[gossip_ranks.Rank]) -> None:
    everybody = results(ranks, "device_average")
    for found in everybody:
        assert max(found["gaps"]) <= EXACT
        assert found["back"] == 0
        assert found["apart"][0] == pytest.approx(found["apart"][1], rel=1e-9)
        assert found["apart"][1] > 0
        assert found["means"] == everybody[0]["means"]


def test_the_mean_may_be_asked_for_in_another_stream(ranks: list[gossip_ranks.Rank]) -> None:
    for here, there in results(ranks, "device_other_stream"):
        assert here == there > 0


def test_what_was_saved_goes_on_with_the_same_bits(ranks: list[gossip_ranks.Rank]) -> None:
    assert max(results(ranks, "device_saved")) == 0


def test_edits_between_steps_count_as_in_cpu_memory(ranks: list[gossip_ranks.Rank]) -> None:
    for found in results(ranks, "device_edits"):
        assert max(found.values()) <= EXACT, found


def test_gradients_are_averaged_as_in_cpu_memory(ranks: list[gossip_ranks.Rank]) -> None:
    for found in results(ranks, "device_gradients"):
        assert max(found.values()) <= EXACT, found


def test_epochs_may_be_uneven(ranks: list[gossip_ranks.Rank]) -> None:
    found = results(ranks, "device_uneven")
    assert all(each["finite"] for each in found)
    assert len({each["steps"] for each in found}) == 1
    assert found[0]["steps"] >= 5 + 2


def test_late_neighbours_are_skipped_on_a_device(ranks: list[gossip_ranks.Rank]) -> None:
    for apart in results(ranks, "device_late"):
        assert all(0 < each < 0.5 for each in apart)


def test_a_gradient_that_is_not_finite_is_known_a_step_later(
    ranks: list[gossip_ranks.Rank],
) -> None:
    said = [found["message"] for found in results(ranks, "device_not_finite")]
    named = [text for text in said if "the peer left" not in text]  # who has heard of it is gone
    assert named
    for text in named:
        assert "the gradient of parameter '2.weight' on worker" in text
        assert "must be finite, got a norm of nan" in text


def test_a_mixer_takes_what_it_takes_in_cpu_memory(ranks: list[gossip_ranks.Rank]) -> None:
    for found in results(ranks, "device_mixer"):
        assert found.pop("complex") == [-1.5, 1.5]
        assert all(values == [0.0, 1.5] for values in found.values()), found


def test_what_is_not_served_on_a_device_is_refused_by_name(
    ranks: list[gossip_ranks.Rank],
) -> None:
    words = {
        "gradient_tracking": "pattern 'gradient_tracking' steps the optimizer itself",
        "complex": "must be float32, float64, bfloat16 or float16, got torch.complex64",
        "split": "the model must be on one device, got parameter",
    }
    for found in results(ranks, "device_refusals"):
        for case, text in words.items():
            assert text in found[case]["message"], case
