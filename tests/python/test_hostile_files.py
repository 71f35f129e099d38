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
from gossip_support import mlp, rewrite, seal, train
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


# What load() is given.


@pytest.mark.parametrize("of", ["manifest.json", "rank0-*.safetensors"])
def test_a_pipe_is_an_error_and_no_wait(parts: Parts, tmp_path: Path, of: str) -> None:
    (path,) = tmp_path.glob(of)
    path.unlink()
    os.mkfifo(path)
    said = refusal(parts[2], tmp_path)
    assert "not a regular file" in said or "bytes, got 0" in said


def test_a_manifest_has_a_largest_size(parts: Parts, tmp_path: Path) -> None:
    os.truncate(tmp_path / "manifest.json", 1 << 40)  # of which nothing is on the disk
    assert "larger than the 100000000 bytes" in refusal(parts[2], tmp_path)


@pytest.mark.parametrize("value", ["[" * 100_000, "1" * 5000, "{", "[]", "7"])
def test_a_manifest_of_anything(parts: Parts, tmp_path: Path, value: str) -> None:
    for text in (value, f'{{"format": "gossip checkpoint", "version": {value}}}'):
        (tmp_path / "manifest.json").write_text(text)
        assert "is damaged, or of something else" in refusal(parts[2], tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"workers": "many"},
        {"step": None},
        {"files": {}},
        {"files": [{"rank": 0, "name": "../x", "bytes": 1, "sha256": ""}]},
        {"losses": [7]},
        {"format": "\x1b]0;owned\x07"},
    ],
)
def test_a_sealed_manifest_of_other_values(
    parts: Parts, tmp_path: Path, change: dict[str, Any]
) -> None:
    manifest = files.parse_json((tmp_path / "manifest.json").read_text())
    del manifest["sha256"]
    seal(tmp_path, {**manifest, **change})
    assert "is damaged, or of something else" in refusal(parts[2], tmp_path)


def test_what_a_manifest_says_is_printed_harmlessly(parts: Parts, tmp_path: Path) -> None:
    manifest = files.parse_json((tmp_path / "manifest.json").read_text())
    del manifest["sha256"]
    seal(tmp_path, {**manifest, "model": ["\x1b[31mred\x9b"]})
    assert r"\x1b[31mred\x9b" in refusal(parts[2], tmp_path)
    seal(tmp_path, {**manifest, "version": "\x1b"})
    assert r"of version \x1b;" in refusal(parts[2], tmp_path)


def test_a_file_replaces_no_parameters_of_a_group(parts: Parts, tmp_path: Path) -> None:
    model, optimizer, gossip = parts

    def change(tensors: Any, document: Any) -> Any:
        document["groups"][0]["dict"].append(["params", []])
        return tensors, document

    rewrite(tmp_path, 0, change)
    assert "have its parameters, which no file may replace" in refusal(gossip, tmp_path)
    assert optimizer.param_groups[0]["params"] == list(model.parameters())


@pytest.mark.parametrize("document", [{}, [], {"complex": 7}, {"complex": [], "state": {"99": 1}}])
def test_a_document_of_anything(parts: Parts, tmp_path: Path, document: Any) -> None:
    rewrite(tmp_path, 0, lambda tensors, _: (tensors, document))
    assert "does not hold what a worker has" in refusal(parts[2], tmp_path)


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
        left = sorted(tmp_path.iterdir())
        with (
            pytest.raises(gossamer.IoError, match=r"could not write .*rank0.*; look at the fold"),
            small_files(),
        ):
            gossip.save(tmp_path)
        assert sorted(tmp_path.iterdir()) == left
        gossip.load(tmp_path)


def test_an_old_file_that_stays_is_a_warning(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gossip = parts[2]
    (old,) = tmp_path.glob("rank0-*")
    unlink = Path.unlink

    def fail(path: Path, missing_ok: bool = False) -> None:
        if path == old:
            raise OSError(5, "Input/output error", str(path))
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        with pytest.warns(RuntimeWarning, match="could not remove .*the next save tries again"):
            gossip.save(tmp_path)
    assert old.exists()
    gossip.save(tmp_path)
    assert not old.exists()
    gossip.load(tmp_path)


def test_metrics_that_cannot_go_on_are_a_warning(tmp_path: Path) -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    with Gossip(model, optimizer, metrics=tmp_path):
        train(model, optimizer, [0])
        expected = pytest.warns(RuntimeWarning, match="the metrics in .* end before step")
        with expected as caught, small_files():
            train(model, optimizer, range(1, 30))
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
