"""The trace that `gossamer train` leaves in its run folder."""

import gzip
import json
from collections import Counter
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import pytest
from train_runs import as_torchrun, finish, small_text, start, train

Event = dict[str, Any]
RUN = "--steps 8 --evaluate-every 4 --buckets 4 --topology aer --out".split()
CLOCKS_APART_US = 1000  # between processes of one machine


@pytest.fixture
def text(tmp_path: Path) -> list[str]:
    return small_text(tmp_path)


def read(file: Path) -> list[Event]:
    with gzip.open(file, "rt") as packed:
        events: list[Event] = json.load(packed)["traceEvents"]
    return events


def named(events: list[Event]) -> dict[tuple[int, int], str]:
    """The tracks by process and number, a process at -1."""
    return {
        (event["pid"], event.get("tid", -1)): event["args"]["name"]
        for event in events
        if event["ph"] == "M"
    }


def spans(events: list[Event], workers: int, links: bool) -> list[Event]:
    """What workers did, or what went over links."""
    return [e for e in events if e["ph"] == "X" and (e["pid"] == workers) == links]


def messages(events: list[Event], workers: int) -> Counter[tuple[str, str, int, int]]:
    """By pair of workers, bucket, step and bytes."""
    tracks = named(events)
    return Counter(
        (tracks[workers, e["tid"]], e["name"], e["args"]["step"], e["args"]["bytes"])
        for e in spans(events, workers, links=True)
    )


def assert_no_overlaps(events: list[Event]) -> None:
    reached: dict[tuple[int, int], float] = {}
    for event in events:
        if event["ph"] != "X":  # names, arrows, counters
            continue
        track = (event["pid"], event["tid"])
        assert event["dur"] >= 0
        assert event["ts"] >= reached.get(track, -inf) - 2e-3, event
        reached[track] = event["ts"] + event["dur"]


def assert_steps_are_filled(events: list[Event], worker: int, steps: range) -> None:
    work = [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == (worker, 0)]
    assert sorted({e["args"]["step"] for e in work}) == list(steps)
    for step in steps:
        mine = [e for e in work if e["args"]["step"] == step]
        assert [e["name"] for e in mine].count("forward") == 1
        assert {e["name"] for e in mine} >= {"forward", "backward", "update"}
        assert {e["args"].get("bucket") for e in mine if e["name"] == "update"} >= {0, 1, 2, 3}
        for one, next_one in pairwise(mine):
            assert one["ts"] + one["dur"] == pytest.approx(next_one["ts"], abs=2e-3)


def test_threads_leave_one_trace_of_the_last_steps(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(*text, "--hosts", "2", "--per-host", "2", "--trace-steps", "3", *RUN, str(out))
    events = read(out / "trace.json.gz")
    tracks = named(events)
    assert [tracks[worker, -1] for worker in range(4)] == [
        "worker 0, host 0",
        "worker 1, host 0",
        "worker 2, host 1",
        "worker 3, host 1",
    ]
    assert tracks[4, -1] == "links"
    assert_no_overlaps(events)
    for worker in range(4):
        assert_steps_are_filled(events, worker, range(5, 8))
        exchanges = [e for e in events if e["pid"] == worker and e["name"] == "exchange"]
        found = {(e["args"]["step"], tracks[worker, e["tid"]]) for e in exchanges}
        assert found == {(step, f"bucket {b}") for step in range(5, 8) for b in range(4)}
    pairs = {pair for pair, *_ in messages(events, 4)}
    assert {"0 to 1", "1 to 0", "0 to 2", "2 to 0", "3 to 1"} <= pairs


def test_processes_leave_their_parts_of_it(text: list[str], tmp_path: Path) -> None:
    one, other = tmp_path / "threads", tmp_path / "processes"
    train(*text, "--hosts", "2", "--per-host", "1", *RUN, str(one))
    for done in finish(start(as_torchrun(2, 1), [0, 1], *text, *RUN, str(other))):
        assert done.returncode == 0, done.stderr
    assert not (other / "trace.json.gz").exists()
    parts = [read(other / f"trace.rank{rank}.json.gz") for rank in range(2)]
    launched = {}
    for rank, events in enumerate(parts):
        assert {e["pid"] for e in events} == {rank, 2}
        links = [name for (process, _), name in named(events).items() if process == 2]
        assert sorted(links) == sorted(["links", f"{1 - rank} to {rank}"])
        assert_no_overlaps(events)
        assert_steps_are_filled(events, rank, range(8))
        for e in spans(events, 2, links=False):
            if e["name"] == "exchange":
                launched[rank, e["args"]["step"], e["args"]["bucket"]] = e["ts"]
    both = messages(parts[0], 2) + messages(parts[1], 2)
    assert both == messages(read(one / "trace.json.gz"), 2)
    # Nothing arrives before it was sent: they count from the same moment.
    for rank, events in enumerate(parts):
        for e in spans(events, 2, links=True):
            sent = launched[1 - rank, e["args"]["step"], int(e["name"].split()[1])]
            assert e["args"]["arrived_us"] >= sent - CLOCKS_APART_US


def test_a_trace_can_be_left_out(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    flags = "--hosts 2 --per-host 1 --steps 2 --trace-steps".split()
    train(*text, *flags, "0", "--out", str(out))
    assert not list(out.glob("trace*"))
    refused = train(*text, *flags, "-1", check=False)
    assert refused.returncode == 2
    assert "trace_steps must be not negative, got -1" in refused.stderr
