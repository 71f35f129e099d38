"""The bench of faults at random moments: when a fault counts as explained."""

import sys
from pathlib import Path
from typing import Any

FAULTS = Path(__file__).resolve().parents[2] / "bench" / "faults"
sys.path.append(str(FAULTS))

import explained  # noqa: E402

STRUCK = 5.05


def diary(steps: int, last: float = 1e9) -> list[dict[str, Any]]:
    """Ten steps in a second."""
    return [{"at": k / 10, "step": k} for k in range(1, steps + 1) if k / 10 <= last]


def said(rank: int, step: int, why: str) -> str:
    return f"[Gossip] rank 9: goes on without rank {rank}, lost in step {step}: {why}\n"


def go_on(text: str, fault: str = "kill", steps: int = 200) -> explained.Explained:
    diaries = {"0": diary(steps), "1": diary(50, STRUCK)}
    return explained.of_those_that_go_on(fault, ["1"], {"0": text}, diaries, STRUCK, waits=True)


def counts(found: explained.Explained) -> tuple[int, int]:
    return found.due, found.right


def test_worker_step_and_cause_must_be_so() -> None:
    ended = "the peer has ended, or the link to it"
    assert counts(go_on(said(1, 51, ended))) == (1, 1)
    assert counts(go_on(said(1, 51, "the peer has been silent for 5 s"))) == (1, 0)
    assert counts(go_on(said(1, 51, "the peer has been silent for 5 s"), "freeze")) == (1, 1)
    assert counts(go_on(said(1, 51, "this worker closed the peer"), "freeze")) == (1, 0)
    assert counts(go_on(said(1, 49, ended))) == (1, 0)
    assert counts(go_on(said(1, 60, ended))) == (1, 0)
    assert counts(go_on(said(1, 51, ended) + said(1, 60, ended))) == (1, 1)
    assert counts(go_on(said(2, 51, ended))) == (1, 0)
    assert counts(go_on("")) == (1, 0)


def test_what_is_heard_from_others_is_no_explanation() -> None:
    later = said(1, 80, explained.FROM_OTHERS)
    assert counts(go_on(later)) == (1, 0)
    assert counts(go_on(said(1, 51, "the peer has ended") + later)) == (1, 1)


def test_who_has_done_all_its_steps_need_not_notice() -> None:
    assert counts(go_on("", steps=52)) == (0, 0)
    assert counts(go_on("", "freeze", steps=100)) == (0, 0)


def test_an_error_names_whom_the_worker_could_not_hear() -> None:
    def end(peer: int | None) -> list[dict[str, Any]]:
        return [{"at": 6.0, "end": "TransportError", "peer": peer}]

    assert counts(explained.of_those_that_end("kill", ["1"], {"0": end(1), "1": end(0)})) == (1, 1)
    assert counts(explained.of_those_that_end("kill", ["1"], {"0": end(2), "2": end(1)})) == (2, 1)
    both = {"0": end(2), "1": end(2), "2": end(0)}
    assert counts(explained.of_those_that_end("unplug", ["0", "1"], both)) == (3, 3)
    assert counts(explained.of_those_that_end("unplug", ["0", "1"], {"0": end(1)})) == (1, 0)
    assert counts(explained.of_those_that_end("kill", ["1"], {"0": end(None)})) == (0, 0)
