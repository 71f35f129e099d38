"""Files of a checkpoint that somebody else has made, disks that fail: sentences, and no waits."""

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from gossip_support import mlp, newest, rewrite, seal, train
from torch.optim import SGD, Adam

import gossamer
from gossamer import Gossip
from gossamer.base import files
from gossamer.records import tracing

Parts = tuple[torch.nn.Module, torch.optim.Optimizer, Gossip]


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    """A model that has been saved in tmp_path, after some steps."""
    model = mlp()
    optimizer = Adam(model.parameters(), lr=0.01)
    with Gossip(model, optimizer) as gossip:
        train(model, optimizer, range(2))
        gossip.save(tmp_path)
        yield model, optimizer, gossip


def refusal(gossip: Gossip, folder: Path) -> str:
    begin = time.monotonic()
    with pytest.raises((gossamer.IoError, ValueError)) as caught:
        gossip.load(folder)
    assert time.monotonic() - begin < 20
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_names_of_files_are_printed_as_they_are_or_byte_by_byte() -> None:
    for name, text in ((b"caf\xc3\xa9", "caf\u00e9"), (b"caf\xe9\x1b[2J", r"caf\xe9\x1b[2J")):
        assert files.printable(Path(os.fsdecode(name))) == text


# What load() is given.


@pytest.mark.parametrize("of", ["manifest.json", "worker-00000.safetensors", "latest"])
def test_a_pipe_is_an_error_and_no_wait(parts: Parts, tmp_path: Path, of: str) -> None:
    path = tmp_path / of if of == "latest" else newest(tmp_path) / of
    path.unlink()
    os.mkfifo(path)
    if of == "latest":  # which is not needed
        parts[2].load(tmp_path)
    else:
        assert "is not a regular file" in refusal(parts[2], tmp_path)


def test_a_manifest_has_a_largest_size(parts: Parts, tmp_path: Path) -> None:
    os.truncate(newest(tmp_path) / "manifest.json", 1 << 40)  # of which nothing is on the disk
    assert "longer than the 32000000 bytes" in refusal(parts[2], tmp_path)


