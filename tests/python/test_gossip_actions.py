"""Random sequences of what users do between steps equal a dense reference; see user_actions.py."""

import os

import gossip_ranks
import pytest

SEQUENCES = 90
OVER_TCP = 10


def run(first: int, last: int, tcp: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOSSAMER_ACTIONS", f"{first} {last} {int(tcp)}")
    ranks = gossip_ranks.run(["user_actions"], [1, 1])
    for done, problems in gossip_ranks.results(ranks, "user_actions"):
        assert problems == []
        assert done == last - 1


def test_sequences_of_user_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    run(0, SEQUENCES, False, monkeypatch)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users, who share no memory")
def test_sequences_of_user_actions_over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    run(SEQUENCES, SEQUENCES + OVER_TCP, True, monkeypatch)


def test_what_the_user_changes_moves_the_mean_and_nothing_else() -> None:
    """Coded or not, over TCP where that can be had: the mean over the workers is what changes and
    gradients make of it. Under "allreduce" a codec loses bits of gradients, never of parameters."""
    ranks = gossip_ranks.run(["edited"], [1, 1])
    for rank in gossip_ranks.results(ranks, "edited"):
        for case, found in rank.items():
            assert found["off"] < 1e-12, case
            # What one worker changed: all-reduce leaves it there, gossip brings workers together.
            if case.startswith("allreduce"):
                assert abs(found["spread"] - 0.05) < 1e-9, case
            else:
                assert found["spread"] < 0.02, case
