"""A tiny grid that really trains, translates and is scored, interrupted in between."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from workbench import EXPERIMENTS, Bench, gossamer_program, table

PATIENCE_S = 300
MODEL = {"width": 16, "layers": 1, "heads": 2, "dropout": 0.1}
METHODS = [
    {"name": "AllReduce Adam", "pattern": "allreduce", "lr": [1e-2, 2e-2]},
    {"name": "DAdam", "pattern": "cwa", "lr": 2e-2, "topologies": ["ring"]},
]

pytestmark = pytest.mark.skipif(
    not gossamer_program().exists(), reason="build/bin/gossamer is not built; run make build"
)


def write_text(folder: Path, name: str, lines: int) -> None:
    """Sentences and their translation, word by word."""
    chance = random.Random(lines)
    english = "a man woman dog cat runs sits red blue on the street house".split()
    german = "ein mann frau hund katze rennt sitzt rot blau auf der strasse haus".split()
    picked = [[chance.randrange(len(english)) for _ in range(7)] for _ in range(lines)]
    for language, words in (("en", english), ("de", german)):
        text = "".join(" ".join(words[k] for k in each) + ".\n" for each in picked)
        (folder / f"{name}.{language}").write_text(text)


@pytest.fixture
def real(bench: Bench) -> Iterator[Bench]:
    (bench.folder / "gossamer").unlink()
    (bench.folder / "gossamer").symlink_to(gossamer_program().resolve())
    write_text(bench.data / "text", "train", 300)
    write_text(bench.data / "text", "val", 20)
    yield bench


def experiment(steps: int, **changes: Any) -> dict[str, Any]:
    made = table(methods=METHODS, seeds=[1], **changes)
    made["recipe"]["data"] |= {"vocabulary": 60, "context": 32, "global_batch": 256}
    made["recipe"]["model"] = MODEL
    made["recipe"]["cluster"] = {"hosts": 2, "per_host": "1"}
    made["recipe"]["run"] = {"steps": steps, "evaluate_every": 2, "checkpoint_every": 2}
    return made


def test_a_grid_trains_and_is_scored(real: Bench) -> None:
    real.write(experiment(4))
    assert real.run() == 0
    found = real.records()
    assert len(found) == 3
    for record in found:
        assert [point[0] for point in record["curve"]] == [2, 4]
        assert record["curve"][-1][1] == record["summary"]["val_loss"]
        assert 0 <= record["bleu"] <= 100
        assert record["gossamer"].startswith("gossamer ")
        assert str(real.folder) not in str(record)


def stop_at_a_checkpoint(bench: Bench) -> None:
    """SIGTERM to run_grids.py as soon as its first run has a checkpoint."""
    command = [sys.executable, str(EXPERIMENTS / "run_grids.py"), *bench.words("--limit", "1")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < limit:
        if list((bench.folder / "runs").rglob("checkpoints/latest")):
            process.send_signal(signal.SIGTERM)
            break
        time.sleep(0.01)
    process.wait(PATIENCE_S)


def test_an_interrupted_grid_ends_with_the_same_bits(real: Bench) -> None:
    """Where the machine is so fast that the run ends before the signal, nothing was interrupted,
    and the same must hold."""
    real.write(experiment(60))
    stop_at_a_checkpoint(real)
    assert real.run("--limit", "1") == 0
    broken = real.records()[0]
    real.results.unlink()
    for folder in (real.folder / "runs" / "small").iterdir():
        folder.rename(real.folder / folder.name)
    assert real.run("--limit", "1") == 0
    whole = real.records()[0]
    assert broken["summary"]["val_loss"] == whole["summary"]["val_loss"]
    assert broken["curve"] == whole["curve"]
    assert broken["bleu"] == whole["bleu"]
