"""Transports between real processes: exchange, death, standing still, leaving."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import forked
import pytest
from torch.distributed import FileStore, TCPStore

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import cluster as clusters  # noqa: E402

LIMIT_S = 100
LOOPBACK = "127.0.0.1"
ENDED = {"c10d": "link is broken", "net": "the peer has ended", "streams": "the peer has ended"}


def wait_until_stopped(pid: int) -> None:
    limit = time.monotonic() + LIMIT_S
    while Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
        assert time.monotonic() < limit, f"process {pid} goes on"
        time.sleep(0.001)


class Team:
    """Workers of one scenario, and the store over which they find each other."""

    def __init__(self, scenario: str, workers: int, transport: str) -> None:
        self.transport = transport
        # A socket of our own: the store would listen on every interface.
        listener = socket.create_server((LOOPBACK, 0))
        port = listener.getsockname()[1]
        self.store = TCPStore(
            LOOPBACK,
            port,
            is_master=True,
            timeout=timedelta(seconds=LIMIT_S),
            wait_for_workers=False,
            master_listen_fd=listener.detach(),
        )
        self.processes: list[forked.Forked] | list[subprocess.Popen] = [
            forked.start("workers", [scenario, str(rank), str(workers), str(port), transport])
            for rank in range(workers)
        ]

    def hear(self, word: str, ranks: list[int]) -> None:
        """Until the workers said the word; fails at once where one has ended instead."""
        keys = [f"{word}/{rank}" for rank in ranks]
        limit = time.monotonic() + LIMIT_S
        while not self.store.check(keys):
            for rank in ranks:
                assert self.processes[rank].poll() is None, self.processes[rank].communicate()
            assert time.monotonic() < limit, f"nobody said {word}"
            time.sleep(0.01)

    def say(self, word: str, rank: int) -> None:
        self.store.set(f"{word}/{rank}", "")

    def signal(self, rank: int, number: signal.Signals) -> None:
        os.kill(self.processes[rank].pid, number)
        if number == signal.SIGSTOP:
            wait_until_stopped(self.processes[rank].pid)

    def result(self, rank: int) -> dict:
        out, err = self.processes[rank].communicate(timeout=LIMIT_S)
        assert self.processes[rank].returncode == 0, err
        return json.loads(out.splitlines()[-1])

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


class SpreadTeam(Team):
    """Each worker on a host of its own; what they tell each other stands in a file."""

    def __init__(self, scenario: str, cluster: clusters.Cluster, folder: Path) -> None:
        self.transport = "streams"
        path = str(folder / "store")
        self.store = FileStore(path, -1)
        started = []
        for rank in range(cluster.size):
            place = ["ip", "netns", "exec", cluster.host(rank)]
            words = [scenario, str(rank), str(cluster.size), path, "streams"]
            started.append(self.start_at(place, [*words, cluster.address(rank)]))
        self.processes = started

    @staticmethod
    def start_at(place: list[str], words: list[str]) -> subprocess.Popen:
        script = str(Path(__file__).with_name("workers.py"))
        return subprocess.Popen(
            [*place, sys.executable, script, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def team(request: pytest.FixtureRequest) -> Iterator[Team]:
    made = Team(*request.param)
    yield made
    made.end()


def teams(*runs: tuple[str, int], over: str = "c10d net streams") -> pytest.MarkDecorator:
    """A team for each scenario and number of workers over each transport; streams are net's."""
    transports = over.split()
    all_runs = [(*run, transport) for run in runs for transport in transports]
    return pytest.mark.parametrize("team", all_runs, indirect=True, ids=str)


def assert_lost(failure: dict, rank: int, peer: int) -> None:
    assert (failure["rank"], failure["peer"]) == (rank, peer)
    assert failure["elapsed_s"] < 25, "by the peer's end, not by the deadline"


@teams(("exchange", 2), ("exchange", 3), ("exchange", 4))
def test_every_byte_arrives_and_nothing_listens_beyond_loopback(team: Team) -> None:
    for rank in range(len(team.processes)):
        result = team.result(rank)
        assert len(result["right"]) == 7 * (len(team.processes) - 1)
        assert all(result["right"])
        assert set(result["listens"]) <= {"0100007F"}


@teams(("lost", 4))
def test_a_killed_worker_costs_its_own_edges_only(team: Team) -> None:
    last, others = 3, [0, 1, 2]
    team.hear("waiting", others)
    team.signal(last, signal.SIGSTOP)  # in the middle of frames both ways
    team.say("stopped", last)
    team.hear("went-on", others)
    team.signal(last, signal.SIGKILL)
    for rank in others:
        result = team.result(rank)
        assert result["right"] == [True] * 4
        assert_lost(result["waiting"], rank, last)
        assert_lost(result["later"], rank, last)
        assert ENDED[team.transport] in result["waiting"]["reason"]
        failed = [failure for failure in result["transfers"] if failure]
        assert bool(failed) == (rank == 0)
        for failure in failed:
            assert_lost(failure, rank, last)


