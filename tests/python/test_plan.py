"""Forecasts and rankings from Python: the same numbers as the command line's."""

import json
import subprocess
from pathlib import Path

import pytest

import gossamer

PROGRAM = Path(__file__).parents[2] / "build" / "bin" / "gossamer"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    cluster = tmp_path / "cluster.toml"
    cluster.write_text(
        '[[hosts]]\ncount = 3\nworkers = 2\nlink_rate = "100Mbit/s"\n'
        '[[hosts]]\nworkers = 2\nlink_rate = "25Mbit/s"\nspeed = 0.8\n'
    )
    workload = tmp_path / "workload.toml"
    workload.write_text('parameters = 1_000_000\ncompute = "100ms"\ndeviation = "5ms"\n')
    return str(cluster), str(workload)


def test_a_forecast_is_what_the_command_prints(files: tuple[str, str]) -> None:
    cluster, workload = files
    line = [str(PROGRAM), "simulate", "fitted:bf16", "--cluster", cluster, "--workload", workload]
    done = subprocess.run([*line, "--json"], check=True, capture_output=True, text=True)
    (printed,) = json.loads(done.stdout)["methods"]
    forecast = gossamer.forecast("fitted:bf16", cluster, workload)
    assert forecast.method == printed["method"] == "fitted:bf16"
    assert forecast.step_s == printed["step_s"] > 0.1
    assert forecast.bytes_per_host == printed["bytes_per_host_per_step"]
    assert forecast.model_s == printed["model_step_s"]
    assert forecast.exposed_s + 0.1 < forecast.step_s + 0.03
    assert gossamer.forecast("fitted:bf16", cluster, workload, seed=2).step_s != forecast.step_s


def test_methods_are_ranked_by_time(files: tuple[str, str]) -> None:
    ranking = gossamer.rank_methods(*files)
    totals = [method.total_s for method in ranking.methods]
    assert totals == sorted(totals)
    assert ranking.recommended in [method.method for method in ranking.methods]
    assert ranking.reasons and ranking.doubts


def test_mistakes_name_line_and_column(files: tuple[str, str], tmp_path: Path) -> None:
    cluster, workload = files
    with pytest.raises(ValueError, match="did you mean 'ring'"):
        gossamer.forecast("rign", cluster, workload)
    broken = tmp_path / "broken.toml"
    broken.write_text("[[hosts]]\nworkers = -2\n")
    with pytest.raises(ValueError, match=r"broken\.toml:2:11\] 'workers' must be from 1"):
        gossamer.rank_methods(str(broken), workload)
    with pytest.raises(gossamer.IoError, match="cannot be read"):
        gossamer.rank_methods(str(tmp_path / "nowhere.toml"), workload)


def test_a_fitted_schedule_follows_the_rates() -> None:
    schedule = gossamer.make_schedule("fitted", [2, 2, 2, 2], link_rates=[4, 4, 4, 1])
    sent = [0, 0, 0, 0]
    for t in range(schedule.period):
        for host, (to_others, _) in enumerate(schedule.elements_between_hosts(t, 1000)):
            sent[host] += to_others
    assert sent[3] * 8 == 1000 * schedule.period
    assert 2 * sent[3] <= min(sent[:3]) <= max(sent[:3]) <= 4 * sent[3] + 1000
