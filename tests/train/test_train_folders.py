"""`gossamer train` and its folders: unasked checkpoints, sweeps, how a stopped run ends."""

import json
import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from train_runs import GOSSAMER, finish, small_text, start, train, wait_for

REPETITIONS = int(os.environ.get("GOSSAMER_REPETITIONS", "3"))


@pytest.fixture
def text(tmp_path: Path) -> list[str]:
    return [*small_text(tmp_path), "--hosts", "2", "--per-host", "1"]


def test_a_run_with_a_folder_has_checkpoints_unasked(text: list[str], tmp_path: Path) -> None:
    train(*text, "--steps", "60", "--out", str(tmp_path / "long"))
    assert "checkpoint_every = 50" in (tmp_path / "long" / "run.toml").read_text()
    saved = {path.name for path in (tmp_path / "long" / "checkpoints").iterdir()}
    assert {"step-00000050", "step-00000060"} <= saved
    train(*text, "--steps", "4", "--checkpoint-every", "0", "--out", str(tmp_path / "none"))
    assert not (tmp_path / "none" / "checkpoints").exists()


def stopped(arguments: list[str], after: Path) -> str:
    """What a run says that is interrupted once the file has something in it."""
    run = subprocess.Popen([str(GOSSAMER), "train", *arguments], stderr=subprocess.PIPE, text=True)
    wait_for(after, run)
    os.kill(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    return said


def test_a_run_stopped_before_its_first_checkpoint_names_none(
    text: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    slow = "--steps 1000000 --gamma 5 --compute-ms 20 --out".split()
    said = stopped([*text, *slow, str(out)], out / "metrics.rank0.jsonl")
    assert "stopped before the first checkpoint" in said
    assert "--resume" not in said.replace("--auto-resume", "")
    again = train("--resume", str(out), check=False)
    assert again.returncode == 2
    assert "no checkpoint in" in again.stderr


def test_several_gammas_make_a_run_each_on_links_for_one_compute_time(
    text: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "sweep"
    done = train(*text, "--steps", "4", "--gamma", "1", "--gamma", "4", "--json", "--out", str(out))
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    kept = [json.loads((out / f"gamma-{k}" / "summary.json").read_text()) for k in (1, 4)]
    assert runs == kept
    assert runs[0]["compute_ms"] == runs[1]["compute_ms"]
    assert runs[0]["link_bytes_per_s"] == pytest.approx(4 * runs[1]["link_bytes_per_s"])
    assert f"gossamer report {out}/gamma-1 {out}/gamma-4" in done.stderr


def test_a_second_run_in_a_folder_is_told_how_to_compare(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(*text, "--steps", "2", "--out", str(out))
    again = train(*text, "--steps", "2", "--topology", "ring", "--out", str(out), check=False)
    assert again.returncode == 2
    for part in ("already holds a run", "another folder", "gossamer report"):
        assert part in again.stderr


@pytest.mark.parametrize("repetition", range(REPETITIONS))
def test_of_two_runs_at_once_one_is_refused_and_the_other_whole(
    repetition: int, text: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    slow = "--steps 40 --checkpoint-every 1 --gamma 0.5 --compute-ms 20 --out".split()
    runs = finish(start(lambda _: {}, [0, 1], *text, *slow, str(out)))
    (kept,) = (run for run in runs if run.returncode == 0)
    (refused,) = (run for run in runs if run is not kept)
    assert refused.returncode == 2, refused.stderr
    assert re.search(r"another job uses .*a run of gossamer train, process \d+", refused.stderr)
    assert json.loads((out / "summary.json").read_text())["steps"] == 40
    train("--resume", str(out), "--steps", "42")


def test_a_terminal_shows_what_is_left(text: list[str]) -> None:
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [str(GOSSAMER), "train", *text, "--steps", "30", "--json"],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the end of a terminal
            break
        if not piece:
            break
        shown += piece
    assert run.wait(timeout=60) == 0
    os.close(ours)
    assert b"ms/step  " in shown
    assert b" left" in shown


def test_a_run_that_is_stopped_for_longer_than_its_time_out_goes_on(text: list[str]) -> None:
    slow = "--steps 4 --gamma 12 --compute-ms 150 --timeout-s 4".split()
    run = subprocess.Popen(
        [str(GOSSAMER), "train", *text, *slow], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    time.sleep(3)  # somewhere in a step, which waits for nearly two seconds
    os.kill(run.pid, signal.SIGSTOP)
    time.sleep(8)
    os.kill(run.pid, signal.SIGCONT)
    _, said = run.communicate(timeout=120)
    assert run.returncode == 0, said


def test_nohup_outlives_the_terminal(text: list[str], tmp_path: Path) -> None:
    flags = "--steps 6 --gamma 1 --compute-ms 150 --checkpoint-every 1 --out".split()
    out = tmp_path / "run"
    run = subprocess.Popen(
        ["nohup", str(GOSSAMER), "train", *text, *flags, str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(out / "checkpoints" / "latest", run, patience_s=60)
    os.kill(run.pid, signal.SIGHUP)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 0, said
