"""strategy="gossamer": what validation, checkpoints and the end of training see."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import example_runs
import pytest

ROUNDING = 1e-6

needs_lightning = pytest.mark.skipif(
    importlib.util.find_spec("lightning") is None, reason="lightning is not installed"
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("lightning")
    script = Path(__file__).with_name("lightning_scenarios.py")
    example_runs.start(script, str(folder / "notes.json"), str(folder))
    result: dict[str, Any] = json.loads((folder / "notes.json").read_text())
    return result


@needs_lightning
@pytest.mark.parametrize("model", ["one", "two", "resumed"])
def test_validation_and_the_end_are_the_average(found: dict[str, Any], model: str) -> None:
    notes = found[model]
    assert max(notes["spread in training"]) > 0, "the workers were never apart"
    assert set(notes["spread in validation"]) == {0.0}
    assert notes["spread after fit"] == 0


@needs_lightning
def test_the_metrics_count_samples(found: dict[str, Any]) -> None:
    """Two epochs of 64 samples on two workers, in batches of 8."""
    assert [count for count in found["one"]["samples"] if count is not None] == [8] * 8


@needs_lightning
def test_checkpoints_hold_the_average(found: dict[str, Any]) -> None:
    assert found["one"]["kept in validation"] == 0
    assert found["one"]["kept by hand"] < ROUNDING
    assert found["one"]["away from the last average"] == 0


@needs_lightning
def test_a_run_resumes(found: dict[str, Any]) -> None:
    steps = len(found["one"]["spread in training"])
    assert len(found["resumed"]["spread in training"]) == steps / 2, "an epoch more than before"
    assert found["resumed"]["updates"] == steps * 3 / 2
    assert found["resumed"]["moved"] > 0


@needs_lightning
def test_every_optimizer_gossips(found: dict[str, Any]) -> None:
    assert found["two"]["gossips"] == 2


@needs_lightning
def test_fabric_after_gossip_steps_it_and_before_it_is_refused(found: dict[str, Any]) -> None:
    notes = found["fabric"]
    assert notes["steps"] == len(notes["spread"]) == 4
    assert max(notes["spread"]) > 0, "gradients were averaged"
    assert "wrapped in DistributedDataParallel" in notes["refused"]
    assert "then fabric.setup_optimizers(optimizer) alone" in notes["refused"]


@needs_lightning
def test_fit_ends_without_rank_0(tmp_path: Path) -> None:
    done = example_runs.launch("lightning_lost.py", tmp_path, restarts=0)
    assert done.returncode == 0, done.stderr
    assert "rank 0 ended by SIGKILL" in done.stderr
    found = [json.loads((tmp_path / f"found-{rank}.json").read_text()) for rank in (1, 2)]
    assert [each["saves"] for each in found] == [True, False]
    for each in found:
        assert each["parameters"] == found[0]["parameters"]
        assert each["said"] == found[0]["said"]
        assert [said["ranks"] for said in each["said"]] == [[0, 1, 2]] + 3 * [[1, 2]]
        assert [said["metrics"]["rank"] for said in each["said"]] == [1.0] + 3 * [1.5]
        assert each["best"].endswith("epoch=3-step=40.ckpt")
    kept = sorted(path.name for path in tmp_path.rglob("*.ckpt"))
    assert kept == ["end.ckpt", "epoch=3-step=40.ckpt", "last.ckpt"]


@needs_lightning
def test_arguments_for_the_wrapper_are_refused() -> None:
    code = (
        "from gossamer.lightning import GossipStrategy\n"
        "GossipStrategy(gossip={'topology': 'ring'})\n"
        "GossipStrategy(find_unused_parameters=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=example_runs.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "ValueError: [GossipStrategy]" in done.stderr
    assert "find_unused_parameters" in done.stderr.splitlines()[-1]


@needs_lightning
@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_the_package_that_is_imported_gets_the_strategy(package: str) -> None:
    if importlib.util.find_spec(package.split(".")[0]) is None:
        pytest.skip(f"{package} is not installed")
    code = (
        f"import {package} as pl, gossamer.lightning\n"
        "t = pl.Trainer(accelerator='cpu', strategy='gossamer', logger=False)\n"
        "assert type(t.strategy) is gossamer.lightning.GossipStrategy, t.strategy\n"
    )
    subprocess.run([sys.executable, "-c", code], env=example_runs.environment(), check=True)
