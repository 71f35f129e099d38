"""Mistakes on the command line of the programs that train: each has one line as its answer."""

import os
from pathlib import Path

import pytest
from train_runs import ROOT, gossamer

GOLDEN = ROOT / "tests" / "golden" / "train_mistakes.txt"

# FOLDER has text.txt, a recipe, a file of matrices, and no run.
MISTAKES = [
    # Flags and keys.
    "train --verbose",
    "train --topolgy ring",
    "train --learning-rate 1e-3",
    "train --batch-size 8",
    "train --epochs 3",
    "train --lr abc",
    "train --steps 1.5",
    "train --steps",
    "train wrong_key.toml",
    "train --out a --out b",
    "demo --gama 2",
    "translate",
    # Units.
    "train --data text.txt --steps 1 --link-rate 1Gbps",
    "train --data text.txt --steps 1 --link-rate 1",
    "train --data text.txt --steps 1 --link-rate 1Gbit/s --link-latency 5msec",
    # Names, and rows of tables that stand in for something.
    "train --pattern cta",
    "train --optimizer adamv",
    "train --optimizer none",
    "train --codec fp16",
    "train --topology rign",
    "train --model brt --data text.txt",
    "train --transport tcp",
    # A file whose workers never mix: two pairs.
    "train --pattern atc --topology apart.json --hosts 4 --per-host 1 --data text.txt --steps 1",
    # What contradicts, and what nothing reads.
    "train --hosts 4 --per-host 1,2",
    "train --gamma 1 --link-rate 1Gbit/s",
    "train --gamma 1 --gamma 4 --auto-resume --out new",
    "train --checkpoint-every 5",
    "train --model bert --objective masked --hidden 128 --data text.txt",
    "train --model transformer --hidden 128 --data text.txt",
    "train --model softmax_regression --width 8 --task images --data .",
    "train --model resnet50 --dropout 0.1 --task images --data .",
    "probe --gamma 2 --data text.txt",
    # Folders and files that are not there, or not what they should be.
    "train --resume nosuch",
    "train --resume .",
    "train nosuch.toml",
    "train --data nosuch.txt",
    "train --task images --data nosuch",
    "translate nosuch",
    "report nosuch",
    "report",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "text.txt").write_text("".join(f"{k} and {k * k}.\n" for k in range(3000)))
    (tmp_path / "wrong_key.toml").write_text("[optimizer]\nlearning_rate = 0.1\n")
    (tmp_path / "apart.json").write_text('{"rounds": [{"groups": [[0, 1], [2, 3]]}]}')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_mistake_has_its_answer(folder: Path) -> None:
    answers = []
    for arguments in MISTAKES:
        done = gossamer(*arguments.split(), check=False)
        assert done.returncode == 2, (arguments, done.stderr)
        assert done.stdout == "", arguments
        message = done.stderr.strip().splitlines()[-1].replace(str(folder), "FOLDER")
        answers.append(f"$ gossamer {arguments}\n{message}\n")
    text = "".join(answers)
    if os.environ.get("GOSSAMER_GOLDEN") == "renew":
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()
