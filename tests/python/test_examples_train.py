"""Every example trains in two processes, with DDP and with Gossip."""

import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path

import example_runs
import pytest
import torch


@dataclass(frozen=True)
class Example:
    name: str
    arguments: str
    outcomes: int  # how many answers there are: guessing costs log(outcomes)
    needs: str = "torch"


EXAMPLES = (
    Example("images", "--epochs 2", 10),
    Example("text", "--epochs 3 --steps 30 --length 32", 256),
    Example("accelerate", "--epochs 3 --cpu", 10, needs="accelerate"),
    Example("lightning", "--epochs 2", 10, needs="lightning"),
    Example("trainer", "--epochs 2 --windows 1600", 256, needs="transformers"),
    Example("sft", "--epochs 2 --lines 1600", 259, needs="trl"),
)


@pytest.fixture(params=EXAMPLES, ids=lambda example: example.name)
def example(request: pytest.FixtureRequest) -> Example:
    chosen: Example = request.param
    if importlib.util.find_spec(chosen.needs) is None:
        pytest.skip(f"{chosen.needs} is not installed")
    return chosen


def test_every_example_is_tried() -> None:
    found = {path.stem for path in example_runs.EXAMPLES.glob("*_*.py")} - {"idx_data", "text_data"}
    names = [*(one.name for one in EXAMPLES), "ray"]  # which torchrun does not start
    pairs = {f"{name}_{way}" for name in names for way in ("ddp", "gossip")}
    assert found == pairs | {"text_lost"}  # which tests/python/test_examples_lost.py tries


def test_loss_falls_and_replicas_agree_on_the_average(example: Example, tmp_path: Path) -> None:
    saved = {}
    for way in ("ddp", "gossip"):
        file = tmp_path / f"{way}.pt"
        arguments = [*example.arguments.split(), "--save", str(file)]
        run = example_runs.run(f"{example.name}_{way}.py", tmp_path / f"{way}.json", *arguments)
        assert run.losses[-1] < 0.9 * run.losses[0], (way, run)
        assert run.tests[-1] < min(0.9 * run.losses[0], math.log(example.outcomes)), (way, run)
        assert bool(run.averages) == (way == "gossip"), "only gossip averages"
        for average in run.averages:
            assert average["disagreement"] > 0, "the workers were not apart: nothing was averaged"
            assert average["spread"] == 0, run.averages
        saved[way] = torch.load(file, weights_only=example.name != "lightning")
    shapes = [
        {name: value.shape for name, value in state.get("state_dict", state).items()}
        for state in saved.values()
    ]
    assert shapes[0] == shapes[1], "what is saved differs from what the script for DDP saves"
