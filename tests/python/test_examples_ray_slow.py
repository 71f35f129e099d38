"""The examples for Ray Train, with the real Ray on this machine."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from example_runs import EXAMPLES, SECONDS, environment, example_module
from torch import nn

WORKERS = 2
START = Path(__file__).with_name("start_on_ray.py")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed"
)


@pytest.fixture
def ray_folder() -> Iterator[str]:
    """Short, as Ray's sockets are in it."""
    folder = tempfile.mkdtemp(prefix="ray")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_a_job_of_ray_saves_the_average_of_its_workers(tmp_path: Path, ray_folder: str) -> None:
    shapes, tests = {}, {}
    for way in ("ddp", "gossip"):
        script = EXAMPLES / f"ray_{way}.py"
        arguments = ["--workers", str(WORKERS), "--epochs", "3", "--out", str(tmp_path / way)]
        done = subprocess.run(
            [sys.executable, str(START), str(WORKERS), ray_folder, str(script), *arguments],
            env=environment() | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_COLOR_PREFIX": "0"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=1000,
        )
        assert done.returncode == 0, done.stderr[-6000:]
        said = re.search(r"^loss [\d.]+, test ([\d.]+)\nsaved in (.*)$", done.stdout, re.MULTILINE)
        assert said is not None, done.stdout
        state = torch.load(Path(said[2], "model.pt"), weights_only=True)
        shapes[way] = {name: value.shape for name, value in state.items()}
        tests[way] = float(said[1])
        assert loss_of(state) == pytest.approx(tests[way], abs=1e-3), "not what was tested"
    assert shapes["ddp"] == shapes["gossip"]
    guess = torch.tensor(10.0).log().item()
    assert max(tests.values()) < 0.8 * guess, tests


def loss_of(state: dict[str, torch.Tensor]) -> float:
    """On the test set, as the examples measure it."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 10))
    model.load_state_dict(state)
    _, test_set = example_module("idx_data").load(None)
    with torch.no_grad():
        losses = [
            nn.functional.cross_entropy(model(images), labels).item()
            for images, labels in torch.utils.data.DataLoader(test_set, 250)
        ]
    return sum(losses) / len(losses)
