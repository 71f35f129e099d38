"""Gossip(trace=folder): what every rank did in its last steps, for Perfetto and the report."""

import gzip
import json
import time
from collections import Counter
from itertools import groupby, pairwise
from math import inf
from pathlib import Path
from typing import Any

import gossip_ranks
import pytest
from gossip_scenarios_trace import (
    BACKWARD_S,
    CASES,
    FORWARD_S,
    HIDDEN,
    KEPT,
    PAUSE_S,
    STEPS,
    UPDATE_S,
    Adapted,
)
from gossip_support import mlp, train
from torch.optim import SGD

import gossamer
from gossamer import Gossip

Event = dict[str, Any]
HOSTS = [2, 1]
WORKERS = 3
CLOCKS_APART_US = 1000  # between processes of one machine
PARAMETERS = sum(p.numel() for p in mlp(hidden=HIDDEN).parameters())
SCENARIOS = (
    "traced adapters slow accumulated paused in_groups trace_on_one folder_lost trace_left_open"
)


@pytest.fixture(scope="module")
def ranks(folder: Path) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(SCENARIOS.split(), HOSTS)


@pytest.fixture(scope="module")
def traces(folder: Path, ranks: list[gossip_ranks.Rank]) -> Path:
    """The folder of the traces, once they are there."""
    for scenario in SCENARIOS.split()[:-1]:
        gossip_ranks.results(ranks, scenario)
    return folder


def read(file: Path) -> list[Event]:
    with gzip.open(file, "rt") as packed:
        events: list[Event] = json.load(packed)["traceEvents"]
    return events


def of_rank(folder: Path, rank: int) -> list[Event]:
    return read(folder / f"trace.rank{rank}.json.gz")


def work_of(events: list[Event], rank: int, step: int | None = None) -> list[Event]:
    own = [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == (rank, 0)]
    return [e for e in own if step is None or e["args"]["step"] == step]


def kinds(work: list[Event]) -> list[str]:
    """One for several of a kind in a row."""
    return [kind for kind, _ in groupby(e["name"] for e in work)]


def seconds(work: list[Event], kind: str) -> float:
    return sum(e["dur"] for e in work if e["name"] == kind) * 1e-6


def links_of(events: list[Event]) -> dict[int, str]:
    """Names of the links by track."""
    tracks = [e for e in events if e["ph"] == "M" and e["name"] == "thread_name"]
    return {e["tid"]: e["args"]["name"] for e in tracks if e["pid"] == WORKERS}


def messages(events: list[Event]) -> dict[tuple[int, int, int], int]:
    """Bytes by sender, receiver and step."""
    names = links_of(events)
    found: Counter[tuple[int, int, int]] = Counter()
    for e in events:
        if e["ph"] == "X" and e["pid"] == WORKERS:
            sender, receiver = map(int, names[e["tid"]].split(" to "))
            found[sender, receiver, e["args"]["step"]] += e["args"]["bytes"]
    return found


def test_of_a_model_with_adapters_only_these_travel(
    traces: Path, ranks: list[gossip_ranks.Rank]
) -> None:
    assert gossip_ranks.results(ranks, "adapters") == [True] * WORKERS
    trained = sum(p.numel() for p in Adapted().parameters() if p.requires_grad)
    found = messages(of_rank(traces / "adapters", 0))
    gaps = 2 * 64  # each of the two tensors begins at a multiple of 64 elements
    assert found and all(4 * trained <= sent < 4 * (trained + gaps) for sent in found.values())


@pytest.mark.parametrize("case", CASES)
def test_the_last_steps_are_there_without_gaps(traces: Path, case: str) -> None:
    for rank in range(WORKERS):
        events = of_rank(traces / case, rank)
        name = {"name": f"worker {rank}, host {0 if rank < 2 else 1}"}
        assert {"ph": "M", "name": "process_name", "pid": rank, "args": name} in events
        assert {e["pid"] for e in events} <= {rank, WORKERS}
        work = work_of(events, rank)
        assert [e["args"]["step"] for e in work] == sorted(e["args"]["step"] for e in work)
        assert {e["args"]["step"] for e in work} == set(range(STEPS - KEPT, STEPS))
        for one, other in pairwise(work):
            assert one["ts"] + one["dur"] == pytest.approx(other["ts"], abs=2e-3)
        for step in range(STEPS - KEPT, STEPS):
            own = work_of(events, rank, step)
            said = kinds(own)
            assert said[:2] == ["forward", "backward"]
            assert said.count("forward") == 1
            assert "update" in said
            buckets = {e["args"].get("bucket") for e in own if e["name"] == "update"} - {None}
            assert buckets == set(range(len(buckets))) and len(buckets) > 2


