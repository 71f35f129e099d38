"""workers.machine and workers.edges: where other workers reach this machine, what it may use."""

import os
import socket
from pathlib import Path

import pytest

from gossamer.workers import edges, machine
from gossamer.workers.world import World

NO_ADDRESS = "192.0.2.1"  # for documentation only: no machine has it
QUOTA, MEMORY = "/sys/fs/cgroup/cpu.max", "/dev/shm"


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GLOO_SOCKET_IFNAME", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the module finds the system's files."""
    monkeypatch.setattr(machine, "Path", lambda name: tmp_path / name.lstrip("/"))
    return tmp_path


def test_peers_come_by_the_way_that_leads_to_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: NO_ADDRESS)
    monkeypatch.setattr(machine, "interfaces", lambda: [])
    assert machine.address_for_peers() == ""
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    assert machine.address_for_peers() == "127.0.0.1"
    own = machine.Interface("eth7", ("198.51.100.7",), is_up=True, is_loopback=False)
    monkeypatch.setattr(machine, "interfaces", lambda: [own])
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth7,eth8")
    assert machine.address_for_peers() == "198.51.100.7"


def test_a_store_without_an_address_leaves_what_gloo_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setenv("MASTER_ADDR", "store")
    monkeypatch.setattr(socket, "gethostname", lambda: "here")
    choice = machine.gloo_choice(machine.interfaces())
    assert choice == machine.GlooChoice(
        "lo", "127.0.0.1", "here resolves to no address of this host"
    )
    assert machine.address_for_peers() == choice.address


def test_a_name_of_another_machines_address_is_not_this_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = machine.interfaces()
    monkeypatch.setattr(socket, "gethostname", lambda: NO_ADDRESS)
    assert machine.gloo_choice(found).interface == "lo"
    assert f"{NO_ADDRESS} resolves to no address" in machine.gloo_choice(found).why
    assert machine.gloo_choice([]).address == ""


def test_a_quota_leaves_less_than_the_cores_that_are_allowed(system: Path) -> None:
    allowed = len(os.sched_getaffinity(0))
    assert machine.cores() == allowed
    quota = system / QUOTA.lstrip("/")
    quota.parent.mkdir(parents=True)
    for text, cores in (
        ("50000 100000\n", 0.5),
        ("max 100000\n", allowed),
        (f"{100 * allowed}00000 100000\n", allowed),
    ):
        quota.write_text(text)
        assert machine.cores() == cores, text


def test_without_shared_memory_there_are_no_bytes_of_it(system: Path) -> None:
    assert machine.shared_memory() == (0, 0)
    (system / MEMORY.lstrip("/")).mkdir(parents=True)
    size, free = machine.shared_memory()
    assert size >= free >= 0


def test_an_address_inside_the_machine_is_refused_where_others_need_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(3, 4, None, (2, 2), 3)
    assert edges._leads_nowhere(world, "198.51.100.7") is None
    wrong = "[Gossip] rank 3: workers of other machines must reach this one, got 127.0.0.1, "
    monkeypatch.setenv("MASTER_ADDR", "store")
    problem = str(edges._leads_nowhere(world, "127.0.0.1"))
    assert problem.startswith(wrong + "the address that leads to MASTER_ADDR=store or is ")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "docker0")
    problem = str(edges._leads_nowhere(world, "127.0.0.1"))
    assert problem.startswith(wrong + "the address of GLOO_SOCKET_IFNAME=docker0, ")
