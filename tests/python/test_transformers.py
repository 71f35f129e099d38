"""gossamer.transformers: what evaluation, checkpoints and the end of training see."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import example_runs
import pytest
import torch

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("transformers")
    script = Path(__file__).with_name("transformers_scenarios.py")
    example_runs.start(script, str(folder / "notes.json"), str(folder / "out"))
    result: dict[str, Any] = json.loads((folder / "notes.json").read_text())
    return result


@pytest.mark.parametrize("run", ["trained", "resumed"])
def test_workers_gossip_and_evaluation_and_the_end_are_the_average(
    found: dict[str, Any], run: str
) -> None:
    notes = found[run]
    assert max(notes["spread in training"]) > 0, "the workers were never apart"
    assert set(notes["spread in evaluation"]) == {0.0}
    assert notes["spread at the end"] == 0


def test_the_model_is_not_wrapped_and_the_loss_falls(found: dict[str, Any]) -> None:
    notes = found["trained"]
    assert notes["wrapped"] == "GPT2LMHeadModel"
    assert notes["losses"][1] < notes["losses"][0]
    assert notes["closed"]


def test_the_metrics_count_samples(found: dict[str, Any]) -> None:
    """Two batches of two in each step; lines of averages have none."""
    counts = [count for count in found["trained"]["samples"] if count is not None]
    assert counts == [4] * 6


def test_checkpoints_hold_the_average(found: dict[str, Any]) -> None:
    assert found["trained"]["last away"] == 0
    assert found["trained"]["checkpoint-6 away"] == 0


def test_a_run_resumes(found: dict[str, Any]) -> None:
    assert found["resumed"]["steps"] == 12
    assert found["resumed"]["updates"] == 12, "the optimizer's state goes on"


def test_with_every_workers_state_a_resumed_run_has_the_bits_of_the_whole_one(
    found: dict[str, Any],
) -> None:
    assert found["stopped"]["away"] == 0
    assert found["stopped"]["parts"] == found["stopped"]["whole"]


def test_allreduce_keeps_the_workers_equal(found: dict[str, Any]) -> None:
    assert set(found["allreduce"]["spread in training"]) == {0.0}


def launched(program: str, *words: str | Path, restarts: int = 3, limit_s: float = 240) -> str:
    """What three workers of this program have said, which must succeed."""
    done = example_runs.launch(program, *words, restarts=restarts, limit_s=limit_s)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_those_that_are_left_finish_when_rank_0_is_killed(tmp_path: Path) -> None:
    launched("transformers_lost.py", tmp_path, restarts=0, limit_s=150)
    one, two = (json.loads((tmp_path / f"found-{rank}.json").read_text()) for rank in (1, 2))
    assert (one["saves"], two["saves"]) == (True, False)
    assert one["last away"] == one["out/checkpoint-12 away"] == 0
    for name in ("steps", "loss", "eval", "after"):
        assert one[name] == two[name]
    assert one["steps"] == 12
    assert len(one["loss"]) == 4
    assert one["eval"][3] < one["eval"][0]
    assert one["after"] == one["eval"][3]
    for rank in (one, two):  # no row of the lost worker is missing, or another one in its place
        assert rank["rows are there"]
        assert rank["predictions away"] < 1e-5
        assert rank["after"] == pytest.approx(rank["loss of all rows"], rel=1e-5)


def came_back(folder: Path, words: dict[str, Any]) -> tuple[list[Any], str]:
    """By rank what transformers_back.py has found, and what was said."""
    said = launched("transformers_back.py", folder, json.dumps(words))
    return [json.loads((folder / f"found-{rank}.json").read_text()) for rank in range(3)], said


def check_all_are_there(found: list[Any], back: int, first: int) -> None:
    """`back` came back, in a run that began with step `first`."""
    began = [one["began"] for one in found]
    assert began[:back] + began[back + 1 :] == [first, first]
    assert first < began[back] < 320
    for one in found:
        assert (one["steps"], one["last epoch"], one["rate"]) == (320, 320, 0)
        assert one["mean"] == found[0]["mean"]
        assert one["epoch"] == found[0]["epoch"]
        assert one["eval"] == found[0]["eval"]  # also those while it was away
        assert one["counted"] == 320 - first
    assert [one["saves"] for one in found] == [True, False, False]
    check_logged_losses(found, back, first)
    updates = found[back]["updates"]
    assert began[back] < updates <= 320
    for step in range(began[back] + 2, 321):  # each loader has read a batch ahead before
        together = [sample for one in found for sample in one["samples"][str(step)]]
        assert len(set(together)) == len(together)


def check_logged_losses(found: list[Any], back: int, first: int) -> None:
    """Each is the mean over the workers of their means since the one before. In place of one that
    is away the next lower rank's counts, and of one that has come back meanwhile the lowest other
    rank's until it is there."""
    assert all(one["logged"] == found[0]["logged"] for one in found)
    losses = [{int(step): loss for step, loss in one["losses"].items()} for one in found]
    other = min(rank for rank in range(3) if rank != back)
    was_there = [step for step in losses[back] if step > found[back]["began"]]
    for step, logged in found[other]["logged"]:
        if step <= first:
            continue
        window = range(step - 79, step + 1)
        rows = [[losses[rank].get(t, losses[other][t]) for t in window] for rank in range(3)]
        if step < min(was_there):
            stands_in = max(back - 1, 0) if back else other
            rows[back] = [losses[stands_in][t] for t in window]
        assert logged == pytest.approx(sum(map(sum, rows)) / 3 / 80, abs=2e-4), step


def test_a_worker_comes_back_into_train(tmp_path: Path) -> None:
    found, said = came_back(tmp_path, {"dies": {"1": 20}})
    assert "rank 1 ended by SIGKILL" in said
    check_all_are_there(found, back=1, first=0)


def test_rank_0_comes_back_into_a_run_that_went_on_from_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    came_back(tmp_path / "first", {"steps": 80})
    checkpoint = str(tmp_path / "first" / "out" / "checkpoint-80")
    found, said = came_back(tmp_path, {"dies": {"0": 90}, "resume": checkpoint})
    assert "rank 0 ended by SIGKILL" in said
    check_all_are_there(found, back=0, first=80)


def test_a_callback_at_the_end_has_the_gossip(found: dict[str, Any]) -> None:
    assert found["trained"]["own average at the end"] == 0.5  # of 0 and 1
    assert found["trained"]["closed"]


def test_a_mixin_behind_the_trainer_is_refused() -> None:
    from transformers import Trainer

    from gossamer.transformers import GossipMixin

    with pytest.raises(TypeError, match=r"write class Wrong\(GossipMixin, \.\.\.\)"):

        class Wrong(Trainer, GossipMixin):
            pass


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            {"gossip": {"topologie": "ring"}},
            "there is no argument 'topologie'; did you mean 'topology'?",
        ),
        ({"gossip": {"qqq": 1}}, "there is no argument 'qqq'; it has topology, pattern"),
        ({"topology": "ring"}, "give it gossip={'topology': 'ring'}"),
    ],
)
def test_wrong_words_are_named(words: dict[str, Any], message: str) -> None:
    from gossamer.transformers import GossipTrainer

    with pytest.raises(TypeError, match=re.escape(message)):
        GossipTrainer(torch.nn.Linear(1, 1), **words)


def test_a_group_that_does_not_go_on_is_refused(found: dict[str, Any]) -> None:
    assert "call gossamer.init() before TrainingArguments" in found["goes on in torch's group"]
