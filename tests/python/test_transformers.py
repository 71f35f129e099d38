"""gossamer.transformers: what evaluation, checkpoints and the end of training see."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import example_runs
import pytest

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


def test_checkpoints_hold_the_average(found: dict[str, Any]) -> None:
    assert found["trained"]["last away"] == 0
    assert found["trained"]["checkpoint-6 away"] == 0


def test_a_run_resumes(found: dict[str, Any]) -> None:
    assert found["resumed"]["steps"] == 12
    assert found["resumed"]["updates"] == 12, "the optimizer's state goes on"


def test_allreduce_keeps_the_workers_equal(found: dict[str, Any]) -> None:
    assert set(found["allreduce"]["spread in training"]) == {0.0}
