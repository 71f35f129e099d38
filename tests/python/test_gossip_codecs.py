"""Several workers on two hosts: payloads in fewer bytes, and neighbours that are late."""

import gossip_ranks
import pytest
from gossip_scenarios_codecs import CODECS, RUNS

HOSTS = [2, 2]
BYTES = {"fp32": 4, "bf16": 2, "int8": 260 / 256}
BIAS = 0.11  # of 40 payloads of either run, two may be under way when the count begins or ends


@pytest.fixture(scope="module")
def four() -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(["codecs", "late"], HOSTS)


def host_of(rank: int) -> int:
    return rank // 2


@pytest.mark.parametrize("codec", CODECS[1:])
@pytest.mark.parametrize("run", RUNS)
def test_what_crosses_hosts_takes_fewer_bytes_and_nothing_else_does(
    four: list[gossip_ranks.Rank], run: str, codec: str
) -> None:
    for rank, found in enumerate(gossip_ranks.results(four, "codecs")):
        plain, coded = found[f"{run} fp32"]["edges"], found[f"{run} {codec}"]["edges"]
        assert plain.keys() == coded.keys()
        for peer, edge in plain.items():
            crosses = host_of(int(peer)) != host_of(rank)
            expected = BYTES[codec] / 4 if crosses else 1
            for way, count in edge.items():
                assert abs(coded[peer][way] - expected * count) <= BIAS * expected * count + 64


@pytest.mark.parametrize("codec", CODECS[1:])
@pytest.mark.parametrize("run", RUNS)
def test_coded_runs_end_near_the_uncoded_one(
    four: list[gossip_ranks.Rank], run: str, codec: str
) -> None:
    for found in gossip_ranks.results(four, "codecs"):
        plain, coded = found[f"{run} fp32"]["x"], found[f"{run} {codec}"]["x"]
        apart = max(abs(a - b) for a, b in zip(plain, coded, strict=True))
        assert 0 < apart < 0.05


def test_allreduce_with_a_codec_leaves_all_ranks_with_the_same_bits(
    four: list[gossip_ranks.Rank],
) -> None:
    ends = [found["allreduce bf16"]["x"] for found in gossip_ranks.results(four, "codecs")]
    assert all(end == ends[0] for end in ends)


@pytest.mark.parametrize("kind", ["fused", "own step"])
def test_a_rank_takes_as_many_steps_as_it_likes_where_late_ones_are_skipped(
    four: list[gossip_ranks.Rank], kind: str
) -> None:
    found = [rank[kind] for rank in gossip_ranks.results(four, "late")]
    assert [rank["steps"] for rank in found] == [40, 5, 5, 5]
    assert found[0]["skipped"] > 0
    assert all(rank["mean"] == found[0]["mean"] for rank in found)
