"""`gossamer demo`: two ways to train side by side, as numbers and as a table."""

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest
from train_runs import GOSSAMER, gossamer, small_text

NAMES = ["AllReduce AdamW", "AER AccumAdamW"]


@pytest.fixture
def few(tmp_path: Path) -> list[str]:
    """The demo with few steps, of a text that is the same on every machine."""
    return ["demo", *small_text(tmp_path)[:2], "--steps", "3"]


def test_both_summaries_are_of_the_same_steps_and_links(few: list[str]) -> None:
    done = gossamer(*few, "--json", "--gamma", "1", "--lr", "0.001", "--seed", "5")
    found = json.loads(done.stdout)
    assert list(found) == NAMES
    allreduce, ring = found.values()
    for key in "workers steps seed parameters compute_ms link_bytes_per_s".split():
        assert allreduce[key] == ring[key], key
    assert (ring["workers"], ring["steps"], ring["seed"]) == (8, 3, 5)
    assert (allreduce["pattern"], ring["pattern"]) == ("allreduce", "cwa")
    assert ring["topology"] == "alternating_exponential_ring"
    payload = 4 * ring["parameters"]  # what a host sends; padding of buckets comes on top
    assert 1.75 * payload == pytest.approx(allreduce["bytes_per_host_per_step"], rel=0.01)
    assert payload / 2 == pytest.approx(ring["bytes_per_host_per_step"], rel=0.01)
    assert allreduce["disagreement"] == 0 < ring["disagreement"]
    # gamma 1: the links take as long for an all-reduce as a step takes to compute.
    sent_ms = 1e3 * allreduce["bytes_per_host_per_step"] / allreduce["link_bytes_per_s"]
    assert sent_ms == pytest.approx(allreduce["compute_ms"], rel=0.01)
    assert "training with AllReduce AdamW" in done.stderr


def test_the_table_has_what_its_last_sentence_says(few: list[str]) -> None:
    done = gossamer(*few, "--lr", "0.001", "--gossip-lr", "0.003")
    assert "3 steps each\n" in done.stdout
    assert "(gamma = 2)\n" in done.stdout
    assert "learning rates 0.001 and 0.003;" in done.stdout
    rows = {
        name: line.removeprefix(name).split()
        for name in NAMES
        for line in done.stdout.splitlines()
        if line.startswith(name)
    }
    assert list(rows) == NAMES
    ms, speed_up, loss = (
        [float(rows[name][at].rstrip("x")) for name in NAMES] for at in (0, 1, -2)
    )
    assert speed_up == pytest.approx([1, ms[0] / ms[1]], abs=0.02)
    said = re.search(r"in (\d+) % of the time, validation loss ([-+][\d.]+) %", done.stdout)
    assert said is not None
    assert float(said[1]) == pytest.approx(100 * ms[1] / ms[0], abs=1)
    assert float(said[2]) == pytest.approx(100 * (loss[1] / loss[0] - 1), abs=0.02)
    assert "gossamer demo --gamma 0.2" in done.stdout


def test_ctrl_c_does_not_wait_for_a_step_of_minutes(few: list[str]) -> None:
    run = subprocess.Popen(
        [str(GOSSAMER), *few, "--gamma", "10000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stderr is not None
    assert any("training with AllReduce" in line for line in run.stderr)
    run.send_signal(signal.SIGINT)
    printed, said = run.communicate(timeout=60)
    assert (run.returncode, printed) == (130, "")
    assert "stopped" in said or "interrupted" in said


def test_settings_that_make_no_sense_are_refused(few: list[str]) -> None:
    done = gossamer(*few, "--gamma", "-1", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "gamma" in done.stderr
