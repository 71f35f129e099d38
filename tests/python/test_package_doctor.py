"""`gossamer doctor`: what it says about this machine, about the links, and about what is wrong."""

import ipaddress
import itertools
import socket
from pathlib import Path
from typing import cast

import pytest
from example_runs import free_port
from package_runs import last_json, launch, run
from torch.distributed import HashStore

from gossamer import _built, _core
from gossamer.diagnosis import links, ranks
from gossamer.workers import machine

# However busy this machine is: what an examination finds must not depend on that.
PATIENT = ["--timeout-s", "90"]
DOCTOR = ["-m", "gossamer", "doctor", *PATIENT]
ELSEWHERE = "nowhere0"


def address_of(listener: str) -> str:
    return listener.rpartition(":")[0].strip("[]")


def test_alone_it_looks_at_this_machine_and_talks_to_itself() -> None:
    done = run([*DOCTOR, "--json"])
    assert done.returncode == 0, done.stderr
    said = last_json(done.stdout)
    assert said["ok"]
    assert said["links"] == []
    (facts,) = said["workers"]
    assert facts["versions"]["gossamer"] == _built.VERSION
    assert facts["versions"]["kernels"] == _core.isa_name()
    assert "gloo" in facts["backends"]
    assert facts["host"]["cores"] == machine.cores()
    assert min(facts["loop"].values()) > 0
    up = set(facts["interfaces"]["up"])
    assert "lo" in up
    assert up <= {name for _, name in socket.if_nameindex()}


def test_gloo_listens_where_the_doctor_says_and_nowhere_else() -> None:
    (facts,) = last_json(run([*DOCTOR, "--json"]).stdout)["workers"]
    assert len(facts["listens"]) == 2, "one socket for each end"
    chosen = facts["interfaces"]["gloo"]["address"]
    assert {address_of(listener) for listener in facts["listens"]} == {chosen}


def test_it_says_where_the_token_comes_from() -> None:
    (facts,) = last_json(run([*DOCTOR, "--json"]).stdout)["workers"]
    assert "launcher's store" in facts["token"]
    done = run([*DOCTOR, "--json"], {"GOSSAMER_SECRET": "of sixteen bytes or more"})
    (facts,) = last_json(done.stdout)["workers"]
    assert facts["token"] == "from this user's secret"
    done = run([*DOCTOR, "--json"], {"GOSSAMER_SECRET": "short"})
    assert done.returncode == 2
    assert "a secret needs 16 bytes or more" in done.stderr


def test_the_named_interface_is_taken() -> None:
    done = run([*DOCTOR, "--json"], {"GLOO_SOCKET_IFNAME": "lo"})
    (facts,) = last_json(done.stdout)["workers"]
    assert facts["interfaces"]["gloo"]["interface"] == "lo"
    assert all(
        ipaddress.ip_address(address_of(listener)).is_loopback for listener in facts["listens"]
    )


def test_rates_have_three_digits_and_the_unit_of_the_commands() -> None:
    said = [links.in_bits(each * 1e-9) for each in (0.1, 880e3, 124.9e6, 125e6, 1.25e9, 250e9)]
    assert said == [
        *("0.80 bit/s", "7.04 Mbit/s", "999 Mbit/s", "1.00 Gbit/s", "10.0 Gbit/s", "2000 Gbit/s")
    ]


def test_people_read_facts_on_stdout_and_nothing_else() -> None:
    done = run(DOCTOR)
    assert done.returncode == 0, done.stderr
    for word in (_built.VERSION, "Gloo takes", "/dev/shm", "bit/s", _core.isa_name()):
        assert word in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert "warning" not in done.stdout


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("GLOO_SOCKET_IFNAME", ELSEWHERE, [ELSEWHERE, "GLOO_SOCKET_IFNAME"]),
        ("GOSSAMER_ISA", "abacus", ["abacus"]),
    ],
)
def test_what_keeps_training_from_working_is_said_and_fails(
    variable: str, value: str, words: list[str]
) -> None:
    done = run([*DOCTOR, "--json"], {variable: value})
    assert done.returncode == 2
    said = last_json(done.stdout)
    assert not said["ok"]
    assert all(word in " ".join(said["problems"]) for word in words)
    assert all(f"problem: {problem}" in done.stderr for problem in said["problems"])


def test_a_socket_on_every_interface_is_found() -> None:
    code = (
        "import socket, sys; from gossamer import doctor; "
        "open_to_all = socket.create_server(('', 0)); print(open_to_all.getsockname()[1]); "
        "sys.exit(doctor.main(['--timeout-s', '90']))"
    )
    done = run(["-c", code])
    port = done.stdout.splitlines()[0]
    assert done.returncode == 2
    assert f"every interface, at 0.0.0.0:{port}" in done.stderr


def test_a_worker_that_does_not_come_is_a_problem_and_no_hang() -> None:
    port = str(free_port())
    started = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    done = run(["-m", "gossamer", "doctor", "--timeout-s", "2"], started)
    assert done.returncode == 2
    assert "problem: rank 1" in done.stderr
    assert "Traceback" not in done.stderr


def test_where_parameters_may_be() -> None:
    assert "in CPU memory; there is no GPU here" in run(DOCTOR).stdout
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import gossamer, device_backend; device_backend.install()\n"
        "from gossamer.diagnosis import device_links; print(device_links.describe())"
    )
    assert "or on testdev: " in run(["-c", code]).stdout


