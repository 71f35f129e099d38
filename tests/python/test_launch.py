"""`gossamer launch`: what it starts, what it starts again, and how a job ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from package_runs import watched, with_package

from gossamer.launching.supervisor import pause_s

LAUNCH = [sys.executable, "-m", "gossamer", "launch"]
LIMIT_S = 240


def test_only_workers_that_fail_again_and_again_have_to_wait() -> None:
    pauses = [pause_s(count) for count in (0, 1, 2, 3, 4, 7, 8, 5000)]
    assert pauses == [0, 0, 1, 2, 4, 30, 30, 30]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return watched([*LAUNCH, *arguments], environment, LIMIT_S)


NOBODY = """
import os, signal, torch, gossamer
rank, workers = gossamer.init()
model = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
gossip = gossamer.Gossip(model, optimizer, topology="ring", lost="go_on", timeout_s=60)
while True:
    optimizer.zero_grad()
    model(torch.randn(8, 6)).square().mean().backward()
    optimizer.step()
    if gossip.steps_done == 20:
        gossip.gather(None)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_job_whose_workers_are_all_lost_ends(tmp_path: Path) -> None:
    done = run("-n", "3", "--", sys.executable, "-c", NOBODY)
    assert done.returncode == 1
    assert done.stderr.count("it is started again") == 2
    assert "no worker has the state of the run any more, so the job ends" in done.stderr


LEAVING = """
import os, signal, sys, torch, gossamer
rank, workers = gossamer.init()
model = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
gossip = gossamer.Gossip(model, optimizer, topology="ring", lost="go_on", suspect_s=60)
is_back = gossip.steps_done > 0
first = gossip.steps_done
is_over = 0.0
while not is_over:
    optimizer.zero_grad()
    model(torch.randn(8, 6)).square().mean().backward()
    optimizer.step()
    if gossip.steps_done == 20 and rank == 2:
        gossip.leave()
        sys.exit()
    if gossip.steps_done == 200 and rank == 1 and not is_back:
        os.kill(os.getpid(), signal.SIGKILL)
    if gossip.steps_done % 50 == 0:
        is_over = float(gossip.mean(torch.tensor([float(is_back)])))
gossip.close()
"""


def test_one_that_leaves_does_not_end_the_job(tmp_path: Path) -> None:
    program = tmp_path / "leaving.py"
    program.write_text(LEAVING)
    done = run("-n", "4", "--members", str(tmp_path / "m"), "--", sys.executable, str(program))
    assert done.returncode == 0, done.stderr
    assert "rank 2 has left, the others go on" in done.stderr
    assert "lost in step 201: the peer has ended" in done.stderr
    assert "rank 1 is back from step" in done.stderr
    assert not list((tmp_path / "m").glob("2.*ed")) and not list((tmp_path / "m").glob("*.left"))


def test_calls_of_torch_go_on_without_the_lost(tmp_path: Path) -> None:
    program = str(Path(__file__).with_name("torch_calls.py"))
    done = run("-n", "4", "--restarts", "0", "--", sys.executable, program, str(tmp_path))
    found = {rank: json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1, 3)}
    assert not (tmp_path / "2.json").exists(), done.stderr
    for rank, calls in found.items():
        for when, ranks in (
            ("before", [0, 1, 2, 3]),
            ("with", [0, 1, 2, 3]),
            ("after", [0, 1, 1, 3]),
        ):
            said = calls[when]
            assert said["sum"] == sum(ranks)
            assert (said["least"], said["most"], said["product"]) == (0, 3, 0)
            assert said["gathered"] == said["into one"] == said["objects"] == ranks
            assert said["of rank 1"] == [1, "1"]
            assert said["to rank 1"] == ([sum(ranks), ranks] if rank == 1 else None)
            assert said["part"] == 10 * rank
            assert said["sums"] == rank * 4
        assert calls["mean"] == (0 + 1 + 1 + 3) / 4
        assert "close it after the last of them" in calls["closed"]


def test_a_program_that_fails_at_once_ends_all() -> None:
    done = run("-n", "2", "--", sys.executable, "-c", "import os; 1 / int(os.environ['RANK'])")
    assert done.returncode == 1
    assert "rank 0 ended with exit code 1" in done.stderr
    assert "before it had come to the others" in done.stderr


