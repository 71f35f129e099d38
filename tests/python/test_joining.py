"""`gossamer launch --begin`: a host that was not there at first joins a job that runs."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from launched_hosts import LIMIT_S, Launcher, hosts_of
from test_launch_back import PROGRAM, check_all_are_there

Host = Callable[..., Launcher]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """Starts a launcher by its number."""
    with hosts_of(tmp_path, 2, 2, "--begin=1") as job:

        def start(number: int, word: str, program: str | Path = PROGRAM, **how: str) -> Launcher:
            return job.start(number, program, word, **{"DIES": "{}", **how})

        yield start


def wait_for(path: Path, *running: Launcher) -> None:
    limit = time.monotonic() + LIMIT_S
    while not path.exists():
        assert all(process.poll() is None for process in running), running[0].communicate()[1]
        assert time.monotonic() < limit
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("topology", "pattern"), [("alternating_exponential_ring", "cwa"), ("ring", "allreduce")]
)
def test_a_host_joins(tmp_path: Path, host: Host, topology: str, pattern: str) -> None:
    first = host(0, topology, PATTERN=pattern)
    wait_for(tmp_path / "there-1", first)
    second = host(1, topology, PATTERN=pattern)
    said = [process.communicate(timeout=LIMIT_S)[1] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    found = [json.loads((tmp_path / f"found-{rank}.json").read_text()) for rank in range(4)]
    check_all_are_there(found, tmp_path)
    assert [rank["first"] > 0 for rank in found] == [False, False, True, True]
    assert "rank 2 is back from step" in said[0]
    assert not (tmp_path / "members").exists()


def test_a_host_that_is_there_before_the_job_waits_for_it(tmp_path: Path, host: Host) -> None:
    second = host(1, "ring")
    assert second.stderr is not None
    assert "waits until the job begins" in second.stderr.readline()
    first = host(0, "ring")
    said = [process.communicate(timeout=LIMIT_S)[1] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    found = [json.loads((tmp_path / f"found-{rank}.json").read_text()) for rank in range(4)]
    check_all_are_there(found, tmp_path)


@pytest.mark.parametrize(
    ("program", "words", "steps"),
    [("lightning_back.py", {"nodes": 2}, 180), ("transformers_back.py", {}, 320)],
)
def test_a_host_joins_the_trainers_of_others(
    tmp_path: Path, host: Host, program: str, words: dict[str, int], steps: int
) -> None:
    """Their steps take long until it is there."""
    (tmp_path / "away").touch()
    place = Path(__file__).with_name(program)
    how = {"PYTHONSAFEPATH": ""}  # the programs take others of their folder
    begun = [host(number, json.dumps(words), program=place, **how) for number in range(2)]
    said = [process.communicate(timeout=LIMIT_S)[1] for process in begun]
    assert [process.returncode for process in begun] == [0, 0], said
    found = [json.loads((tmp_path / f"found-{rank}.json").read_text()) for rank in range(4)]
    assert [one["steps"] for one in found] == [steps] * 4
    assert all(one["mean"] == found[0]["mean"] for one in found)
    trained = [len(one["samples"]) for one in found]
    assert trained[:2] == [steps, steps]
    assert all(0 < count < steps for count in trained[2:]), trained


def test_a_host_that_waits_learns_of_a_start_that_failed(tmp_path: Path, host: Host) -> None:
    program = tmp_path / "fails.py"
    program.write_text("raise SystemExit(5)")
    second = host(1, "ring", program=program)
    assert second.stderr is not None
    assert "waits until the job begins" in second.stderr.readline()
    assert host(0, "ring", program=program).wait(LIMIT_S) == 1
    assert "host 0: rank" in second.communicate(timeout=LIMIT_S)[1]
    assert second.returncode == 1


def test_hosts_that_never_come_are_not_missed(tmp_path: Path) -> None:
    """The job ends without them, and leaves no card with its token."""
    program = tmp_path / "few.py"
    program.write_text(FEW)
    with hosts_of(tmp_path, 3, 2, "--begin=1") as job:
        job.start(0, program)
        ((code, said),) = job.all_ended()
    assert code == 0, said
    assert "2 of 6, mean 0.5" in said
    assert not (tmp_path / "members").exists()


FEW = """
import sys, torch, gossamer
rank, workers = gossamer.init()
torch.distributed.barrier()
model = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
gossip = gossamer.Gossip(model, optimizer, topology="ring", lost="go_on")
for step in range(40):
    optimizer.zero_grad()
    model(torch.randn(8, 6)).square().mean().backward()
    optimizer.step()
mean = float(gossip.mean(torch.tensor([float(rank)])))
there = gossip.gather(None)
if rank == 0:
    print(f"{len(there)} of {workers}, mean {mean}", file=sys.stderr)
gossip.close()
"""