@pytest.mark.parametrize("case", [case for case in CASES if case != "skip"])
def test_every_bucket_has_an_exchange_and_every_edge_its_bytes(traces: Path, case: str) -> None:
    steps = range(STEPS - KEPT, STEPS)
    launched: dict[tuple[int, int, int], float] = {}
    parts = [of_rank(traces / case, rank) for rank in range(WORKERS)]
    for rank, events in enumerate(parts):
        exchanges = [e for e in events if e["name"] == "exchange"]
        found = Counter((e["args"]["step"], e["args"]["bucket"]) for e in exchanges)
        count = 1 + max(bucket for _, bucket in found)
        assert count > 2
        assert found == Counter((step, bucket) for step in steps for bucket in range(count))
        assert {e["tid"] for e in exchanges} == set(range(1, 1 + count))
        for e in exchanges:
            launched[rank, e["args"]["step"], e["args"]["bucket"]] = e["ts"]
    for rank, events in enumerate(parts):
        sizes = messages(events)
        assert {(receiver, step) for _, receiver, step in sizes} == {(rank, step) for step in steps}
        if case in ("cwa", "atc", "backward", "c10d"):  # all to all, each all it has
            assert len(sizes) == (WORKERS - 1) * KEPT
            (size,) = set(sizes.values())
            assert PARAMETERS <= size // 4 <= PARAMETERS + 16 * (4 + count)  # tensors are aligned
    if case == "allreduce":  # between the hosts: their sums, with a count for each tensor
        for sender, receiver in ((0, 2), (2, 0), (1, 2), (2, 1)):
            crossing = sum(messages(parts[receiver]).get((sender, receiver, s), 0) for s in steps)
            assert crossing > 0
    for events in parts:
        reached: dict[int, float] = {}
        for e in events:
            if e["ph"] != "X" or e["pid"] != WORKERS:
                continue
            assert e["ts"] >= reached.get(e["tid"], -inf) - 2e-3
            reached[e["tid"]] = e["ts"] + e["dur"]


def test_nothing_arrives_before_it_was_launched(traces: Path) -> None:
    parts = [of_rank(traces / "cwa", rank) for rank in range(WORKERS)]
    launched = {
        (rank, e["args"]["step"], e["args"]["bucket"]): e["ts"]
        for rank, events in enumerate(parts)
        for e in events
        if e["name"] == "exchange"
    }
    count = 0
    for events in parts:
        names = links_of(events)
        for e in events:
            if e["ph"] == "X" and e["pid"] == WORKERS:
                sender = int(names[e["tid"]].split()[0])
                at = launched[sender, e["args"]["step"], int(e["name"].split()[1])]
                assert e["args"]["arrived_us"] >= at - CLOCKS_APART_US
                count += 1
    assert count > 0


@pytest.mark.parametrize("case", ["own", "fused", "early", "mean"])
def test_time_is_given_to_what_it_was_spent_on(traces: Path, case: str) -> None:
    for rank in range(WORKERS):
        events = of_rank(traces / case, rank)
        for step in range(3):
            work = work_of(events, rank, step)
            assert seconds(work, "forward") >= FORWARD_S
            assert seconds(work, "backward") >= BACKWARD_S
            assert seconds(work, "update") >= (UPDATE_S if case == "own" else 0)


@pytest.mark.parametrize("case", ["both", "both_mean"])
def test_a_step_may_have_several_passes(traces: Path, case: str) -> None:
    for rank in range(WORKERS):
        events = of_rank(traces / case, rank)
        for step in range(2):
            work = work_of(events, rank, step)
            assert kinds(work)[:4] == ["forward", "backward"] * 2
            assert seconds(work, "forward") >= 2 * FORWARD_S
            assert seconds(work, "backward") >= 2 * BACKWARD_S


def test_pauses_belong_to_no_step_and_what_was_done_again_is_there_once(
    traces: Path, ranks: list[gossip_ranks.Rank]
) -> None:
    assert gossip_ranks.results(ranks, "paused") == [6] * WORKERS
    for rank in range(WORKERS):
        events = of_rank(traces / "paused", rank)
        work = work_of(events, rank)
        # What was before it went back is gone: it would be there twice.
        assert sorted({e["args"]["step"] for e in work}) == [3, 4, 5]
        for step in range(3, 6):
            # A restart with other parameters is in the middle of step 5.
            assert kinds(work_of(events, rank, step)).count("backward") == 1
        assert all(e["ts"] >= 0 for e in work)