def test_workers_have_what_torchrun_gives_them() -> None:
    names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR"]
    code = f"import os; print(*(os.environ[n] for n in {names}))"
    found = run(
        "-n",
        "1",
        "--hosts",
        "3",
        "--host",
        "2",
        "--master",
        "h:5",
        "--members",
        "/tmp",
        "--",
        sys.executable,
        "-c",
        code,
    )
    assert found.stdout.split() == ["2", "3", "0", "1", "2", "h"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-n", "2"], "train.py"),
        (["-n", "0", "--", "true"], "--workers 0"),
        (["-n", "1", "--hosts", "2", "--", "true"], "--master HOST:PORT"),
        (["-n", "1", "--master", "here", "--", "true"], "got here"),
    ],
)
def test_mistakes_are_named(arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr


OTHER_SECRETS = """
import os, torch, gossamer
os.environ["GOSSAMER_SECRET"] = "what only rank knows: " + os.environ["RANK"]
gossamer.init()
model = torch.nn.Linear(2, 2)
gossamer.Gossip(model, torch.optim.SGD(model.parameters(), lr=0.1), lost="go_on", timeout_s=60)
"""


def test_workers_that_never_were_together_are_not_started_again(tmp_path: Path) -> None:
    done = run("-n", "2", "--", sys.executable, "-c", OTHER_SECRETS)
    assert done.returncode == 1
    assert "not written by a worker of this job" in done.stderr
    assert "before it had come to the others" in done.stderr
    assert "started again" not in done.stderr


def of_two_hosts(folder: Path, host: int, *command: str) -> list[str]:
    told = f"-n1 --hosts=2 --host={host} --master=127.0.0.1:1 --members={folder / 'members'}"
    return [*LAUNCH, *told.split(), "--", *command]


def test_a_start_that_fails_ends_the_workers_of_the_other_hosts(tmp_path: Path) -> None:
    waiting = subprocess.Popen(
        of_two_hosts(tmp_path, 0, "sleep", "600"),
        env=with_package(),
        stderr=subprocess.PIPE,
        text=True,
    )
    mark = tmp_path / "members" / "0.starts"
    limit = time.monotonic() + 240
    while not mark.exists() and time.monotonic() < limit:
        time.sleep(0.05)
    failing = of_two_hosts(tmp_path, 1, "false")
    done = subprocess.run(failing, env=with_package(), check=False, timeout=LIMIT_S)
    said = waiting.communicate(timeout=LIMIT_S)[1]
    assert (waiting.returncode, done.returncode) == (1, 1)
    assert "[launch] host 1: rank 1 ended with exit code 1" in said
    assert "the workers here are ended as well" in said


def test_the_last_launcher_removes_what_is_the_jobs(tmp_path: Path) -> None:
    members = tmp_path / "members"
    (members / "0").mkdir(parents=True)
    (members / "0" / "1.json").write_text('{"token": "of an earlier job"}')
    (members / "1.failed").write_text("1234 rank 1 ended")  # of an earlier job, too
    (members / "notes.txt").write_text("the user's")
    for host in range(2):
        command = of_two_hosts(tmp_path, host, "sleep", "0.1")
        assert subprocess.run(command, env=with_package(), check=False).returncode == 0
        assert (members / "0.over").exists() == (host == 0)
    assert [path.name for path in members.iterdir()] == ["notes.txt"]


def test_what_ends_the_launcher_ends_the_workers(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, time; "
        f"pathlib.Path(r'{tmp_path}', os.environ['RANK']).write_text(str(os.getpid())); "
        "time.sleep(100)"
    )
    launcher = [*LAUNCH, "-n", "2", "--", sys.executable, "-c", code]
    process = subprocess.Popen(launcher, env=with_package(), stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 240
    while len([p for p in tmp_path.iterdir() if p.read_text()]) < 2 and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == 128 + signal.SIGTERM
    assert "[launch] SIGTERM: it is passed on to the workers" in said
    for path in tmp_path.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.read_text()), 0)


ENDS = """
import os, pathlib, sys
rank = os.environ["RANK"]
cards = pathlib.Path(os.environ["GOSSAMER_MEMBERS"], "0")
cards.mkdir(exist_ok=True)
(cards / f"{rank}.json").write_text("{}")
sys.exit(int(sys.argv[1 + int(rank)]))
"""


@pytest.mark.parametrize(("codes", "seen"), [("44", 4), ("33", 3), ("43", 1), ("55", 1)])
def test_a_code_that_says_why_is_passed_on(codes: str, seen: int) -> None:
    done = run("-n", "2", "--restarts", "0", "--", sys.executable, "-c", ENDS, *codes)
    assert done.returncode == seen, done.stderr
    assert done.stderr.count("it is not started again, the others go on") == 1
    assert done.stderr.count("no worker has the state of the run any more") == 1, "the last one"
