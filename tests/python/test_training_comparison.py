"""The comparison of real training: its pure parts, its mistakes, and a short run of it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import conftest  # noqa: F401  the package's place, before the package
import pytest

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ROOT / "bench" / "training"
sys.path[:0] = [str(ROOT / "tools")]
# Last, for the benchmarks have files of the same names.
sys.path += [str(TRAINING), *(str(ROOT / "bench" / place) for place in ("cluster", "python"))]
sys.path += [str(ROOT / "examples" / "gpt")]

import cluster as clusters  # noqa: E402
import curves  # noqa: E402
import rates  # noqa: E402
import torch  # noqa: E402
from curves import Point  # noqa: E402
from models import Transformer, loss_of  # noqa: E402
from pacing import pace  # noqa: E402
from settings import SETTINGS  # noqa: E402
from sleeping_model import Clockwork, Pace  # noqa: E402

REASON = clusters.missing_rights()
needs_cluster = pytest.mark.skipif(bool(REASON), reason=f"no emulated cluster: {REASON}")
CURVE = [Point(0, 0.0, 5.0), Point(10, 4.0, 3.0), Point(20, 8.0, 2.0), Point(30, 12.0, 2.5)]


def run(*words: str, script: str = "run.py") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TRAINING / script), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


@pytest.mark.parametrize(
    ("loss", "seconds"), [(5.0, 0.0), (4.0, 2.0), (3.0, 4.0), (2.25, 7.0), (2.0, 8.0), (1.9, None)]
)
def test_the_time_to_a_loss_lies_on_the_line_where_it_is_first_reached(
    loss: float, seconds: float | None
) -> None:
    assert curves.time_to(CURVE, loss) == seconds


def test_a_curve_of_nothing_reaches_nothing() -> None:
    assert curves.time_to([], 1.0) is None


def test_the_loss_after_steps() -> None:
    assert curves.loss_at(CURVE, 15) == 2.5
    assert curves.loss_at(CURVE, 30) == 2.5
    with pytest.raises(ValueError, match="no loss at 31 steps: the curve has 0 to 30"):
        curves.loss_at(CURVE, 31)


def test_the_learning_rate_rises_and_falls_without_knowing_the_end() -> None:
    factors = [curves.rate_factor(step, 10) for step in range(40)]
    assert factors[0] == 0.1
    assert factors[9] == max(factors) == 1.0
    assert factors[39] == 0.5  # a quarter of the way there: 10 / 40


def test_the_links_need_gamma_times_the_compute_for_a_ring() -> None:
    main = next(setting for setting in SETTINGS if setting.name == "main")
    payload = rates.payload_bytes(main)
    model = Transformer(main.width, main.layers, main.heads, main.length)
    assert payload == 4 * sum(parameter.numel() for parameter in model.parameters())
    sent = 2 * 7 / 8 * payload * 1514 / 1448
    assert 8 * sent / rates.rate_for(main, 8) == pytest.approx(main.gamma * main.compute_s)


def test_real_layers_keep_the_pace_and_their_gradients() -> None:
    batch = (torch.arange(16).view(2, 8), torch.arange(16).view(2, 8) + 1)
    torch.manual_seed(0)
    plain = Transformer(16, 2, 2, 8)
    torch.manual_seed(0)
    paced = Transformer(16, 2, 2, 8)
    clock = Pace(0.2)
    pace(paced, [paced.embed, *paced.blocks, paced.head], Clockwork(clock))
    loss_of(plain, batch).backward()
    begin = time.perf_counter()
    loss_of(paced, batch).backward()
    assert time.perf_counter() - begin >= 0.2
    assert clock.total_s == 0.2, "one step"
    for one, other in zip(plain.parameters(), paced.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)
    paced.eval()
    with torch.no_grad():
        loss_of(paced, batch)
    assert clock.total_s == 0.2, "a validation is no step"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--settings mian", "no setting 'mian'; there are: main, late"),
        ("--contenders dpd", "no contender 'dpd'; there are: alone, ddp"),
        ("--steps 0", "--steps must be above 0, got 0"),
        ("--gamma -1", "--gamma must be above 0, got -1.0"),
        ("--batch 0", "--batch must be above 0, got 0"),
        ("--compute 0", "--compute must be above 0, got 0; 0 is for --rate"),
        ("--settings late --compute 0 --rate none", "in which nobody is late"),
        ("--settings main --rate 20Mbps", "a rate must be like 20Mbit/s or none, got '20Mbps'"),
        ("--text /nowhere", "--text: at least 10000 bytes are needed, got 0 in /nowhere; give"),
    ],
)
def test_mistakes_are_named_before_anything_runs(words: str, said: str) -> None:
    done = run(*words.split())
    assert done.returncode == 1
    assert done.stderr.startswith("[training] ")
    assert said in done.stderr


@needs_cluster
def test_a_short_run_trains_and_tells(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    words = ["--quick", "--settings", "main", "--compute", "0.05", "--steps", "4"]
    done = run(*words, "--json", str(out), "--logs", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(out.read_text())["settings"]
    ddp, aer = found["rows"]
    assert (ddp["status"], aer["status"]) == ("ok", "ok")
    assert ddp["disagreement"] < 1e-9 < aer["disagreement"]
    assert ddp["time_to_ddp"] == 1.0
    assert found["target"] == ddp["final_loss"]
    first = [row["curve"][0]["loss"] for row in (ddp, aer)]
    assert first[0] == first[1], "the same parameters at first"
    assert ddp["curve"][-1]["loss"] < first[0]
    assert "ddp" in done.stdout


LOSS_SETTINGS = ("text", "text schedule-free", "text sharded", "large sharded")


@pytest.mark.parametrize("name", LOSS_SETTINGS)
def test_losses_after_a_few_steps(name: str, tmp_path: Path) -> None:
    """Averaged gradients give DDP's and FSDP's loss to four digits, int8 nearly; gossip not so."""
    out = tmp_path / "out.json"
    words = ["--quick", "--seeds", "1", "--settings", name]
    done = run(*words, "--json", str(out), script="losses.py")
    assert done.returncode == 0, done.stdout + done.stderr
    (setting,) = json.loads(out.read_text())["settings"]
    by_name = {(row["contender"], row["rate"]): row for row in setting["rows"]}
    assert all(row["status"] == "ok" for row in by_name.values())
    for (contender, rate), row in by_name.items():
        if "allreduce" in contender and rate == 1:
            assert abs(row["excess"][0]) < (1e-3 if "int8" in contender else 1e-5)
        if "cwa" in contender:
            assert abs(row["excess"][0]) > 1e-3
    if name == "large sharded":
        assert by_name["hsdp", 1.0]["runs"][0]["parameters"] >= 2e6


def test_losses_names_a_setting_that_is_not_there() -> None:
    done = run("--settings", "large", script="losses.py")
    assert done.returncode == 1
    known = ", ".join(LOSS_SETTINGS)
    assert f"no setting 'large'; there are: {known}" in done.stderr
