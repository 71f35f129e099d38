"""What `gossamer train` has saved, Gossip.load goes on from: both doors write one format."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from gossip_support import newest
from package_runs import start_program
from safetensors import safe_open
from torch import nn

from gossamer import Gossip

TINY = (
    "train --steps 3 --checkpoint-every 3 --width 8 --layers 1 --heads 1 --context 8 --hosts 1 "
    "--global-batch 2 --validation-samples 2 --max-bytes 20000 --optimizer adamw"
)
LINE = re.compile(r"(parameter|buffer) '(.*)' \[(.*)\] (\w+)")


def trained(out: Path, workers: int) -> dict[str, Any]:
    words = [*TINY.split(), "--per-host", str(workers), "--out", str(out)]
    done = start_program(words, out.parent, subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return json.loads((newest(out / "checkpoints") / "manifest.json").read_text())


def model_like(manifest: dict[str, Any]) -> nn.Module:
    """A model with these tensors, all zero."""
    model = nn.Module()
    for line in manifest["model"]:
        found = LINE.fullmatch(line)
        assert found
        *path, name = found[2].split(".")
        owner = model
        for each in path:
            if not hasattr(owner, each):
                owner.add_module(each, nn.Module())
            owner = getattr(owner, each)
        shape = [int(size) for size in found[3].split(", ") if size]
        value = torch.zeros(shape, dtype=getattr(torch, found[4]))
        if found[1] == "parameter":
            owner.register_parameter(name, nn.Parameter(value))
        else:
            owner.register_buffer(name, value)
    return model


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
        assert gossip.is_fused
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
    assert moved > 0
