"""`gossamer launch`: a worker that is lost is started again, and takes part as before."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from gossip_support import gap
from package_runs import with_package

from gossamer import Gossip
from gossamer.checkpoint import handing_over
from gossamer.launching.supervisor import pause_s

LAUNCH = [sys.executable, "-m", "gossamer", "launch"]
PROGRAM = str(Path(__file__).with_name("coming_back.py"))


def launched(
    folder: Path,
    dies: dict[str, list[int]],
    topology: str = "ring",
    spares: int = 0,
    pattern: str = "cwa",
    optimizer: str = "AdamW",
    told: str = "",
) -> tuple[Any, str]:
    """By rank what was found, and what was said."""
    command = [sys.executable, PROGRAM, str(folder), topology]
    how = {"DIES": json.dumps(dies), "PATTERN": pattern, "OPTIMIZER": optimizer, "TOLD": told}
    done = subprocess.run(
        [*LAUNCH, "-n4", f"--spares={spares}", "--", *command],
        env=with_package(how),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == (128 + signal.SIGTERM if told else 0), done.stderr
    found = [json.loads((folder / f"found-{rank}.json").read_text()) for rank in range(4)]
    return found, done.stderr


def check_all_are_there(found: list[Any], folder: Path) -> None:
    for number, rank in enumerate(found):
        assert rank["group"] == [number, 4]
        came_back = "make the Gossip first" in rank["refused"]
        assert came_back == (rank["first"] > 0)
        assert rank["sum"] == 0 + 1 + 2 + 3
        assert rank["steps"] == found[0]["steps"]
        assert rank["mean"] == found[0]["mean"]
        assert rank["rate"] == pytest.approx(1e-2 / (1 + rank["steps"]), rel=1e-9)
        assert rank["lost"] == {}
    means = [sum(values) / 4 for values in zip(*(rank["own"] for rank in found), strict=True)]
    assert gap(found[0]["mean"], means) < 1e-5
    (saved,) = (folder / "saved").glob("step-*")
    assert len(list(saved.glob("worker-*"))) == 4


def test_only_workers_that_fail_again_and_again_have_to_wait() -> None:
    pauses = [pause_s(count) for count in (0, 1, 2, 3, 4, 7, 8, 5000)]
    assert pauses == [0, 0, 1, 2, 4, 30, 30, 30]


def test_whoever_has_no_state_to_give_does_not_pack_it_for_every_question() -> None:
    refusals = handing_over.Refusals()
    assert not refusals.is_on(100.0)
    asked = [100.0 + 2 * k for k in range(100)]
    packed = []
    for now in asked:
        if not refusals.is_on(now):
            packed.append(now)
            refusals.add(now)
    assert packed == [100, 104, 112, 128, 160, 220, 280]


def test_a_worker_comes_back_with_a_neighbours_state(tmp_path: Path) -> None:
    found, said = launched(tmp_path, {"2": [8]})
    check_all_are_there(found, tmp_path)
    assert [rank["first"] > 8 for rank in found] == [False, False, True, False]
    assert "rank 2 ended by SIGKILL" in said
    assert f"rank 2 is back from step {found[2]['first'] + 1} on" in said
    for rank in (0, 1, 3):  # a neighbour may lose it one step later
        lost, back = found[rank]["events"]
        assert lost[:2] == ["lost", 2]
        assert back == ["back", 2, found[2]["first"] + 1, ""]
        assert lost[3]
        assert 0 <= lost[2] < back[2]
    assert found[2]["events"] == []
    # Adam goes on counting where the neighbour had got to, in some of the steps before.
    assert found[2]["steps"] - 140 < found[2]["updates"][0] <= found[2]["steps"]


def test_the_first_worker_comes_back_and_a_group_is_whole_again(tmp_path: Path) -> None:
    found, said = launched(tmp_path, {"0": [6], "3": [9]}, "alternating_exponential_ring")
    check_all_are_there(found, tmp_path)
    assert "rank 0 ended by SIGKILL" in said
    assert "rank 3 ended by SIGKILL" in said


def test_all_stop_with_one_that_has_come_back_and_none_is_started_again(tmp_path: Path) -> None:
    found, said = launched(tmp_path, {"2": [8]}, told="2")
    check_all_are_there(found, tmp_path)
    for rank in range(4):
        assert f"rank {rank} has stopped as SIGTERM asks" in said
    assert said.count("it is started again") == 1


LEAVING = """
import os, signal, sys, torch, gossamer
rank, workers = gossamer.init()
model = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
gossip = gossamer.Gossip(model, optimizer, topology="ring", lost="go_on", timeout_s=60)
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


