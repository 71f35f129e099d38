"""Several workers: what goes wrong is said on every rank, and nobody waits for ever."""

from typing import Any

import gossip_ranks
import pytest

HOSTS = [1, 2]
SAID = {
    "shape": ("rank 0 has parameter 'a' [3] float32", "got parameter 'a' [4] float32", "rank 2"),
    "order": ("rank 0 has parameter 'a'", "got parameter 'b'", "rank 2"),
    "parameter": ("rank 0 has nothing", "got parameter 'c' [3]", "rank 2"),
    "dtype": ("[3] float32", "got parameter 'a' [3] float64", "rank 2"),
    "groups": ("'b' [3] float32 in group 0", "got parameter 'b' [3] float32 in group 1", "rank 2"),
    "buffer": ("rank 0 has nothing", "got buffer 'extra' [2]", "rank 2"),
    "topology": ("rank 0 has topology complete", "got topology ring", "rank 2", "same arguments"),
    "pattern": ("rank 0 has pattern cwa", "got pattern atc", "rank 2"),
    "optimizer": ("rank 0 has optimizer SGD (sgd)", "got optimizer Adam (adam)", "rank 2"),
    "bucket_bytes": ("rank 0 has bucket_bytes 64", "got bucket_bytes 4096", "rank 2"),
    "codec": ("rank 0 has codec int8", "got codec bf16", "rank 2"),
    "staleness": ("rank 0 has late skip, staleness 2", "got late skip, staleness 3", "rank 2"),
    "foreign": ("is not a parameter of the model", "make the optimizer from model.parameters()"),
    "misspelt": ("unknown topology, got 'rong'", "did you mean 'ring'?"),
    "size": ("hypercube needs a power of two", "got 3", "base_k"),
}


@pytest.fixture(scope="module")
def three() -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(["disagreements", "nan_gradient", "killed"], HOSTS)


@pytest.mark.parametrize("case", SAID)
def test_all_ranks_say_what_differs_and_where(three: list[gossip_ranks.Rank], case: str) -> None:
    found = [rank[case] for rank in gossip_ranks.results(three, "disagreements")[:2]]
    for rank in found:
        assert rank["type"] == "ValueError"
        assert rank["message"].startswith("[")
        missing = [words for words in SAID[case] if words not in rank["message"]]
        assert not missing, rank["message"]


def test_every_rank_is_told(three: list[gossip_ranks.Rank]) -> None:
    found = gossip_ranks.results(three, "disagreements")
    for case in SAID:
        assert [rank[case]["type"] for rank in found] == ["ValueError"] * 3
    assert "rank 2 could not make its Gossip" in found[0]["foreign"]["message"]
    assert "could not" not in found[2]["foreign"]["message"]  # there it is no hearsay


def test_a_nan_is_refused_where_it_is_and_costs_nothing(three: list[gossip_ranks.Rank]) -> None:
    found = gossip_ranks.results(three, "nan_gradient")
    message = found[1]["message"]
    for words in ("parameter '2.bias'", "worker 1", "step 2", "finite, got nan"):
        assert words in message
    assert found[0] == found[2] == {}


def peer_of(found: dict[str, Any]) -> int:
    """Whom the error blames."""
    assert found["type"] == "TransportError"
    assert f"with worker {found['peer']} failed" in found["message"]
    assert found["took_s"] < 60
    return found["peer"]


def test_a_killed_rank_is_named_by_the_others(three: list[gossip_ranks.Rank]) -> None:
    assert [rank.code for rank in three] == [0, 0, -9]
    peers = [peer_of(found) for found in gossip_ranks.results(three[:2], "killed")]
    # Who notices later may be left by the one who noticed first.
    assert peers in ([2, 2], [1, 2], [2, 0])


def test_an_exception_on_one_rank_ends_the_others() -> None:
    ranks = gossip_ranks.run(["an_exception"], [2])
    assert [rank.code for rank in ranks] == [0, 1]
    assert "out of memory, say" in ranks[1].stderr
    assert peer_of(gossip_ranks.results(ranks[:1], "an_exception")[0]) == 1


def test_a_rank_that_makes_no_gossip_is_named() -> None:
    ranks = gossip_ranks.run(["missing_rank"], [3])
    for found in gossip_ranks.results(ranks, "missing_rank")[:2]:
        assert found["type"] == "TransportError"
        assert found["peer"] == 2
        assert "rank 2 has not made its Gossip within 1.5 s" in found["message"]
    assert [rank.code for rank in ranks] == [0, 0, 0]


def test_a_parameter_that_one_rank_alone_adds() -> None:
    ranks = gossip_ranks.run(["added_on_one"], [2])
    found = gossip_ranks.results(ranks, "added_on_one")
    # Who hears of it second may hear first that the other has ended.
    kinds = {rank["type"] for rank in found}
    assert "ValueError" in kinds
    assert kinds <= {"ValueError", "TransportError"}
    for rank in found:
        assert "in a start with other parameters or values" in rank["message"]
    assert max(rank["took_s"] for rank in found) < 60
