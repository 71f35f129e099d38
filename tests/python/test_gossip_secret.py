"""Several workers: what a stranger finds in the launcher's store, with a secret and without."""

import json
import string

import gossip_ranks
import pytest

NAMES = ["secret_given", "secret_none", "secret_some", "secret_other", "secret_short"]


@pytest.fixture(scope="module")
def ranks() -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(NAMES, [1, 1])


def cards_of(store: dict[str, str]) -> list[dict]:
    return [json.loads(text)["card"] for key, text in store.items() if "/cards/" in key]


def test_a_store_with_a_secret_has_nothing_to_read(ranks: list[gossip_ranks.Rank]) -> None:
    for found in gossip_ranks.results(ranks, "secret_given"):
        assert found["steps"] == 3
        store = found["store"]
        assert cards_of(store)
        assert not [key for key in store if "token" in key]
        for card in cards_of(store):
            if "words" in card:
                assert set(card["words"]) <= set(string.hexdigits)
        assert "127.0.0.1" not in json.dumps(store)


def test_a_store_forgets_the_token_once_all_have_it(ranks: list[gossip_ranks.Rank]) -> None:
    for found in gossip_ranks.results(ranks, "secret_none"):
        assert found["steps"] == 3
        assert not [text for key, text in found["store"].items() if "token" in key and text]


def test_all_have_a_secret_or_none_has(ranks: list[gossip_ranks.Rank]) -> None:
    for message in gossip_ranks.results(ranks, "secret_some"):
        assert "got one on rank 0 and none on rank 1" in message
        assert "GOSSAMER_SECRET_FILE" in message


def test_another_secret_is_found_out(ranks: list[gossip_ranks.Rank]) -> None:
    for message in gossip_ranks.results(ranks, "secret_other"):
        assert "was not written by a worker of this job" in message
        assert "the same GOSSAMER_SECRET_FILE" in message


def test_a_short_one_is_refused_on_all_ranks(ranks: list[gossip_ranks.Rank]) -> None:
    for message in gossip_ranks.results(ranks, "secret_short"):
        assert "a secret needs 16 bytes or more" in message