@teams(("lost_inside_a_frame", 2), over="c10d")
def test_a_worker_killed_inside_a_frame_is_noticed(team: Team) -> None:
    team.hear("ready", [0])
    team.signal(0, signal.SIGSTOP)
    team.say("stopped", 0)
    team.hear("full", [1])
    team.signal(1, signal.SIGKILL)
    team.processes[1].wait(LIMIT_S)
    team.signal(0, signal.SIGCONT)
    team.say("go-on", 0)
    failure = team.result(0)["failure"]
    assert_lost(failure, 0, 1)
    assert "link is broken" in failure["reason"]


@teams(("frozen", 3))
def test_a_frozen_worker_costs_requests_until_it_goes_on(team: Team) -> None:
    team.hear("ready", [0, 1, 2])
    team.signal(2, signal.SIGSTOP)
    team.say("stopped", 2)
    team.hear("failed", [0, 1])
    team.signal(2, signal.SIGCONT)
    team.say("thawed", 2)
    for rank in range(3):
        result = team.result(rank)
        assert all(result["right"])
        assert len(result["right"]) == (5 if rank < 2 else 4)
        for failure in result["failures"]:
            assert (failure["rank"], failure["peer"]) == (rank, 2)
            assert 0.3 <= failure["elapsed_s"] < 30
            assert "deadline passed" in failure["reason"]
    assert team.store.check(["failed/0", "failed/1"])


def test_an_unplugged_host_costs_its_own_edges_until_it_is_back(tmp_path: Path) -> None:
    if reason := clusters.missing_rights():
        pytest.skip(reason)
    cluster = clusters.Cluster(f"p{os.getpid()}", (1, 1, 1), (0.0, 0.0, 0.0))
    with clusters.running(cluster):
        team = SpreadTeam("unplugged", cluster, tmp_path)
        try:
            team.hear("ready", [0, 1, 2])
            clusters.set_link(cluster, 2, is_up=False)
            team.say("unplugged", 2)
            team.hear("failed", [0, 1, 2])
            clusters.set_link(cluster, 2, is_up=True)
            team.say("plugged", 2)
            found = [team.result(rank) for rank in range(3)]
        finally:
            team.end()
    for rank, result in enumerate(found):
        assert result["right"] == [True] * (5 if rank < 2 else 4)
        peers = [2, 2] if rank < 2 else [0, 0, 1, 1]
        assert [failure["peer"] for failure in result["failures"]] == peers
        for failure in result["failures"]:
            assert failure["rank"] == rank
            assert 1.0 <= failure["elapsed_s"] < 30
            assert "deadline passed" in failure["reason"]


@teams(("silent", 2), over="net streams")
def test_a_peer_that_falls_silent_costs_its_requests_before_their_deadline(team: Team) -> None:
    team.hear("ready", [0, 1])
    team.signal(1, signal.SIGSTOP)
    team.say("stopped", 1)
    failure = team.result(0)["failure"]
    assert_lost(failure, 0, 1)
    assert "silent" in failure["reason"]


@teams(("lost_with_a_child", 2), over="net streams")
def test_a_child_does_not_hide_the_end_of_its_parent(team: Team) -> None:
    team.hear("ready", [0, 1])
    team.signal(1, signal.SIGKILL)
    try:
        failure = team.result(0)["failure"]
    finally:
        os.kill(int(team.store.get("child")), signal.SIGKILL)
    assert_lost(failure, 0, 1)
    assert ENDED["net"] in failure["reason"]  # at once, and not after a silence


@teams(
    ("leave_at_the_end", 2),
    ("leave_by_exit", 2),
    ("leave_at_once", 2),
    ("leave_while_a_thread_waits", 2),
)
def test_leaving_without_closing_neither_hangs_nor_aborts(team: Team) -> None:
    (failure,) = team.result(1)["failures"]
    assert_lost(failure, 1, 0)
    leaver = team.processes[0]
    _, err = leaver.communicate(timeout=LIMIT_S)
    assert leaver.returncode == 0, err
    assert "terminate" not in err


@teams(("interrupted", 2))
def test_a_wait_can_be_interrupted(team: Team) -> None:
    team.hear("waiting", [0, 1])
    time.sleep(0.1)  # so that it is most likely inside the wait
    team.signal(0, signal.SIGINT)
    assert team.result(0) == {"interrupted": True}
    assert_lost(team.result(1)["failures"][0], 1, 0)