def test_replicas_that_come_back_are_replicas(tmp_path: Path) -> None:
    found, said = launched(tmp_path, {"0": [8], "2": [20]}, pattern="allreduce")
    check_all_are_there(found, tmp_path)
    assert "rank 0 ended by SIGKILL" in said
    assert "rank 2 ended by SIGKILL" in said
    for rank in found:
        assert rank["own"] == found[0]["own"]  # the same bits
        assert rank["updates"] == [rank["steps"]] * 2


def test_gradients_of_one_that_has_come_back_are_mixed(tmp_path: Path) -> None:
    found, _ = launched(
        tmp_path, {"1": [8]}, "complete", pattern="gradient_gossip", optimizer="RMSprop"
    )
    check_all_are_there(found, tmp_path)
    for rank in found:
        for one, other in zip(rank["gradients"], found[0]["gradients"], strict=True):
            assert torch.allclose(torch.tensor(one), torch.tensor(other), rtol=1e-5, atol=1e-7)


def test_trackers_of_one_that_has_come_back_begin_anew(tmp_path: Path) -> None:
    found, said = launched(
        tmp_path, {"3": [12]}, "one_peer_exponential", pattern="gradient_tracking"
    )
    check_all_are_there(found, tmp_path)
    assert "rank 3 ended by SIGKILL" in said


def test_lost_workers_come_back_as_spares(tmp_path: Path) -> None:
    found, said = launched(tmp_path, {"1": [40], "3": [300]}, spares=1)
    check_all_are_there(found, tmp_path)
    assert "rank 1 ended by SIGKILL" in said
    assert "rank 3 ended by SIGKILL" in said
    assert [rank["had_torch"] for rank in found] == [False, True, False, True]


def test_what_is_handed_over_has_the_same_bits() -> None:
    def made(seed: int) -> tuple[torch.nn.Module, torch.optim.Optimizer, Gossip]:
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
        optimizer = torch.optim.AdamW(model.parameters())
        return (
            model,
            optimizer,
            Gossip(model, optimizer, pattern="noloco", pattern_options={"outer_every": 2}),
        )

    given, given_optimizer, donor = made(0)
    for _ in range(3):
        given_optimizer.zero_grad()
        given(torch.randn(5, 4)).square().mean().backward()
        given_optimizer.step()
    taken, taken_optimizer, newcomer = made(1)
    run, other = donor._run, newcomer._run
    state = handing_over._packed(run.team, run.trained, run.carried(), [{"place": 7}])
    carried, beside = handing_over._put(other.session, other.trained, state)
    for key, value in given.state_dict().items():
        assert torch.equal(taken.state_dict()[key], value), key
    for one, two in zip(given.parameters(), taken.parameters(), strict=True):
        for key, value in given_optimizer.state[one].items():
            assert torch.equal(
                torch.as_tensor(taken_optimizer.state[two][key]), torch.as_tensor(value)
            ), key
    assert beside == [{"place": 7}]
    before = run.carried().state
    assert before
    assert {key: value.tolist() for key, value in carried.state.items()} == {
        key: value.tolist() for key, value in before.items()
    }
    donor.close()
    newcomer.close()


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LAUNCH, *arguments],
        env=with_package(environment),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


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
    done = subprocess.run(failing, env=with_package(), check=False, timeout=240)
    said = waiting.communicate(timeout=240)[1]
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
    said = process.communicate(timeout=240)[1]
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
    assert done.stderr.count("it is not started again, the others go on") == 2
