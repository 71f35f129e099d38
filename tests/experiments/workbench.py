"""A small experiment, the program that stands for `gossamer`, and folders of their own."""

import copy
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import run_grids

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = ROOT / "experiments"
FAKE = Path(__file__).with_name("fake_gossamer.py")
TABLE: dict[str, Any] = {
    "seeds": [1, 2],
    "tune_seeds": [1],
    "tune_on": "ring",
    "topologies": ["ring", "complete"],
    "recipe": {
        "data": {
            "task": "translation",
            "data": "text/train.en",
            "target": "text/train.de",
            "validation": "text/val.en",
            "validation_target": "text/val.de",
        },
        "run": {"steps": 4, "evaluate_every": 2, "checkpoint_every": 2},
    },
    "methods": [
        {"name": "AllReduce", "pattern": "allreduce", "lr": [0.01, 0.02, 0.04]},
        {"name": "DAdam", "pattern": "cwa", "lr": [0.02, 0.04, 0.08]},
    ],
}


def table(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(TABLE) | changes


def toml(table: dict[str, Any]) -> str:
    """What TOML and JSON share is enough for these."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items() if key in SIMPLE]
    sections = {f"recipe.{name}": settings for name, settings in table["recipe"].items()}
    for section, settings in {"time": table.get("time", {}), **sections}.items():
        lines += [f"[{section}]", *(f"{k} = {json.dumps(v)}" for k, v in settings.items())]
    for name in ("methods", "cases"):
        for entry in table.get(name, []):
            lines += [f"[[{name}]]", *(f"{k} = {json.dumps(v)}" for k, v in entry.items())]
    return "\n".join(lines) + "\n"


SIMPLE = ("title", "seeds", "tune_seeds", "tune_on", "topologies")


@dataclass
class Bench:
    """Everything that a call of run_grids.py needs, in a temporary folder."""

    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def results(self) -> Path:
        return self.folder / "results" / "small.jsonl"

    def write(self, table: dict[str, Any]) -> None:
        (self.folder / "small.toml").write_text(toml(table))

    def words(self, *more: str) -> list[str]:
        folder = self.folder
        places = {"data": self.data, "runs": folder / "runs", "results": self.results.parent}
        places["gossamer"] = folder / "gossamer"
        named = [word for name, path in places.items() for word in (f"--{name}", str(path))]
        return [str(folder / "small.toml"), *named, *more]

    def run(self, *more: str) -> int:
        return run_grids.main(self.words(*more))

    def records(self) -> list[dict[str, Any]]:
        if not self.results.exists():
            return []
        return [json.loads(line) for line in self.results.read_text().splitlines()]

    def trainings(self) -> list[str]:
        """The calls of `gossamer train` so far."""
        lines = (self.folder / "log").read_text().splitlines()
        return [line for line in lines if line.startswith("train")]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path)
    program = tmp_path / "gossamer"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    program.chmod(0o755)
    text = made.data / "text"
    text.mkdir(parents=True)
    for name in ("train.en", "train.de", "val.en", "val.de"):
        (text / name).write_text("a man sleeps in a green room\na dog runs on the street\n")
    (tmp_path / "log").touch()
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    for name in ("FAKE_STOP_AT", "FAKE_BREAK_AT"):
        monkeypatch.delenv(name, raising=False)
    made.write(TABLE)
    return made


def gossamer_program() -> Path:
    """The real one."""
    return Path(os.environ.get("GOSSAMER_PROGRAM", ROOT / "build" / "bin" / "gossamer"))
