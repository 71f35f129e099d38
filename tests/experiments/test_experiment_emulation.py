"""Experiments whose runs are on the emulated cluster themselves."""

from typing import Any

import emulation
import grid
import pytest
import records
import tables
from grid import Experiment, ExperimentError
from workbench import Bench, gossamer_program, table

TIME = {"gamma": 2.0, "rate": "100Mbit/s"}


def two_hosts(**changes: Any) -> dict[str, Any]:
    made = table(**changes)
    made["recipe"]["cluster"] = {"hosts": 2, "per_host": "1"}
    return made


def experiment(**changes: Any) -> Experiment:
    return grid.from_table("small", two_hosts(**changes))


def test_without_a_rate_nothing_is_made() -> None:
    assert emulation.reason_against(experiment()) == ""
    assert emulation.commands(experiment(), "gossamer train") == ["gossamer train"]
    with emulation.made(experiment()) as launcher:
        assert launcher == []


def test_the_commands_make_the_links_and_remove_them() -> None:
    assert emulation.commands(experiment(time=TIME), "gossamer train --seed 1") == [
        "tools/cluster.py up links --hosts 2x1 --rate 100Mbit/s",
        "tools/cluster.py run links -- gossamer train --seed 1",
        "tools/cluster.py down links",
    ]
    uneven = table(time=TIME)
    uneven["recipe"]["cluster"] = {"hosts": 3, "per_host": "1,2,4"}
    assert emulation.hosts_of(grid.from_table("small", uneven)) == "1,2,4"


@pytest.mark.parametrize("rate", ["fast", "1Mbit/s,2Mbit/s,3Mbit/s"])
def test_a_rate_that_is_none_is_named(rate: str) -> None:
    with (
        pytest.raises(ExperimentError, match=r"small: .*rate"),
        emulation.made(experiment(time={"gamma": 2.0, "rate": rate})),
    ):
        pass


def test_what_the_machine_lacks_is_said(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        emulation.emulated, "missing_rights", lambda: "network namespaces need root"
    )
    bench.write(two_hosts(time=TIME))
    assert emulation.reason_against(experiment(time=TIME)) == "network namespaces need root"
    assert bench.run() == 0
    assert bench.trainings() == []


def test_runs_measure_their_own_times(bench: Bench) -> None:
    """A tiny grid that really trains, one process per worker."""
    if not gossamer_program().exists():
        pytest.skip("build/bin/gossamer is not built; run make build")
    if reason := emulation.emulated.missing_rights():
        pytest.skip(reason)
    methods = [
        {"name": "AllReduce", "pattern": "allreduce", "lr": 1e-2},
        {"name": "DAdam", "pattern": "cwa", "lr": 1e-2, "topologies": ["ring"]},
    ]
    made = two_hosts(seeds=[1], time=TIME, methods=methods)
    made["recipe"]["data"] = {"task": "text", "data": "text.txt", "vocabulary": 0, "context": 8}
    made["recipe"]["data"] |= {"global_batch": 4, "validation_samples": 8}
    made["recipe"]["model"] = {"width": 16, "layers": 1, "heads": 2}
    (bench.data / "text.txt").write_text("a man sleeps in a green room\n" * 40)
    (bench.folder / "gossamer").unlink()
    (bench.folder / "gossamer").symlink_to(gossamer_program().resolve())
    bench.write(made)
    assert bench.run() == 0
    found = bench.records()
    assert [record["summary"]["workers"] for record in found] == [2, 2]
    assert all(record["commands"][0].startswith("tools/cluster.py up") for record in found)
    text = tables.document(grid.from_table("small", made), records.read(bench.results))
    assert "2x1 workers" in text
    assert "milliseconds per step of these runs, on links of 100Mbit/s" in text
