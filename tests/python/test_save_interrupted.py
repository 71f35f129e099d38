"""A save that is interrupted at any call of the disk leaves a whole checkpoint to load."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gossip_support import ROOT

SHIM = ROOT / "tests" / "train" / "faulty_disk.c"


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> str:
    library = tmp_path_factory.mktemp("shim") / "faulty_disk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SHIM, "-ldl"], check=True)
    return str(library)


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a folder: only what the calls return matters."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def saves(shim: str, folder: Path, how: str) -> list[Any]:
    program = str(Path(__file__).with_name("interrupted_saves.py"))
    done = subprocess.run(
        [sys.executable, program, str(folder), how],
        env={**os.environ, "LD_PRELOAD": shim, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()][1:]


def test_a_disk_that_fails_at_any_call(shim: str, folder: Path) -> None:
    found = saves(shim, folder, "fail")
    failed = [each for each in found if each["said"]]
    warned = [each for each in found if each["warned"]]
    assert len(failed) >= 8
    assert {each["came"] for each in failed} == {"mkdir", "write", "fsync", "rename", "rename-to"}
    assert any("could not remove an earlier checkpoint" in each["warned"][0] for each in warned)
    for each in found:
        assert each["sound"], each
        assert not each["said"] or "Input/output error" in each["said"]
        assert each["loaded"] in (each["before"], each["before"] + 1)
        assert not [name for name in each["left"] if "tmp" in name], each
        assert each["after"] == ["latest", f"step-{each['loaded'] + 1:08d}"]


def test_a_process_that_is_killed_at_any_call(shim: str, folder: Path) -> None:
    found = saves(shim, folder, "kill")
    ended = [each for each in found if each.get("ended")]
    assert len(ended) == 1  # with no call left to be killed at
    began = [each for each in found if not each.get("ended")]
    assert len(began) >= 12
    assert all(each["sound"] for each in found)
    steps = [each["before"] for each in began]
    assert steps == sorted(steps)
    assert max(b - a for a, b in itertools.pairwise(steps)) <= 1
    assert steps[-1] > 0  # killed after it was committed
    assert ended[0]["after"][0] == "latest"
    assert len(ended[0]["after"]) == 2


def test_where_names_cannot_be_exchanged_the_former_comes_back(
    shim: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on some network file systems: a step that was saved before is moved aside first."""
    monkeypatch.setenv("NO_EXCHANGE", "1")
    *failed, last = saves(shim, folder, "replace")
    assert (last["loaded"], last["said"], last["came"]) == (len(failed) + 1, "", "")
    assert len(failed) == 4, (
        "a worker's file, the manifest, the former aside, this one in its place"
    )
    for each in failed:
        assert each["came"] == "rename"
        assert "Input/output error" in each["said"]
        assert (each["before"], each["loaded"]) == (0, 0)
        assert each["left"] == ["latest", "step-00000001"]
    replaces = ["cannot replace the checkpoint of this step" in each["said"] for each in failed]
    assert replaces == [False, False, True, True]
