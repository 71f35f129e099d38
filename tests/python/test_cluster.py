"""The emulated cluster of tools/cluster.py, and the comparison that runs on it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import cluster as emulated

from gossamer import _core

TOOL = ROOT / "tools" / "cluster.py"
BENCH = ROOT / "bench" / "cluster" / "run.py"
LIMIT_S = 60
REASON = emulated.missing_rights()
needs_cluster = pytest.mark.skipif(bool(REASON), reason=f"no emulated cluster: {REASON}")

# A worker that says who it is, through a real link to its only peer.
GREET = """
import os, socket, sys, time
rank, address = int(os.environ["RANK"]), (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    with socket.create_server(address) as server:
        peer, _ = server.accept()
        print(peer.recv(100).decode(), flush=True)
else:
    for _ in range(200):
        try:
            peer = socket.create_connection(address)
            break
        except OSError:
            time.sleep(0.05)
    names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK"
    peer.sendall(" ".join(os.environ[name] for name in names.split()).encode())
"""

# What is said of a worker alone whose last layer has other values than three steps lead to.
COMPLAIN = """
import json, torch
import torch.distributed as dist
from answers import complaint
from contenders import LR
from methods import Contender, Mixing
from sleeping_model import Pace, SleepingModel

def about(all_of_it, two_rows):
    model = SleepingModel(100_000, Pace(0.0), 1.0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(-3 * LR)
        last = list(model.parameters())[-1]
        last.mul_(1 + all_of_it)
        last[1].mul_(1 + two_rows)
        last[2].mul_(1 - two_rows)
    return complaint(model, Contender(lambda: None, lambda: None), Mixing("ring"), [1], 3)

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
print(json.dumps([about(0, 0), about(0.001, 0), about(0, 0.01)]))
"""


def tool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOOL), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def namespaces(name: str) -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if line.startswith(f"gossamer-{name}-")]


@pytest.fixture
def name() -> Iterator[str]:
    """Of a cluster that nobody else has; it is gone afterwards."""
    chosen = f"t{os.getpid()}"
    yield chosen
    emulated.down(chosen)


@pytest.fixture
def pair(name: str) -> str:
    """The name of two hosts of one worker each."""
    assert tool("up", name, "--hosts", "2x1", "--rate", "100Mbit/s,none").returncode == 0
    assert len(namespaces(name)) == 3
    return name


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wait_for(condition) -> None:
    limit = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < limit, "in vain"
        time.sleep(0.02)


@needs_cluster
def test_workers_meet_over_the_links_and_nothing_is_left(pair: str) -> None:
    again = tool("up", pair)
    assert again.returncode == 1
    assert f"'{pair}' is up; take it down first" in again.stderr
    done = tool("run", pair, "--", sys.executable, "-c", GREET)
    assert (done.returncode, done.stdout) == (0, "1 2 0 1 1\n"), done.stderr
    assert min(emulated.bytes_sent(emulated.load(pair))) > 0
    assert tool("down", pair).returncode == 0
    assert namespaces(pair) == []
    gone = tool("run", pair, "--", "true")
    assert gone.returncode == 1
    assert f"no cluster '{pair}' is up" in gone.stderr


GOSSIP = """
import json, warnings
import torch, torch.distributed as dist
from gossamer import Gossip
dist.init_process_group("gloo")
model = torch.nn.Linear(2, 2)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    gossip = Gossip(model, torch.optim.SGD(model.parameters(), lr=0.1), timeout_s=float("inf"))
hosts = gossip._run.session.world.workers_per_host
gossip.close()
if dist.get_rank() == 0:
    print(json.dumps([hosts, [str(each.message) for each in said]]))
"""


@needs_cluster
def test_hosts_are_machines_though_no_launcher_says_so(pair: str, tmp_path: Path) -> None:
    """Both have one name; no door of ours may take them for one host."""
    cluster = emulated.load(pair)
    alone = ["env", *(f"-u{name}" for name in ("GROUP_RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"))]

    def said(*command: str) -> tuple[list[int], str]:
        with (tmp_path / "said").open("w+") as output:
            codes = emulated.finish(
                emulated.start(cluster, [*alone, *command], output=output), LIMIT_S
            )
            output.seek(0)
            return codes, output.read()

    words = "ranks 0 and 1 are on different machines, but both have the name"
    codes, text = said(f"PYTHONPATH={os.pathsep.join(sys.path)}", sys.executable, "-c", GOSSIP)
    assert codes == [0, 0], text
    hosts, warned = json.loads(text.splitlines()[-1])
    assert hosts == [1, 1]
    assert len(warned) == 1 and words in warned[0]
    flags = "--width 16 --layers 1 --heads 2 --context 16 --global-batch 4 --steps 2".split()
    gossamer = str(ROOT / "build" / "bin" / "gossamer")
    data = tmp_path / "text.txt"
    data.write_text("one two three four " * 1000)
    train = [gossamer, "train", "--data", str(data), "--validation-samples", "16", *flags]
    codes, text = said(*train)
    assert codes == [0, 0], text
    assert words in text and "has started 2 hosts x 1 worker" in text
    codes, text = said("env", "-uGLOO_SOCKET_IFNAME", *train)
    assert codes == [0, 0], "by the way that leads to the store: " + text
    codes, text = said("env", "GLOO_SOCKET_IFNAME=lo", *train)
    assert codes == [2, 2]
    assert text.count("GLOO_SOCKET_IFNAME leads to no other host, got lo, 127.0.0.1") == 2
    codes, text = said("env", "GLOO_SOCKET_IFNAME=nowhere0", *train)
    assert codes == [2, 2]
    assert text.count("no interface with an address has the name, got nowhere0") == 2


@needs_cluster
def test_one_worker_that_fails_ends_the_others(pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulated, "KILL_AFTER_S", 0.2)
    command = ["sh", "-c", "[ $RANK = 0 ] && exit 3; exec sleep 600"]
    codes = emulated.finish(emulated.start(emulated.load(pair), command))
    assert codes == [3, -signal.SIGKILL]
    emulated.down(pair)
    assert namespaces(pair) == []


@needs_cluster
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ending_the_runner_ends_the_workers(pair: str, number: int, tmp_path: Path) -> None:
    command = ["sh", "-c", f"echo $$ > {tmp_path}/new$RANK; mv {tmp_path}/new$RANK "]
    command[-1] += f"{tmp_path}/$RANK; sleep 600; true"
    runner = subprocess.Popen([sys.executable, str(TOOL), "run", pair, "--", *command])
    wait_for(lambda: all((tmp_path / str(rank)).exists() for rank in range(2)))
    workers = [int((tmp_path / str(rank)).read_text()) for rank in range(2)]
    runner.send_signal(number)
    assert runner.wait(LIMIT_S) == 128 + number
    wait_for(lambda: not any(map(is_alive, workers)))
    assert tool("down", pair).returncode == 0
    assert namespaces(pair) == []


@needs_cluster
def test_a_cluster_that_cannot_be_made_leaves_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emulated, "QUEUE", "nonsense")
    with pytest.raises(emulated.ClusterError, match=r"tc -n .* failed"):
        emulated.up(emulated.Cluster(name, (1, 1), (1e6, 1e6)))
    assert namespaces(name) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("x --hosts 4x", "hosts must be HOSTSxWORKERS or a list like 1,2,4, 250 at most, got '4x'"),
        ("x --hosts 0x2", "got '0x2'"),
        ("x --hosts 2,0", "got '2,0'"),
        ("x --hosts 251x1", "got '251x1'"),
        ("x --rate 20Mbps", "a rate must be like 20Mbit/s or none, got '20Mbps'"),
        ("x --rate 0Mbit/s", "got '0Mbit/s'"),
        ("x --rate 1Mbit/s,none", "2 rates for 4 hosts; give one, or one for each"),
        ("Big-Name", "a name has up to 12 small letters and digits, got 'Big-Name'"),
        ("muchtoolongname", "got 'muchtoolongname'"),
    ],
)
def test_mistakes_are_named(words: str, said: str) -> None:
    done = tool("up", *words.split())
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("[cluster] ")
    assert said in done.stderr


@pytest.mark.parametrize(("codes", "worst"), [([0, 0], 0), ([3, 1, -9], 3), ([0, -9], 9)])
def test_the_status_is_the_worst_of_those_that_ended_by_themselves(
    codes: list[int], worst: int
) -> None:
    assert emulated.worst(codes) == worst


def test_a_machine_that_may_not_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulated, "_path", lambda: "")
    assert emulated.missing_rights() == "ip and tc are not installed; install iproute2"
    monkeypatch.undo()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(emulated.shutil, "which", lambda *_, **__: "there")
    assert "need root; run as root" in emulated.missing_rights()


def test_the_plans_bytes_between_hosts() -> None:
    aer = _core.make_schedule("alternating_exponential_ring", [2, 2, 2, 2])
    total = [(0, 0)] * 4
    for t in range(aer.period):
        rounds = aer.elements_between_hosts(t, 1000)
        busy = [sent for sent, _ in rounds if sent]
        assert busy == [1000, 1000], "one pair of hosts at a time, once the payload each way"
        total = [(a + c, b + d) for (a, b), (c, d) in zip(total, rounds, strict=True)]
    assert total == [(2000, 2000)] * 4
    whole = _core.make_schedule("complete", [3, 3, 1])
    (one,) = {sum(way) for way in zip(*whole.elements_between_hosts(0, 900), strict=True)}
    assert one > 0, "what all send is what all receive"
    with pytest.raises(ValueError, match="t must not be negative, got -1"):
        whole.elements_between_hosts(-1, 900)


def test_the_mixing_matrix() -> None:
    ring = _core.make_schedule("ring", [1, 1, 1])
    assert ring.matrix(5) == [[pytest.approx(1 / 3)] * 3] * 3
    aer = _core.make_schedule("alternating_exponential_ring", [2, 2])
    rows = [aer.matrix(t) for t in range(aer.period)]
    assert [0.25] * 4 in rows[0] + rows[1]
    assert all(sum(row) == pytest.approx(1) for matrix in rows for row in matrix)


def test_wrong_answers_are_noticed() -> None:
    places = [str(BENCH.parent), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", COMPLAIN],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
    )
    nothing, mean, elements = json.loads(done.stdout)
    assert nothing == ""
    assert "mean over the workers is off by 0.001" in mean
    assert "layer 15 is off the recursion by" in elements


@needs_cluster
def test_the_comparison_checks_the_answer_and_cleans_up(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, str(BENCH), "--settings", "tiny", "--repetitions", "1"]
    command += ["--contenders", "gossamer aer", "--json", str(out)]
    runner = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said, _ = runner.communicate(timeout=LIMIT_S)
    assert runner.returncode == 0, said
    (row,) = json.loads(out.read_text())["settings"][0]["rows"]
    assert row["status"] == "ok"
    # One pair, once the payload each way in one of two rounds, in full frames.
    payload = 16 * 4 * 128 * 25  # layers of whole rows
    assert row["byte_limit_s"] == pytest.approx(payload / 2 * 1514 / 1448 * 8 / 200e6)
    assert row["busiest_host_bytes"] > payload / 4
    assert row["ratio_to_compute"] > 1
    assert row["worst_step_s"] > row["compute_s"]
    assert namespaces(f"b{runner.pid}") == []
    assert_predictable(out, tmp_path / "predictions.json")


def assert_predictable(measured: Path, out: Path) -> None:
    """The other script reads what the comparison wrote."""
    command = [sys.executable, str(BENCH.parent / "predict.py"), str(measured), "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(out.read_text())
    assert (row["setting"], row["contender"]) == ("tiny", "gossamer aer")
    assert row["predicted_s"] >= row["compute_s"] > 0


@needs_cluster
def test_ending_the_comparison_takes_its_cluster_down() -> None:
    runner = subprocess.Popen(
        [sys.executable, str(BENCH), "--settings", "tiny"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: len(namespaces(f"b{runner.pid}")) == 3)
    runner.terminate()
    assert runner.wait(LIMIT_S) == 128 + signal.SIGTERM
    assert namespaces(f"b{runner.pid}") == []