@pytest.mark.parametrize("value", ["[" * 100_000, "1" * 5000, "{", "[]", "7"])
def test_a_manifest_of_anything(parts: Parts, tmp_path: Path, value: str) -> None:
    for text in (value, f'{{"format": "gossamer checkpoint", "version": {value}}}'):
        (newest(tmp_path) / "manifest.json").write_text(text)
        assert "is altered: its checksum is not that of its text" in refusal(parts[2], tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"workers": "many"}, "workers is not a whole number"),
        ({"step": None}, "step is not a whole number"),
        ({"files": {}}, "must name one file for each worker"),
        (
            {"files": [{"rank": 0, "member": 0, "name": "../x", "bytes": 1, "crc32": "00000000"}]},
            "must be in the order of the ranks, got '../x'",
        ),
        ({"losses": [7]}, "a loss is not a step and a number"),
        ({"format": "\x1b]0;owned\x07"}, "is not the manifest of a Gossamer checkpoint"),
        ({"model": [["deep"]]}, "is truncated or altered"),
    ],
)
def test_a_sealed_manifest_of_other_values(
    parts: Parts, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    manifest = files.parse_json((newest(tmp_path) / "manifest.json").read_text())
    seal(newest(tmp_path), {**manifest, **change})
    assert said in refusal(parts[2], tmp_path)


def test_what_a_manifest_says_is_printed_harmlessly(parts: Parts, tmp_path: Path) -> None:
    manifest = files.parse_json((newest(tmp_path) / "manifest.json").read_text())
    seal(newest(tmp_path), {**manifest, "model": ["\x1b[31mred\x9b"]})
    assert r"\x1b[31mred\xc2\x9b" in refusal(parts[2], tmp_path)
    seal(newest(tmp_path), {**manifest, "version": "\x1b"})
    assert "of a version that this program does not read" in refusal(parts[2], tmp_path)


def test_a_file_replaces_no_parameters_of_a_group(parts: Parts, tmp_path: Path) -> None:
    model, optimizer, gossip = parts

    def change(tensors: Any, document: Any) -> Any:
        document["groups"][0]["settings"]["dict"].append(["params", []])
        return tensors, document

    rewrite(tmp_path, 0, change)
    assert "have its parameters, which no file may replace" in refusal(gossip, tmp_path)
    assert optimizer.param_groups[0]["params"] == list(model.parameters())


@pytest.mark.parametrize(
    "document",
    [
        *([], {"complex": 7}, {"optimizer": {"99": 1}}, {"optimizer": {"0.weight": 7}}),
        *({"groups": 7}, {"groups": [7]}, {"groups": [{"parameters": [], "settings": 1}]}),
        {"complex": ["parameter/0.weight"]},
    ],
)
def test_a_document_of_anything(parts: Parts, tmp_path: Path, document: Any) -> None:
    model, optimizer, gossip = parts
    before = [*map(torch.clone, model.parameters()), len(optimizer.state)]
    rewrite(tmp_path, 0, lambda tensors, _: (tensors, document))
    assert "does not hold what a worker has" in refusal(gossip, tmp_path)
    now = [*model.parameters(), len(optimizer.state)]
    assert all(
        torch.equal(torch.as_tensor(a), torch.as_tensor(b))
        for a, b in zip(before, now, strict=True)
    )


@pytest.mark.parametrize("vector", ["exp_avg", "step"])
def test_optimizer_state_of_another_shape(parts: Parts, tmp_path: Path, vector: str) -> None:
    model, optimizer, gossip = parts
    before = model[2].bias.clone()

    def change(tensors: Any, document: Any) -> Any:
        tensors[f"optimizer/2.bias/{vector}"] = torch.zeros(2)
        return tensors, document

    rewrite(tmp_path, 0, change)
    assert "does not hold what a worker has" in refusal(gossip, tmp_path)
    assert torch.equal(model[2].bias, before)
    assert int(optimizer.state[model[2].bias]["step"]) == 2


def test_tensors_of_another_shape_or_dtype_change_nothing(parts: Parts, tmp_path: Path) -> None:
    model, _, gossip = parts
    before = model[2].bias.clone()
    good = newest(tmp_path)
    for other in (torch.zeros(1), torch.zeros(3, dtype=torch.float64), torch.zeros(3, 1)):
        rewrite(tmp_path, 0, lambda tensors, document, other=other: (  # type: ignore[misc]
            {**tensors, "parameter/2.bias": other}, document
        ))  # fmt: skip
        assert "does not hold what a worker has" in refusal(gossip, tmp_path)
    assert torch.equal(model[2].bias, before)
    assert good == newest(tmp_path)


# A disk that fails.


@contextmanager
def small_files() -> Iterator[None]:
    """Stands for a full disk: files of this process cannot grow beyond 1000 bytes. That is true of
    what pytest writes as well, so it is for as long as a test does nothing else."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_the_promised_error(tmp_path: Path) -> None:
    model = mlp(hidden=200)
    with Gossip(model, SGD(model.parameters(), lr=0.1)) as gossip:
        gossip.save(tmp_path)
        left = sorted(tmp_path.rglob("*"))
        said = r"rank 0 could not write its file: \[.*worker-00000.*\] .*File too large.*; raise"
        with pytest.raises(gossamer.IoError, match=said), small_files():
            gossip.save(tmp_path)
        assert sorted(tmp_path.rglob("*")) == left
        gossip.load(tmp_path)


def test_metrics_that_cannot_go_on_are_a_warning(tmp_path: Path) -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    with Gossip(model, optimizer, metrics=tmp_path) as gossip:
        train(model, optimizer, [0])
        expected = pytest.warns(RuntimeWarning, match="the metrics in .* end before step")
        with expected as caught, small_files():
            train(model, optimizer, range(1, 30))
        gossip.log(loss=1.0)
        train(model, optimizer, [30])
        assert len(caught) == 1
    lines = (tmp_path / "metrics.rank0.jsonl").read_text().splitlines(keepends=True)
    assert [files.parse_json(line)["step"] for line in lines[:2]] == [1, 2]


def test_a_recipe_follows_no_link(tmp_path: Path) -> None:
    """Whoever may write into the folder may not make us write elsewhere."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".run.toml.{os.getpid()}.tmp").symlink_to(victim)
    model = mlp()
    with Gossip(model, SGD(model.parameters(), lr=0.1)) as gossip:
        recipe = tracing.recipe(gossip._run.session, "SGD")
        tracing.write_recipe(tmp_path, recipe)
        assert victim.read_text() == "mine"
        assert (tmp_path / "run.toml").read_text().startswith("# Written by")
        (tmp_path / "run.toml").unlink()
        os.mkfifo(tmp_path / "run.toml")
        with pytest.raises(OSError, match="not a regular file"):
            tracing.write_recipe(tmp_path, recipe)
