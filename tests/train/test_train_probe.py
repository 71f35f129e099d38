"""`gossamer probe`, and `--topology auto` under a launcher. What is measured decides nothing here:
see gossamer/probe/links_test.cpp for that."""

import json
from pathlib import Path

import pytest
import tomllib
from train_runs import as_torchrun, finish, gossamer, small_text, start


@pytest.fixture
def text(tmp_path: Path) -> list[str]:
    return small_text(tmp_path)


def files_of(out: Path) -> list[str]:
    return ["--cluster", str(out / "cluster.toml"), "--workload", str(out / "workload.toml")]


def test_threads_measure_their_emulated_links(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "probed"
    links = "--hosts 3 --per-host 1 --link-rate 200Mbit/s --link-latency 3ms --steps 77".split()
    done = gossamer("probe", *text, *links, "--out", str(out), "--json")
    found = json.loads(done.stdout)
    assert [host["workers"] for host in found["hosts"]] == [1, 1, 1]
    for host in found["hosts"]:
        assert host["link"]["latency_s"] >= 2.9e-3
        assert 0 < host["link"]["rate_bytes_per_s"] < 1.6 * 25e6
        assert host["inside"]["rate_bytes_per_s"] is None
    assert 0 < found["forward_share"] < 1 and found["compute_s"] > 0 and found["update_s"] > 0
    assert found["parameters"] == sum(found["buckets"]) > 1000
    workload = tomllib.loads((out / "workload.toml").read_text())
    assert workload["target"]["steps"] == 77
    assert sum(workload["bucket_sizes"]) == found["parameters"]
    plan = json.loads(gossamer("plan", *files_of(out), "--json").stdout)
    assert plan["recommended"]
    simulated = json.loads(gossamer("simulate", "aer", *files_of(out), "--json").stdout)
    assert simulated["methods"][0]["step_s"] >= found["compute_s"]


def test_processes_probe_and_print_what_comes_next(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "probed"
    done = finish(start(as_torchrun(2, 1), [0, 1], *text, "--out", str(out), command="probe"))
    for each in done:
        assert each.returncode == 0, each.stderr
    assert done[1].stdout == ""
    assert f"gossamer plan --cluster {out}/cluster.toml" in done[0].stdout
    cluster = tomllib.loads((out / "cluster.toml").read_text())
    assert sum(host.get("count", 1) for host in cluster["hosts"]) == 2
    assert all("link_rate" in host for host in cluster["hosts"])
    gossamer("plan", *files_of(out))


def test_what_cannot_be_probed_is_said(text: list[str], tmp_path: Path) -> None:
    refused = gossamer("probe", *text, "--gamma", "2", check=False)
    assert refused.returncode == 2
    assert "[probe] gamma does not say how fast links are" in refused.stderr
    alone = gossamer("probe", *text, "--transport", "net", check=False)
    assert alone.returncode == 2 and "that a launcher starts" in alone.stderr
    file = tmp_path / "file"
    file.write_text("")
    blocked = gossamer("probe", *text, "--hosts", "1", "--out", str(file / "in"), check=False)
    assert blocked.returncode == 1 and "cannot make the folder" in blocked.stderr


def test_auto_under_a_launcher_measures_and_chooses(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = [*text, "--steps", "4", "--topology", "auto", "--out", str(out)]
    done = finish(start(as_torchrun(2, 1), [0, 1], *run))
    for each in done:
        assert each.returncode == 0, each.stderr
    assert "topology auto: " in done[0].stderr and "topology auto" not in done[1].stderr
    recipe = tomllib.loads((out / "run.toml").read_text())
    assert recipe["algorithm"]["topology"] != "auto"
    prediction = json.loads((out / "prediction.json").read_text())
    assert prediction["step_s"] >= prediction["compute_s"] > 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["predicted_ms_per_step"] == pytest.approx(1e3 * prediction["step_s"])
    assert "predicted per step" in done[0].stdout


def test_auto_needs_links_that_are_emulated_or_real(text: list[str]) -> None:
    refused = gossamer("train", *text, "--topology", "auto", check=False)
    assert refused.returncode == 2
    assert "must be a name where links are not emulated" in refused.stderr
