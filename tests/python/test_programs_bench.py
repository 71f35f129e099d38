"""Programs of others with DDP and with Gossip: one short run, and the tables of records."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench" / "programs"


def call(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, timeout=200
    )


def test_programs_train_with_ddp_and_with_gossip(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    words = ["--programs", "nanogpt,muon", "--rates", "1", "--steps", "2", "--json", str(out)]
    done = call(str(BENCH / "run.py"), *words)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    by_run = {(row["program"], row["contender"]): row for row in rows}
    assert len(by_run) == 2 * 5
    for (program, _), row in by_run.items():
        assert row["status"] == "ok", row
        assert row["loss"] == pytest.approx(by_run[program, "ddp"]["loss"], rel=0.02)
    assert by_run["muon", "cwa"]["changed"] == {"removed": 2, "added": 3}
    assert "| nanogpt |" in call(str(BENCH / "report.py"), str(out)).stdout


def test_losses_are_compared_at_ddps_own_rate(tmp_path: Path) -> None:
    common = {"seed": 0, "cpu_s": 2.0, "peak_mb": 1.0, "status": "ok", "program": "a"}
    common |= {"changed": {"added": 2, "removed": 1}}
    rows = [
        {"contender": "ddp", "rate": 1.0, "loss": 2.0},
        {"contender": "ddp", "rate": 3.0, "loss": 1.0},
        {"contender": "cwa", "rate": 1.0, "loss": 2.1, "cpu_s": 3.0},
        {"contender": "cwa", "rate": 3.0, "loss": 1.98},
    ]
    out = tmp_path / "out.jsonl"
    out.write_text("\n".join(json.dumps(common | row) for row in rows))
    lines = call(str(BENCH / "report.py"), str(out)).stdout.splitlines()
    assert lines[2] == "| a | 2.0000 | +5.0 % | -1.0 % | -50.0 % |"
    assert lines[3] == "| within 2 % | | 0 of 1 | 1 of 1 | 1 of 1 |"
    assert "| a | 1.0000, 3 x | +98.0 %, 3 x |" in lines
    assert "cwa: CPU time 1.25 of DDP's, +0 MB, 2 runs" in lines
    assert "a: +2 -1" in lines


def test_an_unknown_program_is_named() -> None:
    done = call(str(BENCH / "run.py"), "--programs", "nanogtp")
    assert done.returncode == 1
    assert "[programs] unknown program, got 'nanogtp'; valid: nanogpt, " in done.stderr