def test_several_workers_on_a_gpu_are_a_warning() -> None:
    code = (
        "import torch; from gossamer import doctor; torch.cuda.is_available = lambda: True; "
        "torch.cuda.device_count = lambda: {}; print(doctor._look_around().warnings)"
    )
    many = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    for gpus in (1, 2):
        said = run(["-c", code.format(gpus)], many).stdout
        assert ("2 workers share 1 GPUs" in said) == (gpus == 1)


def test_a_warning_where_gloo_stays_inside_but_workers_are_elsewhere() -> None:
    away = {"RANK": "0", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo"}
    code = "from gossamer import doctor; print(doctor._look_around().warnings)"
    assert "other machines cannot reach" in run(["-c", code], away).stdout
    here = {**away, "LOCAL_WORLD_SIZE": "4"}
    assert "other machines cannot reach" not in run(["-c", code], here).stdout


def test_under_a_launcher_every_link_is_measured() -> None:
    workers = 3
    done = launch(workers, [*DOCTOR, "--json"])
    assert done.returncode == 0, done.stderr
    said = last_json(done.stdout)
    assert said["problems"] == []
    assert len(set(said["hosts"])) == 1
    pairs = [(link["low"], link["high"]) for link in said["links"]]
    assert pairs == list(itertools.combinations(range(workers), 2))
    assert all(value > 0 for link in said["links"] for value in link["speed"].values())
    for facts in said["workers"]:
        assert facts["transport"] == "net"
        for listener in facts["listens"]:
            assert not ipaddress.ip_address(address_of(listener)).is_unspecified
    assert any("launcher's store" in warning for warning in said["warnings"])


def test_under_a_launcher_one_table_is_printed() -> None:
    done = launch(2, DOCTOR)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("versions") == 1
    row = next(line for line in done.stdout.splitlines() if line.strip().startswith("0 1"))
    latency, there, _, back, unit = row.split()[-5:]
    assert unit.endswith("bit/s")
    assert min(map(float, (latency, there, back))) > 0


def test_a_lost_worker_costs_its_links_only(tmp_path: Path) -> None:
    script = tmp_path / "lossy.py"
    script.write_text(
        "import os, sys\n"
        "from gossamer import _core, doctor\n"
        "from gossamer.diagnosis import links\n"
        "def lose(end):\n"
        "    raise _core.TransportError('[test] lost')\n"
        "if os.environ['RANK'] == '2':\n"
        "    links.serve = lose\n"
        "sys.exit(doctor.main(['--json', '--timeout-s', '90']))\n"
    )
    done = launch(3, [str(script)])
    assert done.returncode != 0
    links = {(link["low"], link["high"]): link for link in last_json(done.stdout)["links"]}
    assert links[0, 1]["speed"]
    assert links[0, 2]["error"]
    assert links[1, 2]["error"]


@pytest.mark.parametrize(("left_s", "words"), [(0.0, ranks.NO_TIME), (60.0, "[test] lost")])
def test_a_link_that_the_end_of_the_examination_cuts_short_is_not_called_broken(
    monkeypatch: pytest.MonkeyPatch, left_s: float, words: str
) -> None:
    def lose(*_: object) -> None:
        raise _core.TransportError("[test] lost")

    monkeypatch.setattr(links, "compare_clocks", lose)
    store, clock, pair = HashStore(), ranks.Clock(left_s), (0, 1)
    here = cast(_core.Transport, None)  # compare_clocks() would be the first to use it
    ranks._take_turn(store, 0, pair, 0, here, 0.1, clock)
    (link,) = ranks._collect(store, [pair], clock)
    assert (link.error, link.speed) == (words, None)


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "soon"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    done = run(["-m", "gossamer", "doctor", "--timeout-s", text])
    assert done.returncode == 2
    assert "--timeout-s" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_links_are_those_that_training_connects() -> None:
    assert ranks.pairs_of(["a", "a", "a"]) == [(0, 1), (0, 2), (1, 2)]
    hosts, per_host = 4, 3
    names = [str(rank // per_host) for rank in range(hosts * per_host)]
    pairs = set(ranks.pairs_of(names))
    all_pairs = set(itertools.combinations(range(hosts * per_host), 2))
    mates = {(low, high) for low, high in all_pairs if low // per_host == high // per_host}
    counterparts = {(low, high) for low, high in all_pairs if low % per_host == high % per_host}
    assert mates | counterparts <= pairs < all_pairs


def test_own_listeners_are_those_of_this_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as inside:
        port = inside.getsockname()[1]
        assert machine.Listener("127.0.0.1", port) in machine.own_listeners()
        assert machine.listeners_on(port) == [machine.Listener("127.0.0.1", port)]
    assert port not in [listener.port for listener in machine.own_listeners()]


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_ipv6_listeners_are_read() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as inside:
        listener = machine.Listener("::1", inside.getsockname()[1])
        assert listener in machine.own_listeners()
        assert not listener.is_everywhere
        assert str(listener) == f"[::1]:{listener.port}"


def test_interfaces_have_the_loopback_addresses() -> None:
    loopback = next(each for each in machine.interfaces() if each.is_loopback)
    assert "127.0.0.1" in loopback.addresses
    assert loopback.is_up
    assert loopback.leads_nowhere
