"""`gossamer launch`: a worker that is lost is started again, and takes part as before."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from gossip_support import gap
from launched_hosts import LAUNCH, LIMIT_S
from package_runs import watched

from gossamer import Gossip
from gossamer.checkpoint import handing_over

PROGRAM = str(Path(__file__).with_name("coming_back.py"))


def launched(
    folder: Path,
    dies: dict[str, list[int]],
    topology: str = "ring",
    spares: int = 0,
    pattern: str = "cwa",
    optimizer: str = "AdamW",
    told: str = "",
    misses: str = "",
    **options: Any,
) -> tuple[Any, str]:
    """By rank what was found, and what was said."""
    command = [sys.executable, PROGRAM, str(folder), topology]
    how = {
        "DIES": json.dumps(dies),
        "PATTERN": pattern,
        "OPTIMIZER": optimizer,
        "TOLD": told,
        "MISSES": misses,
        "OPTIONS": json.dumps(options),
    }
    done = watched([*LAUNCH, "-n4", f"--spares={spares}", "--", *command], how, LIMIT_S)
    assert done.returncode == (128 + signal.SIGTERM if told else 0), done.stderr
    found = [json.loads((folder / f"found-{rank}.json").read_text()) for rank in range(4)]
    return found, done.stderr


def check_all_are_there(found: list[Any], folder: Path) -> None:
    for number, rank in enumerate(found):
        assert rank["group"] == [number, 4]
        came_back = "make the Gossip first" in rank["refused"]
        assert came_back == (rank["first"] > 0)
        assert rank["sum"] == 0 + 1 + 2 + 3
        assert rank["steps"] == found[0]["steps"]
        assert rank["mean"] == found[0]["mean"]
        assert rank["rate"] == pytest.approx(1e-2 / (1 + rank["steps"]), rel=1e-9)
        assert rank["lost"] == {}
    means = [sum(values) / 4 for values in zip(*(rank["own"] for rank in found), strict=True)]
    assert gap(found[0]["mean"], means) < 1e-5
    (saved,) = (folder / "saved").glob("step-*")
    assert len(list(saved.glob("worker-*"))) == 4


def test_whoever_has_no_state_to_give_does_not_pack_it_for_every_question() -> None:
    refusals = handing_over.Refusals()
    assert not refusals.is_on(100.0)
    asked = [100.0 + 2 * k for k in range(100)]
    packed = []
    for now in asked:
        if not refusals.is_on(now):
            packed.append(now)
            refusals.add(now)
    assert packed == [100, 104, 112, 128, 160, 220, 280]


def test_a_worker_comes_back_with_a_neighbours_state(tmp_path: Path) -> None:
    found, said = launched(tmp_path, {"2": [8]})
    check_all_are_there(found, tmp_path)
    assert [rank["first"] > 8 for rank in found] == [False, False, True, False]
    assert "rank 2 ended by SIGKILL" in said
    assert f"rank 2 is back from step {found[2]['first'] + 1} on" in said
    for rank in (0, 1, 3):  # a neighbour may lose it one step later
        lost, back = found[rank]["events"]
        assert lost[:2] == ["lost", 2]
        assert back == ["back", 2, found[2]["first"] + 1, ""]
        assert lost[3]
        assert 0 <= lost[2] < back[2]
    assert found[2]["events"] == []
    # Adam goes on counting where the neighbour had got to, in some of the steps before.
    assert found[2]["steps"] - 140 < found[2]["updates"][0] <= found[2]["steps"]


def test_the_first_worker_comes_back_and_a_group_is_whole_again(tmp_path: Path) -> None:
    found, said = launched(tmp_path, {"0": [6], "3": [9]}, "alternating_exponential_ring")
    check_all_are_there(found, tmp_path)
    assert "rank 0 ended by SIGKILL" in said
    assert "rank 3 ended by SIGKILL" in said


def test_a_start_that_the_others_refuse_is_tried_again(tmp_path: Path) -> None:
    found, said = launched(tmp_path, {"2": [8]}, misses="2")
    check_all_are_there(found, tmp_path)
    assert said.count("it is started again") == 1
    assert said.count("another one comes first; it tries again") == 1
    for rank in (0, 1, 3):  # it was let in, and did not come
        back = [event for event in found[rank]["events"] if event[0] == "back"]
        assert [event[1] for event in back] == [2, 2]


def test_all_stop_with_one_that_has_come_back_and_none_is_started_again(tmp_path: Path) -> None:
    found, said = launched(tmp_path, {"2": [8]}, told="2")
    check_all_are_there(found, tmp_path)
    for rank in range(4):
        assert f"rank {rank} has stopped as SIGTERM asks" in said
    assert said.count("it is started again") == 1


def test_replicas_that_come_back_are_replicas(tmp_path: Path) -> None:
    found, said = launched(tmp_path, {"0": [8], "2": [20]}, pattern="allreduce")
    check_all_are_there(found, tmp_path)
    assert "rank 0 ended by SIGKILL" in said
    assert "rank 2 ended by SIGKILL" in said
    for rank in found:
        assert rank["own"] == found[0]["own"]  # the same bits
        assert rank["updates"] == [rank["steps"]] * 2


def test_gradients_of_one_that_has_come_back_are_mixed(tmp_path: Path) -> None:
    found, _ = launched(
        tmp_path, {"1": [8]}, "complete", pattern="gradient_gossip", optimizer="RMSprop"
    )
    check_all_are_there(found, tmp_path)
    for rank in found:
        for one, other in zip(rank["gradients"], found[0]["gradients"], strict=True):
            assert torch.allclose(torch.tensor(one), torch.tensor(other), rtol=1e-5, atol=1e-7)


def test_trackers_of_one_that_has_come_back_begin_anew(tmp_path: Path) -> None:
    found, said = launched(
        tmp_path, {"3": [12]}, "one_peer_exponential", pattern="gradient_tracking"
    )
    check_all_are_there(found, tmp_path)
    assert "rank 3 ended by SIGKILL" in said


def test_outer_steps_go_on_with_one_that_has_come_back(tmp_path: Path) -> None:
    outer = {"outer_every": 4}
    found, _ = launched(tmp_path, {"0": [9]}, "complete", pattern="slowmo", pattern_options=outer)
    check_all_are_there(found, tmp_path)


def test_lost_workers_come_back_as_spares(tmp_path: Path) -> None:
    found, said = launched(tmp_path, {"1": [40], "3": [300]}, spares=1)
    check_all_are_there(found, tmp_path)
    assert "rank 1 ended by SIGKILL" in said
    assert "rank 3 ended by SIGKILL" in said
    assert [rank["had_torch"] for rank in found] == [False, True, False, True]


def test_what_is_handed_over_has_the_same_bits() -> None:
    def made(seed: int) -> tuple[torch.nn.Module, torch.optim.Optimizer, Gossip]:
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
        optimizer = torch.optim.AdamW(model.parameters())
        return (
            model,
            optimizer,
            Gossip(model, optimizer, pattern="noloco", pattern_options={"outer_every": 2}),
        )

    given, given_optimizer, donor = made(0)
    for _ in range(3):
        given_optimizer.zero_grad()
        given(torch.randn(5, 4)).square().mean().backward()
        given_optimizer.step()
    taken, taken_optimizer, newcomer = made(1)
    run, other = donor._run, newcomer._run
    state = handing_over._packed(run.team, run.trained, run.carried(), [{"place": 7}])
    carried, beside = handing_over._put(other.session, other.trained, state)
    for key, value in given.state_dict().items():
        assert torch.equal(taken.state_dict()[key], value), key
    for one, two in zip(given.parameters(), taken.parameters(), strict=True):
        for key, value in given_optimizer.state[one].items():
            assert torch.equal(
                torch.as_tensor(taken_optimizer.state[two][key]), torch.as_tensor(value)
            ), key
    assert beside == [{"place": 7}]
    before = run.carried().state
    assert before
    assert {key: value.tolist() for key, value in carried.state.items()} == {
        key: value.tolist() for key, value in before.items()
    }
    donor.close()
    newcomer.close()
