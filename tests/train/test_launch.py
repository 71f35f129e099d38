"""`gossamer train` as the processes of a launcher."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from train_runs import (
    GOSSAMER,
    PATIENCE_S,
    Variables,
    as_mpirun,
    as_srun,
    as_torchrun,
    checkpoint_bytes,
    finish,
    free_port,
    gossamer,
    small_text,
    start,
    torchrun,
    train,
    wait_for,
)

SAVED = "--steps 8 --checkpoint-every 4 --keep 3 --json --out".split()
FIGURES = "workers topology pattern val_loss val_accuracy train_loss disagreement".split()


@pytest.fixture
def text(tmp_path: Path) -> list[str]:
    return small_text(tmp_path)


def losses(out: Path, rank: int) -> list[float]:
    lines = (out / f"metrics.rank{rank}.jsonl").read_text().splitlines()
    return [line["loss"] for line in map(json.loads, lines) if "loss" in line]


def assert_same_run(one: Path, other: Path, workers: int) -> None:
    for step in (4, 8):
        found = checkpoint_bytes(one, step)
        assert len(found) == workers
        assert found == checkpoint_bytes(other, step)
    for rank in range(workers):
        assert losses(one, rank) == losses(other, rank)
    figures = [json.loads((out / "summary.json").read_text()) for out in (one, other)]
    assert {key: figures[0][key] for key in FIGURES} == {key: figures[1][key] for key in FIGURES}
    assert (one / "run.toml").read_text() == (other / "run.toml").read_text()


def test_four_processes_of_torchrun_are_four_threads(text: list[str], tmp_path: Path) -> None:
    one, other = tmp_path / "threads", tmp_path / "processes"
    train(*text, "--hosts", "1", "--per-host", "4", *SAVED, str(one))
    command = torchrun("--standalone", "--nproc-per-node=4")
    done = subprocess.run(
        [*command, "train", *text, *SAVED, str(other)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["workers"] == 4  # one object, of rank 0
    assert done.stderr.count("bytes to train on") == 1
    assert "torchrun has started 1 host x 4 workers" in done.stderr
    assert_same_run(one, other, 4)


def test_two_agents_of_torchrun_are_two_hosts(text: list[str], tmp_path: Path) -> None:
    one, other = tmp_path / "threads", tmp_path / "processes"
    method = "--pattern allreduce --optimizer momentum".split()
    train(*text, *method, "--hosts", "2", "--per-host", "2", *SAVED, str(one))
    meeting = ["--master-addr=127.0.0.1", f"--master-port={free_port()}"]
    options = ["--nnodes=2", "--nproc-per-node=2", *meeting]
    agents = [
        subprocess.Popen(
            [
                *torchrun(*options, f"--node-rank={node}"),
                *("train", *text, *method, *SAVED, str(other)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for node in (0, 1)
    ]
    done = finish(agents)
    assert [each.returncode for each in done] == [0, 0], done[0].stderr + done[1].stderr
    assert done[1].stdout == ""
    assert_same_run(one, other, 4)


def test_processes_resume_what_threads_have_saved(text: list[str], tmp_path: Path) -> None:
    whole, other = tmp_path / "whole", tmp_path / "run"
    method = "--topology ring --update backward --optimizer accum_adamw".split()
    train(*text, *method, "--hosts", "2", "--per-host", "2", *SAVED, str(whole))
    shutil.copytree(whole, other)
    shutil.rmtree(other / "checkpoints" / "step-00000008")
    for rank in range(4):
        (other / f"metrics.rank{rank}.jsonl").write_text("")
    done = finish(start(as_srun(4, per_host=2), [0, 1, 2, 3], "--resume", str(other), "--json"))
    assert [each.returncode for each in done] == [0] * 4, done[0].stderr
    assert json.loads(done[0].stdout)["steps"] == 8
    assert [each.stdout + each.stderr for each in done[1:]] == [""] * 3
    assert checkpoint_bytes(other, 8) == checkpoint_bytes(whole, 8)
    assert [losses(other, rank) for rank in range(4)] == [
        losses(whole, rank)[4:] for rank in range(4)
    ]


def test_hosts_of_another_number_of_workers_are_not_resumed(
    text: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    train(*text, "--hosts", "2", "--per-host", "2", *SAVED, str(out))
    recipe = (out / "run.toml").read_text()
    done = finish(start(as_mpirun(4), [0, 1, 2, 3], "--resume", str(out)))
    assert [each.returncode for each in done] == [2] * 4
    assert all("hosts = 1 where it was 2" in each.stderr for each in done)
    assert (out / "run.toml").read_text() == recipe


def running(text: list[str], out: Path) -> list[subprocess.Popen[str]]:
    """Four endless processes that have saved a checkpoint."""
    flags = "--topology ring --steps 1000000 --checkpoint-every 5 --out".split()
    processes = start(as_mpirun(4), [0, 1, 2, 3], *text, *flags, str(out))
    wait_for(out / "checkpoints" / "latest", *processes, patience_s=PATIENCE_S)
    return processes


@pytest.mark.parametrize("victim", [0, 2])
def test_a_killed_worker_ends_the_others_with_its_name(
    victim: int, text: list[str], tmp_path: Path
) -> None:
    processes = running(text, tmp_path / "run")
    processes[victim].send_signal(signal.SIGKILL)
    done = finish(processes)
    assert done[victim].returncode == -signal.SIGKILL
    for rank, each in enumerate(done):
        if rank == victim:
            continue
        assert (each.returncode, each.stdout) == (4, "")
        message = each.stderr.strip().splitlines()[-1]
        assert message.startswith(f"[transport] worker {rank}: ")
        assert f"worker {victim}" in message
        says_more = rank == (0 if victim else 1)
        assert says_more == (f"worker {victim} does not answer any more; worker" not in message)


# Schedulers tell one process or all of them; Ctrl-C reaches all, and is not waited for.
@pytest.mark.parametrize(
    ("told", "number"),
    [
        ([0, 1, 2, 3], signal.SIGTERM),
        ([0], signal.SIGTERM),
        ([2], signal.SIGTERM),
        ([3], signal.SIGHUP),
        ([0, 1, 2, 3], signal.SIGINT),
    ],
)
def test_signals_leave_a_checkpoint_to_go_on_from(
    told: list[int], number: signal.Signals, text: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
    processes = running(text, out)
    signal.signal(signal.SIGHUP, before)
    for rank in told:
        processes[rank].send_signal(number)
    done = finish(processes)
    assert [each.returncode for each in done] == [128 + number] * 4
    assert f"--resume {out}" in done[0].stderr
    assert [each.stderr for each in done[1:]] == [""] * 3
    step = int((out / "checkpoints" / "latest").read_text().strip().removeprefix("step-"))
    assert len(checkpoint_bytes(out, step)) == 4
    if number != signal.SIGINT:
        assert f"stopped and saved after step {step};" in done[0].stderr
        ends = {len(losses(out, rank)) for rank in range(4)}
        assert ends == {step}, "all have done the same steps, and none that is not saved"
    more = ["--resume", str(out), "--steps", str(step + 2), "--json"]
    resumed = finish(start(as_mpirun(4), [0, 1, 2, 3], *more))
    assert json.loads(resumed[0].stdout)["steps"] == step + 2


# Rank 1 dies after the first checkpoint; what is started then goes two steps beyond the newest.
DIES_ONCE = """#!/bin/sh
latest=$FOLDER/checkpoints/latest
if [ "$TORCHELASTIC_RESTART_COUNT" != 0 ]; then
  step=$(sed 's/step-0*//' "$latest")
  exec "$@" --steps $((step + 2))
