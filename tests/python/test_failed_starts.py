"""`gossamer.init()` between hosts: where it listens, who it says is missing, and how all end where
one of them cannot start."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from example_runs import free_port
from package_runs import with_package
from test_cluster import emulated, needs_cluster

from gossamer.workers.start_watch import leads_nowhere

LIMIT_S = 600
STARTED = """
import json, os
import gossamer
from gossamer.workers import machine
gossamer.init()
with open(os.environ["FOUND"], "w") as file:
    json.dump(sorted({each.address for each in machine.own_listeners()}), file)
"""
FAILS = """
import os
import gossamer
from gossamer.workers import gloo_edges
def refuse(*arguments):
    raise RuntimeError("the card is out of order")
if os.environ["RANK"] == os.environ["FAILS"]:
    gloo_edges.of_all = refuse
gossamer.init()
"""


class Ranks:
    """Processes, and what each has said so far."""

    def __init__(self, folder: Path, processes: list[subprocess.Popen[str]]) -> None:
        self._folder = folder
        self.processes = processes

    def said(self, rank: int) -> str:
        return (self._folder / f"said-{rank}").read_text()

    def codes(self) -> list[int]:
        return [process.wait(LIMIT_S) for process in self.processes]

    def wait_until_said(self, rank: int, words: str) -> None:
        limit = time.monotonic() + LIMIT_S
        while words not in self.said(rank):
            assert time.monotonic() < limit, self.said(rank)
            assert self.processes[rank].poll() is None, self.said(rank)
            time.sleep(0.1)


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[Ranks]:
    """None yet."""
    made = Ranks(tmp_path, [])
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.kill()
        process.wait()


def start(
    ranks: Ranks,
    folder: Path,
    program: str,
    variables: dict[str, str],
    prefix: tuple[str, ...] = (),
    rank: int | None = None,
) -> None:
    """The next process, by default of the next rank."""
    number = len(ranks.processes)
    rank = number if rank is None else rank
    with (folder / f"said-{number}").open("w") as said:
        process = subprocess.Popen(
            [*prefix, sys.executable, "-c", program],
            env=with_package({**variables, "RANK": str(rank), "FOUND": f"{folder}/{rank}.json"}),
            stderr=said,
            text=True,
        )
    ranks.processes.append(process)


def here(size: int, port: int, **more: str) -> dict[str, str]:
    """All ranks on this machine."""
    of_all = {"WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size), "LOCAL_RANK": "0"}
    return {**of_all, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **more}


@pytest.fixture
def pair() -> Iterator[emulated.Cluster]:
    made = emulated.Cluster(f"s{os.getpid() % 100_000}", (1, 1), (0.0, 0.0))
    with emulated.running(made):
        yield made


def start_on(
    cluster: emulated.Cluster, ranks: Ranks, folder: Path, interfaces: dict[int, str] | None = None
) -> None:
    """One rank on each host; without a word on interfaces, unless here."""
    for rank in range(cluster.size):
        variables = emulated.environment(cluster, rank, 29400)
        del variables["GLOO_SOCKET_IFNAME"]
        if interfaces and rank in interfaces:
            variables["GLOO_SOCKET_IFNAME"] = interfaces[rank]
        place = ("ip", "netns", "exec", cluster.host(rank))
        start(ranks, folder, STARTED, variables, place)


@needs_cluster
def test_store_and_gloo_listen_where_the_others_reach_them(
    pair: emulated.Cluster, ranks: Ranks, tmp_path: Path
) -> None:
    """The host's name leads to no address of these hosts."""
    start_on(pair, ranks, tmp_path)
    assert ranks.codes() == [0, 0], ranks.said(0) + ranks.said(1)
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert found == [[pair.address(0)], [pair.address(1)]]


@needs_cluster
def test_ranks_that_listen_on_loopback_are_named_on_both_hosts(
    pair: emulated.Cluster, ranks: Ranks, tmp_path: Path
) -> None:
    """Where only one of them does, Gloo connects from there."""
    start_on(pair, ranks, tmp_path, {0: "lo", 1: "lo"})
    assert ranks.codes() == [1, 1]
    for rank in range(2):
        assert "rank 0 on " in ranks.said(rank)
        assert "at 127.0.0.1, which leads to no other machine" in ranks.said(rank)


@needs_cluster
def test_a_firewall_before_gloo_ends_both_hosts(
    pair: emulated.Cluster, ranks: Ranks, tmp_path: Path
) -> None:
    """It lets the port of the store through, and refuses those that the system chooses."""
    rule = ("rule", "add", "to", pair.address(0), "ipproto", "tcp", "dport", "32768-60999")
    emulated._ip(pair.host(1), *rule, "prohibit")
    start_on(pair, ranks, tmp_path)
    assert ranks.codes() == [1, 1], ranks.said(0) + ranks.said(1)
    assert "could not start: " in ranks.said(0) + ranks.said(1)
    assert "this process ends" in ranks.said(0) + ranks.said(1)


def test_the_first_failure_ends_all_and_is_said_by_all(ranks: Ranks, tmp_path: Path) -> None:
    port = free_port()
    for _ in range(3):
        start(ranks, tmp_path, FAILS, here(3, port, FAILS="1"))
    assert ranks.codes() == [1, 1, 1]
    for rank in (0, 2):
        assert "could not start: the card is out of order; this process ends" in ranks.said(rank)
    assert "RuntimeError: the card is out of order" in ranks.said(1)


def test_rank_0_stays_until_the_others_know_why_it_ends(ranks: Ranks, tmp_path: Path) -> None:
    port = free_port()
    for _ in range(2):
        start(ranks, tmp_path, FAILS, here(2, port, FAILS="0"))
    assert ranks.codes() == [1, 1]
    assert "rank 0 on " in ranks.said(1)
    assert "could not start: the card is out of order" in ranks.said(1)


def test_who_has_not_come_is_named_and_a_store_that_has_gone_ends_the_others(
    ranks: Ranks, tmp_path: Path
) -> None:
    port = free_port()
    for _ in range(2):
        start(ranks, tmp_path, FAILS, here(3, port, FAILS="none"))
    for rank in range(2):
        ranks.wait_until_said(rank, f"of 3 ranks rank 2 has not come to 127.0.0.1:{port}")
    ranks.processes[0].send_signal(signal.SIGKILL)
    assert ranks.codes() == [-signal.SIGKILL, 1]
    assert f"store at 127.0.0.1:{port}" in ranks.said(1)
    assert "has gone" in ranks.said(1)


def test_without_rank_0_its_store_is_named(ranks: Ranks, tmp_path: Path) -> None:
    port = free_port()
    start(ranks, tmp_path, FAILS, here(2, port, FAILS="none"), rank=1)
    ranks.wait_until_said(0, "[init] rank 1: has waited for ")
    assert f"store at 127.0.0.1:{port} cannot be reached" in ranks.said(0)


def test_loopback_is_wrong_only_between_machines() -> None:
    cards = {
        0: {"host": "a", "machine": "1", "address": "10.0.0.1"},
        1: {"host": "b", "machine": "1", "address": "127.0.1.1"},
    }
    assert leads_nowhere(cards) == ""
    cards[0]["machine"] = "2"
    assert "rank 1 on b waits for the others at 127.0.1.1" in leads_nowhere(cards)
