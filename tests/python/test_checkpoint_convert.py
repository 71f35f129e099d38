"""Checkpoints that gossip.save wrote before there was one format; saved_v1 is one, of 2 workers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from gossip_support import newest
from package_runs import PACKAGE
from safetensors import safe_open
from torch import nn

import gossamer
from gossamer import Gossip, _core

OLD = Path(__file__).with_name("saved_v1")
NAMES = ["low", "first.bias", "first.weight"]  # in the order of the optimizer that was saved


class Small(nn.Module):
    """What was saved, with other values."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.low = nn.Parameter(torch.zeros(4, dtype=torch.bfloat16))
        self.still = nn.Parameter(torch.zeros(2), requires_grad=False)
        self.register_buffer("seen", torch.tensor(0))


def convert(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gossamer.checkpoint.convert", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )


def tensors_of(path: Path) -> dict[str, torch.Tensor]:
    with safe_open(path, framework="pt") as file:
        return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


def old_files() -> list[dict[str, torch.Tensor]]:
    manifest = json.loads((OLD / "manifest.json").read_text())
    return [tensors_of(OLD / file["name"]) for file in manifest["files"]]


def renamed(key: str) -> str:
    kind, _, rest = key.partition("/")
    if kind == "state":
        number, _, vector = rest.partition("/")
        return f"optimizer/{NAMES[int(number)]}/{vector}"
    if kind == "sent":
        return f"mixed/{NAMES[int(rest)]}"
    if kind == "pattern":
        return f"pattern/{rest[:-1]}{NAMES[int(rest[-1])]}"
    return key


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    done = convert(OLD, tmp_path / "new")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "new" / "step-00000003")
    return tmp_path / "new"


def test_every_tensor_has_the_name_of_its_parameter(converted: Path) -> None:
    manifest = json.loads((newest(converted) / "manifest.json").read_text())
    assert (manifest["version"], manifest["step"], manifest["workers"]) == (2, 3, 2)
    assert (manifest["optimizer"], manifest["pattern"], manifest["groups"]) == ("AdamW", "extra", 2)
    assert "parameter 'low' [4] bfloat16" in manifest["model"]
    assert "parameter 'still' [2] float32" in manifest["model"]
    assert len(manifest["model"]) == 5
    for rank, before in enumerate(old_files()):
        now = tensors_of(newest(converted) / f"worker-{rank:05d}.safetensors")
        assert now.keys() == {renamed(key) for key in before}
        assert "mixed/low" in now
        assert "pattern/extra/correction/first.weight" in now
        for key, value in before.items():
            assert torch.equal(now[renamed(key)], value), key


def test_another_number_of_workers_loads_it(converted: Path) -> None:
    model = Small()
    parameters = dict(model.named_parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [parameters["first.weight"]]}, {"params": [model.first.bias, model.low]}]
    )
    with Gossip(model, optimizer) as gossip:
        gossip.load(converted)
        assert gossip.stats()["steps"] == 3
    old = old_files()
    for name in ("first.weight", "first.bias", "still"):
        mean = sum(each[f"parameter/{name}"].double() for each in old) / 2
        assert torch.allclose(parameters[name].double(), mean, rtol=1e-6)
    state = optimizer.state[parameters["first.weight"]]
    mean = sum(each["state/2/exp_avg"].double() for each in old) / 2
    assert torch.allclose(state["exp_avg"].double(), mean, rtol=1e-6)
    assert [group["lr"] for group in optimizer.param_groups] == [0.01, 0.02]
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.5, 0.01]


def test_load_says_how_to_convert() -> None:
    model = Small()
    with (
        Gossip(model, torch.optim.AdamW(model.parameters())) as gossip,
        pytest.raises(gossamer.IoError, match=r"got 1 of gossip.save; convert it: python -m goss"),
    ):
        gossip.load(OLD)


def test_a_save_over_it_is_found(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    model = Small()
    with Gossip(model, torch.optim.AdamW(model.parameters())) as gossip:
        gossip.save(tmp_path / "old")
        gossip.load(tmp_path / "old")
        assert gossip.stats()["steps"] == 0


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("rank1-*", "its checksum is not the manifest's"), ("manifest*", "is altered")],
)
def test_a_damaged_one_is_not_converted(tmp_path: Path, pattern: str, said: str) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    (path,) = (tmp_path / "old").glob(pattern)
    if pattern == "manifest*":
        path.write_text(path.read_text().replace('"step": 3', '"step": 4'))
    else:
        flipped(path)
    done = convert(tmp_path / "old", tmp_path / "new")
    assert done.returncode == 1
    assert said in done.stderr
    assert not _core.checkpoints_in(str(tmp_path / "new"))
    assert not (tmp_path / "new").exists() or not any((tmp_path / "new").iterdir())


@pytest.mark.parametrize(
    ("words", "code"), [([], 2), (["--help"], 0), (["none", "new"], 1), (["a", "b", "c"], 2)]
)
def test_wrong_words(tmp_path: Path, words: list[Any], code: int) -> None:
    done = convert(*(word if word.startswith("-") else tmp_path / word for word in words))
    assert done.returncode == code
    assert ("OLD NEW" in done.stdout) == (code != 1)