fi
[ "$RANK" = 1 ] || exec "$@" --steps 1000000
"$@" --steps 1000000 &
tries=0
until [ -e "$latest" ] || [ $tries = 3000 ]; do sleep 0.02; tries=$((tries + 1)); done
kill -9 $!
exit 1
"""


def test_what_torchrun_starts_again_goes_on(text: list[str], tmp_path: Path) -> None:
    out, whole, program = tmp_path / "run", tmp_path / "whole", tmp_path / "dies_once"
    program.write_text(DIES_ONCE)
    program.chmod(0o755)
    flags = [*text, "--lr-schedule", "constant", "--checkpoint-every", "5", "--json"]
    *options, gossamer = torchrun("--standalone", "--nproc-per-node=2", "--max-restarts=1")
    done = subprocess.run(
        [*options, str(program), gossamer, "train", *flags, "--auto-resume", "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=os.environ | {"FOLDER": str(out)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    flags += ["--hosts", "1", "--per-host", "2", "--steps", str(found["steps"])]
    assert found["val_loss"] == json.loads(train(*flags, "--out", str(whole)).stdout)["val_loss"]
    for rank in (0, 1):
        assert losses(out, rank) == losses(whole, rank)


def test_a_worker_that_does_not_come_is_named(text: list[str]) -> None:
    flags = [*text, "--timeout-s", "0.5"]
    done = finish(start(as_torchrun(3, per_host=3), [0, 1], *flags))
    assert [each.returncode for each in done] == [4, 4]
    for each in done:
        for words in ("worker 2 failed", "2 of 3 have", "WORLD_SIZE=3 says that there are 3"):
            assert words in each.stderr
    done = finish(start(as_torchrun(3, per_host=3), [1], *flags))
    assert "worker 0 failed" in done[0].stderr
    assert "(127.0.0.1: Connection refused)" in done[0].stderr


REFUSED: dict[str, tuple[str, str]] = {
    "emulated links": ("--gamma 2", "gamma under torchrun"),
    "hosts of its own": ("--hosts 2 --per-host 4", "got 2 hosts x 4 workers"),
    "an unknown topology": ("--topology rign", "did you mean 'ring'?"),
    "no folder for checkpoints": ("--checkpoint-every 2", "--out"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_for_all_is_refused_by_all(case: str, text: list[str]) -> None:
    flags, words = REFUSED[case]
    done = finish(start(as_torchrun(2, per_host=2), [0, 1], *text, *flags.split()))
    assert [each.returncode for each in done] == [2, 2]
    assert all(words in each.stderr for each in done), done[0].stderr + done[1].stderr
    assert [each.stdout for each in done] == ["", ""]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--steps 9", "rank 0 has steps = 8, got steps = 9 on rank 1"),
        ("--data /nowhere/at/all", "/nowhere/at/all"),
        ("--tls", "rank 0 has tls = false, got tls = true on rank 1"),
    ],
)
def test_what_is_wrong_for_one_ends_all(flags: str, words: str, text: list[str]) -> None:
    variables = as_torchrun(2, per_host=1)
    processes = start(variables, [0], *text, "--steps", "8")
    processes += start(variables, [1], *text, "--steps", "8", *flags.split())
    done = finish(processes)
    assert [each.returncode for each in done] == [2, 2]
    assert all(words in each.stderr for each in done), done[0].stderr + done[1].stderr
    assert "rank 1 could not" in done[0].stderr


def test_a_secret_that_one_lacks_is_missed_by_all(text: list[str], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of sixteen bytes or more")
    secret.chmod(0o600)
    in_order = as_torchrun(2, per_host=2)
    its = {1: {"GOSSAMER_SECRET_FILE": str(secret)}}
    done = finish(start(lambda rank: in_order(rank) | its.get(rank, {}), [0, 1], *text))
    assert [each.returncode for each in done] == [2, 2]
    words = "same secret, or none does, got one on rank 1, none on rank 0"
    assert all(words in each.stderr for each in done), done[0].stderr + done[1].stderr


def test_a_key_from_the_store_is_a_warning_of_one(text: list[str], tmp_path: Path) -> None:
    """And both mix by the same file of matrices."""
    weights = tmp_path / "weights.json"
    weights.write_text(gossamer("topology", "ring", "--hosts", "2", "--json").stdout)
    flags = [*text, "--tls", "--pattern", "atc", "--topology", str(weights), "--steps", "2"]
    done = finish(start(as_torchrun(2, per_host=1), [0, 1], *flags, "--json"))
    assert [each.returncode for each in done] == [0, 0], done[0].stderr + done[1].stderr
    assert json.loads(done[0].stdout)["topology"] == str(weights)
    assert "warning: the key of TLS comes from the launcher's store" in done[0].stderr
    assert done[1].stderr == ""


def test_a_folder_that_only_rank_0_sees_is_named(text: list[str], tmp_path: Path) -> None:
    variables = as_torchrun(2, per_host=1)
    outs = [str(tmp_path / "run"), str(tmp_path / "elsewhere")]
    processes = [
        process
        for rank, out in enumerate(outs)
        for process in start(variables, [rank], *text, "--steps", "2", "--out", out)
    ]
    done = finish(processes)
    assert [each.returncode for each in done] == [2, 2]
    words = f"{outs[1]} is not the folder that rank 0 writes to, got no run.toml in it; give a"
    assert all(words in each.stderr for each in done), done[0].stderr + done[1].stderr
    assert "rank 1 could not see the run folder" in done[0].stderr


@pytest.mark.parametrize(
    ("variables", "flags", "words"),
    [
        ({}, "--transport net", "torchrun --no-python"),
        ({}, "--transport nett", "did you mean 'net'?"),
        ({"WORLD_SIZE": "2"}, "", "the environment lacks RANK"),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, "", "mpiexec -genv MASTER_ADDR"),
        ({"PMIX_RANK": "0"}, "", "nothing says how many there are"),
        ({**as_torchrun(2, 2)(0), "RANK": "2"}, "", "RANK must be a whole number from 0 to 1"),
        ({**as_mpirun(2)(0), "RANK": "1"}, "", "RANK must be 0, as mpirun has it, got 1"),
        ({**as_torchrun(2, 2)(0), "MASTER_ADDR": "192.0.2.1"}, "", "cannot listen on 192.0.2.1"),
    ],
)
def test_wrong_variables_are_named(
    variables: Variables, flags: str, words: str, text: list[str]
) -> None:
    done = train(*text, *flags.split(), check=False, variables=variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_ranks_that_are_not_dealt_host_by_host_are_refused(text: list[str]) -> None:
    in_order = as_torchrun(4, per_host=2)

    def in_turns(rank: int) -> Variables:
        place = {"GROUP_RANK": str(rank % 2), "LOCAL_RANK": str(rank // 2)}
        return {**in_order(rank), **place}

    done = finish(start(in_turns, [0, 1, 2, 3], *text))
    assert [each.returncode for each in done] == [2] * 4
    assert all("host by host" in each.stderr for each in done), done[0].stderr


def test_local_ranks_that_begin_again_split_a_machine(text: list[str]) -> None:
    in_order = as_torchrun(2, per_host=1)
    flags = [*text, "--steps", "2", "--timeout-s", "inf"]
    done = finish(start(lambda rank: {**in_order(rank), "GROUP_RANK": ""}, [0, 1], *flags))
    assert [each.returncode for each in done] == [0, 0], done[0].stderr
    assert "has started 2 hosts x 1 worker" in done[0].stderr
    assert "warning" not in done[0].stderr


@pytest.mark.parametrize(
    ("variables", "workers"),
    [
        ({"RANK": "0", "WORLD_SIZE": "1"}, 1),
        ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0"}, 8),  # a batch script: threads
    ],
)
def test_variables_are_needed_only_where_they_decide(
    variables: Variables, workers: int, text: list[str]
) -> None:
    done = train(*text, "--steps", "2", "--json", variables=variables)
    assert json.loads(done.stdout)["workers"] == workers


def test_threads_can_be_asked_for_under_a_launcher(text: list[str]) -> None:
    flags = "--transport threads --hosts 1 --per-host 2 --steps 2 --json".split()
    done = train(*text, *flags, variables=as_torchrun(4, per_host=4)(1))
    assert json.loads(done.stdout)["workers"] == 2


def test_a_part_of_the_workers_does_not_begin_alone(text: list[str], tmp_path: Path) -> None:
    command = f"launch -n 1 --hosts 2 --begin 1 --master 127.0.0.1:{free_port()} --members"
    members = str(tmp_path / "members")
    done = gossamer(*command.split(), members, "--", str(GOSSAMER), "train", *text, check=False)
    assert "all workers begin together, got 1 of 2 by --begin; leave --begin out" in done.stderr
    assert done.returncode == 2