def test_an_average_is_a_gap(tmp_path: Path) -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    with Gossip(model, optimizer, trace=tmp_path) as gossip:
        train(model, optimizer, range(2))
        with gossip.averaged():
            time.sleep(PAUSE_S)
        train(model, optimizer, range(2, 4))
    work = work_of(of_rank(tmp_path, 0), 0)
    gaps = [other["ts"] - one["ts"] - one["dur"] for one, other in pairwise(work)]
    assert sum(gap >= PAUSE_S * 1e6 for gap in gaps) == 1
    assert sum(gap > 1 for gap in gaps) == 1
    assert {e["args"]["step"] for e in work} == set(range(4))
    assert not [e for e in of_rank(tmp_path, 0) if e["name"] == "exchange"]  # alone


def test_groups_have_folders_of_their_own(ranks: list[gossip_ranks.Rank]) -> None:
    assert gossip_ranks.results(ranks, "in_groups")[0] == [
        *("group0/run.toml", "group0/trace.rank0.json.gz", "group0/trace.rank1.json.gz"),
        *("group2/run.toml", "group2/trace.rank0.json.gz"),
    ]


def test_all_ranks_have_one_or_none(ranks: list[gossip_ranks.Rank]) -> None:
    for rank, (odd, file) in enumerate(gossip_ranks.results(ranks, "trace_on_one")):
        assert odd["type"] == "ValueError"
        assert "rank 0 has trace of 64 steps, got no trace on rank 1" in odd["message"]
        assert file["type"] == ("IoError" if rank == WORKERS - 1 else "ValueError")
        assert "the folder of the trace cannot be made" in file["message"]


def test_a_lost_folder_costs_the_trace_only(ranks: list[gossip_ranks.Rank]) -> None:
    for rank, found in enumerate(gossip_ranks.results(ranks, "folder_lost")):
        (warned,) = found["warned"]
        assert warned.startswith(f"[Gossip] rank {rank} could not write its trace: ")
        assert f"lost{rank}" in warned
        assert found["difference"] < 1e-6


def test_whoever_does_not_close_leaves_a_trace(
    traces: Path, ranks: list[gossip_ranks.Rank]
) -> None:
    assert [rank.code for rank in ranks] == [0] * WORKERS
    assert "out of memory" in ranks[0].said["trace_left_open"]["failed"]
    for rank in range(WORKERS):
        work = work_of(of_rank(traces / "left", rank), rank)
        assert {e["args"]["step"] for e in work} == {0, 1}


def test_the_report_reads_it(traces: Path, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    from gossamer import report

    page = tmp_path / "page.html"
    folders = [str(traces / case) for case in ("cwa", "allreduce")]
    assert report.main([*folders, "--out", str(page), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    for own, pattern, topology in zip(
        said["runs"], ("cwa", "allreduce"), ("ring", "complete"), strict=True
    ):
        assert (own["kind"], own["steps"]) == ("measured", STEPS)
        assert (own["pattern"], own["topology"], own["codec"]) == (pattern, topology, "fp32")
        assert (own["workers"], own["hosts"]) == (WORKERS, 2)
        assert own["ms_per_step"] > 0
    assert said["runs"][0]["share_of_allreduce"] is not None
    assert "Timelines" in page.read_text()


def test_the_report_reads_traces_alone(traces: Path, tmp_path: Path, capsys: Any) -> None:
    """Of some of the ranks, as where each host has a disk of its own."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    from gossamer import report

    for rank in (0, 2):
        name = f"trace.rank{rank}.json.gz"
        (tmp_path / name).write_bytes((traces / "cwa" / name).read_bytes())
    assert report.main([str(tmp_path), "--json"]) == 0
    (own,) = json.loads(capsys.readouterr().out)["runs"]
    assert own["kind"] == "measured"
    assert own["workers"] == 2


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("mine = 1\n")
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    for topology in ("ring", "complete"):
        with Gossip(model, optimizer, topology=topology, trace=str(tmp_path), trace_steps=1):
            train(model, optimizer, range(2))
        assert (tmp_path / "run.toml").read_text() == "mine = 1\n"
    (tmp_path / "run.toml").unlink()
    for topology in ("ring", "complete"):
        with Gossip(model, optimizer, topology=topology, trace=tmp_path):
            train(model, optimizer, range(2))
        assert f'topology = "{topology}"' in (tmp_path / "run.toml").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.toml", "trace.rank0.json.gz"]


@pytest.mark.parametrize("steps", [0, -3])
def test_it_has_steps(tmp_path: Path, steps: int) -> None:
    model = mlp()
    with pytest.raises(ValueError, match=f"trace_steps must be positive, got {steps}"):
        Gossip(model, SGD(model.parameters(), lr=0.1), trace=tmp_path, trace_steps=steps)


def test_a_folder_that_cannot_be_made_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    with pytest.raises(gossamer.IoError, match="the folder of the trace cannot be made"):
        Gossip(model, optimizer, trace=tmp_path / "file" / "folder")
    train(model, optimizer, range(1))
