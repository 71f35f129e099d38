"""What one door saves, the other goes on from: `gossamer train` and Gossip write one format."""

import json
import subprocess
from pathlib import Path
from typing import Any

import gossip_ranks
import pytest
import torch
from checkpoint_models import model_like
from gossip_support import newest
from package_runs import start_program
from safetensors import safe_open

from gossamer import Gossip

TINY = (
    "train --steps 3 --checkpoint-every 3 --width 8 --layers 1 --heads 1 --context 8 --hosts 1 "
    "--global-batch 2 --validation-samples 2 --max-bytes 20000 --optimizer adamw"
)


def trained(out: Path, workers: int) -> dict[str, Any]:
    words = [*TINY.split(), "--per-host", str(workers), "--out", str(out)]
    done = start_program(words, out.parent, subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return json.loads((newest(out / "checkpoints") / "manifest.json").read_text())


def tensors_of(path: Path) -> dict[str, torch.Tensor]:
    with safe_open(path, framework="pt") as file:
        return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_of_the_command_goes_on_in_python(tmp_path: Path, workers: int) -> None:
    manifest = trained(tmp_path / "run", workers)
    assert (manifest["step"], manifest["workers"]) == (3, workers)
    assert (manifest["optimizer"], manifest["groups"]) == ("adamw", 0)
    folder = tmp_path / "run" / "checkpoints"
    saved = [tensors_of(newest(folder) / file["name"]) for file in manifest["files"]]
    model = model_like(manifest)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.125)
    with Gossip(model, optimizer) as gossip:
        gossip.load(folder)
        assert gossip.stats()["steps"] == 3
    assert optimizer.param_groups[0]["lr"] == 0.125  # the recipe has it, and no file
    moved = 0
    for name, parameter in model.named_parameters():
        mean = sum(each[f"parameter/{name}"].double() for each in saved) / workers
        assert torch.equal(parameter.double(), mean.float().double()), name
        entry = optimizer.state[parameter]
        assert entry.keys() == {"step", "exp_avg", "exp_avg_sq"}
        assert entry["step"] == 3
        mean = sum(each[f"optimizer/{name}/exp_avg"].double() for each in saved) / workers
        assert torch.equal(entry["exp_avg"].double(), mean.float().double()), name
        moved += bool(entry["exp_avg"].any())
        parameter.grad = torch.zeros_like(parameter)
    assert moved > 0
    optimizer.step()  # torch's own takes that state
    assert {int(entry["step"]) for entry in optimizer.state.values()} == {4}


PATTERNS = ("cwa", "exact_diffusion", "gradient_gossip")
RING = (
    "train --width 8 --layers 1 --heads 1 --context 8 --hosts 1 --per-host 3 --global-batch 3 "
    "--validation-samples 2 --max-bytes 20000 --optimizer momentum --topology ring "
    "--checkpoint-every 3"
)


def go_on(out: Path, pattern: str, steps: int) -> dict[str, torch.Tensor]:
    """Begins or goes on; the model's tensors at the end, and all that worker 2 has."""
    words = [*RING.split(), "--pattern", pattern, "--steps", str(steps), "--auto-resume"]
    done = start_program([*words, "--out", str(out)], out.parent, subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    last = tensors_of(newest(out / "checkpoints") / "worker-00002.safetensors")
    return {**tensors_of(out / "model.safetensors"), **last}


def test_the_command_goes_on_from_what_python_has_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command, Python and the command again train as the command alone does, to the bit."""
    monkeypatch.setenv("GOSSAMER_TEST_FOLDER", str(tmp_path))
    for pattern in PATTERNS:
        go_on(tmp_path / f"{pattern}-run", pattern, 3)
    ranks = gossip_ranks.results(gossip_ranks.run(["handed_on"], [3]), "handed_on")
    assert ranks == [dict.fromkeys(PATTERNS, 3)] * 3
    words = [*RING.replace("--per-host 3", "--per-host 1").split(), "--steps", "13"]
    out = str(tmp_path / "cwa-other")
    fewer = start_program([*words, "--auto-resume", "--out", out], tmp_path, subprocess.DEVNULL)
    assert fewer.returncode == 2
    assert "as many workers as were saved, 3, got 1; give as many" in fewer.stderr
    for pattern in PATTERNS:
        alone = go_on(tmp_path / f"{pattern}-run", pattern, 13)
        other = go_on(tmp_path / f"{pattern}-other", pattern, 13)
        assert alone.keys() == other.keys()
        differ = [key for key in alone if not torch.equal(alone[key], other[key])]
        assert differ == [], pattern
        kept = [key for key in alone if key.startswith("pattern/")]
        assert bool(kept) == (pattern != "cwa")


def test_another_number_of_workers_is_refused_by_the_command(tmp_path: Path) -> None:
    go_on(tmp_path / "run", "cwa", 3)
    (tmp_path / "run" / "run.toml").unlink()
    words = [*RING.replace("--per-host 3", "--per-host 1").split(), "--auto-resume"]
    done = start_program([*words, "--out", str(tmp_path / "run")], tmp_path, subprocess.DEVNULL)
    assert done.returncode != 0
    assert "per_host" in done.stderr
