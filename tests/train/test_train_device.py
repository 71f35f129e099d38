"""`gossamer train --device`, on the device of the tests: the numbers of CPU memory.

GOSSAMER_TESTS_DEVICE=cuda takes a real one in its place.
"""

import json
import os
from pathlib import Path

import pytest
import tomllib
from train_runs import GOSSAMER, Done, as_torchrun, finish, gossamer, small_text, start

NEAR = 1e-5  # float32; sums come in another order
NAME = os.environ.get("GOSSAMER_TESTS_DEVICE", "testdev")
IS_REAL = NAME != "testdev"
DEVICE = {"LD_PRELOAD": str(GOSSAMER.with_name("libgossamer_preloaded_device.so"))}
if IS_REAL:
    DEVICE = {}
MEASURED = ("loss", "grad_norm", "mixing_distance", "val_loss", "val_accuracy", "disagreement")
WAYS = {
    "adamw": "--optimizer adamw --clip-norm 1 --weight-decay 0.1",
    "sgd": "--optimizer sgd --lr 0.1",
    "nesterov": "--optimizer momentum --nesterov --lr 0.05 --weight-decay 0.01",
    "adam": "--optimizer adam --weight-decay 0.1",
    "accum_adamw": "--optimizer accum_adamw --accumulate 3 --weight-decay 0.1",
    "accum_adam": "--optimizer accum_adam --weight-decay 0.1 --dropout 0.1",
    "atc": "--pattern atc --codec bf16",
    "exact_diffusion": "--pattern exact_diffusion --topology ring --lazy",
    "extra": "--pattern extra --topology ring --lazy",
    "adaptive": "--adaptive-average 3 --local-steps 2",
}


@pytest.fixture
def text(tmp_path: Path) -> list[str]:
    return [*small_text(tmp_path), "--steps", "10", "--trace-steps", "0"]


def on_device(*arguments: str, check: bool = True) -> Done:
    return gossamer(*arguments, "--device", NAME, check=check, variables=DEVICE)


def rows(out: Path) -> list[dict[str, float]]:
    """What was measured, worker after worker."""
    lines = [
        json.loads(line)
        for file in sorted(out.glob("metrics.rank*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    return [{key: line[key] for key in MEASURED if key in line} for line in lines]


def assert_alike(found: Path, expected: Path, zero: float = 1e-7) -> None:
    one, other = rows(found), rows(expected)
    assert len(one) == len(other) > 10
    for line, wanted in zip(one, other, strict=True):
        assert line == pytest.approx(wanted, rel=NEAR, abs=zero)


@pytest.mark.parametrize("way", WAYS)
def test_a_device_trains_as_cpu_memory_does(text: list[str], tmp_path: Path, way: str) -> None:
    told = [*text, "--hosts", "2", "--per-host", "2", *WAYS[way].split()]
    gossamer("train", *told, "--out", str(tmp_path / "cpu"))
    done = on_device("train", *told, "--out", str(tmp_path / "device"))
    assert_alike(tmp_path / "device", tmp_path / "cpu")
    assert f"shares {NAME}:0 with another one, of 1 there are" in done.stderr


@pytest.mark.parametrize(("pattern", "zero"), [("allreduce", 1e-7), ("gradient_gossip", 1e-6)])
def test_processes_average_gradients_of_a_device(
    text: list[str], tmp_path: Path, pattern: str, zero: float
) -> None:
    """Gossip of gradients with everybody has the numbers of all-reduce; its mixes of equal
    parameters round them."""
    told = [*text, "--topology", "complete", "--clip-norm", "1"]
    here = ["--pattern", "allreduce", "--hosts", "1", "--per-host", "3"]
    gossamer("train", *told, *here, "--out", str(tmp_path / "cpu"))
    out = tmp_path / "device"
    launched = as_torchrun(3, 3)
    there = [*told, "--pattern", pattern, "--device", NAME, "--out", str(out)]
    for done in finish(start(lambda rank: DEVICE | launched(rank), [0, 1, 2], *there)):
        assert done.returncode == 0, done.stderr
    assert_alike(out, tmp_path / "cpu", zero=zero)


def test_a_run_goes_on_where_it_was_saved_on_either(text: list[str], tmp_path: Path) -> None:
    told = [*text, "--hosts", "1", "--per-host", "2", "--lr-schedule", "constant"]
    whole = tmp_path / "whole"
    on_device("train", *told, "--optimizer", "accum_adamw", "--out", str(whole))
    for place in ("cpu", NAME):
        out = tmp_path / place
        begun = [*told, "--optimizer", "accum_adamw", "--checkpoint-every", "5"]
        on_device("train", *begun, "--steps", "5", "--out", str(out))
        told_more = ["--resume", str(out), "--steps", "10", "--device", place]
        gossamer("train", *told_more, variables=DEVICE)
        last = [line for line in rows(out) if "val_loss" in line][-1]
        assert last == pytest.approx([r for r in rows(whole) if "val_loss" in r][-1], rel=NEAR)


def test_gossip_of_gradients_goes_on_with_the_rounds_that_are_due(
    text: list[str], tmp_path: Path
) -> None:
    told = [*text, "--pattern", "gradient_gossip", "--topology", "one_peer_exponential"]
    told += ["--device", NAME, "--lr-schedule", "constant", "--steps", "10"]

    def run(out: Path, *more: str) -> None:
        launched = as_torchrun(4, 4)
        flags = [*more, "--out", str(out)]
        for done in finish(start(lambda r: DEVICE | launched(r), [0, 1, 2, 3], *told, *flags)):
            assert done.returncode == 0, done.stderr

    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run(whole)
    run(parts, "--steps", "5", "--checkpoint-every", "5")
    run(parts, "--auto-resume")
    last = [[line for line in rows(out) if "val_loss" in line][-1] for out in (whole, parts)]
    assert last[1] == pytest.approx(last[0], rel=NEAR)


def test_a_probe_finds_the_rate_of_copies(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "probed"
    links = "--hosts 2 --per-host 1 --link-rate 200Mbit/s".split()
    done = on_device("probe", *text, *links, "--out", str(out))
    assert "copies between a device and its host's memory" in done.stdout
    for host in tomllib.loads((out / "cluster.toml").read_text())["hosts"]:
        assert host["device_rate"].endswith("bit/s")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("--device cuda:7", "[device] 'cuda:7' is not here"),
        ("--device gpu", "[device] torch knows no such device, got 'gpu'"),
        ("--device cuda --pattern dmsgd --optimizer momentum", "device must be cpu for a pattern"),
        ("--device cuda --update backward", "device must be cpu where buckets step in the backw"),
    ],
)
def test_what_a_device_does_not_serve_is_said(text: list[str], told: str, said: str) -> None:
    done = gossamer("train", *text, *told.split(), check=False)
    assert done.returncode == 2 and said in done.stderr


@pytest.mark.parametrize("pattern", ["allreduce", "gradient_gossip"])
def test_threads_that_average_gradients_on_one_device_are_refused(
    text: list[str], pattern: str
) -> None:
    done = on_device("train", *text, "--pattern", pattern, check=False)
    assert done.returncode == 2
    assert "workers that average gradients on one device must be processes" in done.stderr
