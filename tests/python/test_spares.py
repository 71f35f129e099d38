"""`gossamer launch --spares`: lost workers are forked from a process that has imported torch."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from package_runs import with_package

from gossamer.launching import processes, spares

# What a program can see of how it was started.
FACTS = """
from __future__ import annotations
import json, multiprocessing, os, pickle, sys

class Own:
    pass

def square(x):
    return x * x

if __name__ == "__main__":
    squares = []
    if __spec__ is None or __spec__.name != "inner.__main__":  # of which Python finds no functions
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            squares = pool.map(square, [3])
    print(json.dumps({
        "squares": squares, "argv": sys.argv, "file": __file__, "path": sys.path[0],
        "spec": __spec__ and __spec__.name, "package": __package__, "rank": os.environ["RANK"],
        "own": type(pickle.loads(pickle.dumps(Own()))).__name__, "flags": list(sys.flags),
        "main": sys.modules["__main__"].__dict__ is globals(), "stdin": sys.stdin.read(),
    }))
    sys.exit(3)
"""


# As the launcher does: a spare of a command, and so many workers from it, one after the other.
LAUNCHER = """
import json, sys, time
from gossamer.launching import processes, spares

processes.adopt_orphans()
told = json.loads(sys.argv[1])
some = spares.Spares(1, spares.spare_command(sys.argv[2:]), {})
some.look()
while not some.is_ready():
    time.sleep(0.01)
    some.look()
    assert some.pids(), "it has ended"
codes = [some.take(variables).wait(60) for variables in told]
print(len(some.pids()), "left", file=sys.stderr)
some.end()
sys.exit(codes[0])
"""


def ended(
    words: list[str], folder: Path, told: list[dict[str, str]], **environment: str
) -> subprocess.CompletedProcess[str]:
    """A program as a spare that was told this, with the usual way where nobody tells anything."""
    command = [sys.executable, *words]
    return subprocess.run(
        [sys.executable, "-c", LAUNCHER, json.dumps(told), *command] if told else command,
        cwd=folder,
        env=with_package(
            {"OMP_NUM_THREADS": "1", **({} if told else {"RANK": "7"}), **environment}
        ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "safe"),
    [
        (["inner/facts.py", "--lr", "1"], ""),
        (["-u", "-W", "ignore", "inner/facts.py"], "1"),  # sys.path has no folder of the program
        (["-m", "inner.facts", "x"], ""),
        (["-m", "inner"], ""),
    ],
)
def test_a_program_sees_no_difference(words: list[str], safe: str, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    for name in ("facts.py", "__main__.py"):
        (inner / name).write_text(FACTS)
    usual = ended(words, tmp_path, [], PYTHONSAFEPATH=safe)
    spare = ended(words, tmp_path, [{"RANK": "7"}], PYTHONSAFEPATH=safe)
    assert "1 left" in spare.stderr  # so it was forked
    assert (usual.returncode, spare.returncode) == (3, 3), usual.stderr + spare.stderr
    assert json.loads(spare.stdout) == json.loads(usual.stdout)


def test_errors_of_a_program_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("import os\n\n1 / 0\n")
    done = ended(["wrong.py"], tmp_path, [{"A": "1"}])
    assert done.returncode == 1
    assert 'wrong.py", line 3, in <module>\n    1 / 0' in done.stderr
    for words, said in ((["none.py"], "can't open file none.py"), (["-m", "none"], "named none")):
        done = ended(words, tmp_path, [{"A": "1"}])
        assert done.returncode == 1
        assert said in done.stderr


RANDOM = """
import os, random, sys
import numpy, torch
if os.environ["RANK"] == "0":
    torch.ones(300, 300) @ torch.ones(300, 300)  # with threads, which a fork would not have
print(os.getpid() == os.getsid(0), random.random(), numpy.random.random(), len(sys.argv))
"""


def test_all_are_forked_from_one_and_draw_their_own_numbers(tmp_path: Path) -> None:
    (tmp_path / "draws.py").write_text(RANDOM)
    done = ended(["draws.py"], tmp_path, [{"RANK": str(rank)} for rank in range(3)])
    assert done.returncode == 0, done.stderr
    assert "1 left" in done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [(line[0], line[3]) for line in lines] == [("True", "1")] * 3
    assert len({line[1] for line in lines}) == 3
    assert len({line[2] for line in lines}) == 3


def test_one_that_has_threads_becomes_the_worker_itself(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n"
    )
    (tmp_path / "runs.py").write_text("import os; print(os.environ['RANK'])")
    path = f"{with_package()['PYTHONPATH']}:{tmp_path}"
    done = ended(["runs.py"], tmp_path, [{"RANK": "5"}], PYTHONPATH=path)
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
    assert "0 left" in done.stderr


def test_a_spare_that_is_not_needed_ends(tmp_path: Path) -> None:
    (tmp_path / "runs.py").write_text("print('runs')")
    command = spares.spare_command([sys.executable, "runs.py"])
    assert command is not None
    mine, its = socket.socketpair()
    with its:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=with_package(), stdin=its.fileno(), stdout=subprocess.PIPE
        )
    mine.close()  # as where the launcher is killed
    said, _ = process.communicate(timeout=120)
    assert said == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        ["./train.sh"],
        ["accelerate", "launch", "train.py"],
        ["python"],
        ["python", "-m"],
        ["python", "-c", "pass"],
        ["python", "--version"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_prepared(command: list[str]) -> None:
    assert spares.spare_command(command) is None
    done = ended(
        ["-m", "gossamer", "launch", "-n", "1", "--spares", "1", "--", *command],
        Path.cwd(),
        [],
    )
    assert done.returncode == 2
    assert "--spares 1 needs a command that is python train.py" in done.stderr


def test_one_that_ends_by_itself_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spares, "_PAUSE_S", 0.0)
    some = spares.Spares(1, [sys.executable, "-c", "raise SystemExit(1)"], {})
    some.look()
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    some.look()
    assert "ended by itself with exit code 1" in capsys.readouterr().err
    some.look()
    assert some.take({}) is None
    assert some.pids() == set()


def wait_until_ready(some: spares.Spares) -> None:
    limit = time.monotonic() + 60
    while not some.is_ready():
        assert time.monotonic() < limit
        time.sleep(0.01)


# A spare that becomes the worker itself, and writes what it was told.
BECOMES = """
import os, socket, sys
channel = socket.socket(fileno=os.dup(0))
channel.sendall(b"ready\\n")
told = channel.recv(1000)
channel.sendall(f"{os.getpid()}\\n".encode())
open(sys.argv[1], "ab").write(told)
"""


def test_each_is_taken_once_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spares, "_PAUSE_S", 0.0)
    some = spares.Spares(1, [sys.executable, "-c", BECOMES, str(tmp_path / "told")], {})
    assert some.take({"RANK": "0"}) is None
    taken = set()
    for rank in (2, 3):
        some.look()
        some.look()
        wait_until_ready(some)
        worker = some.take({"RANK": str(rank)})
        assert worker is not None
        assert some.take({"RANK": "1"}) is None
        assert worker.wait(60) == 0
        taken.add(worker.pid)
    assert len(taken) == 2
    assert (tmp_path / "told").read_text() == '{"RANK": "2"}\n{"RANK": "3"}\n'
    some.look()
    some.end()
    assert some.take({"RANK": "1"}) is None


# One that never answers.
STOPS = """
import os, socket, sys, time
channel = socket.socket(fileno=os.dup(0))
channel.sendall(b"ready\\n")
channel.recv(1000)
time.sleep(100)
"""


def test_one_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spares, "_TO_FORK_S", 0.1)
    some = spares.Spares(1, [sys.executable, "-c", STOPS], {})
    some.look()
    (pid,) = some.pids()
    wait_until_ready(some)
    assert some.take({"RANK": "1"}) is None
    assert some.pids() == set()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_no_process_stays_that_nobody_looks_at(tmp_path: Path) -> None:
    """A worker is killed whose own child lives on and ends later, as data loaders do."""
    (tmp_path / "parent.py").write_text(
        "import os, subprocess, sys\n"
        "child = subprocess.Popen(['sleep', '1'])\n"
        "open('child', 'w').write(str(child.pid))\n"
    )
    watching = """
import os, sys, time
from gossamer.launching import processes
processes.adopt_orphans()
parent = os.posix_spawn(sys.executable, [sys.executable, "parent.py"], os.environ)
known = processes.Forked(parent)
known.wait(60)
child = int(open("child").read())
while os.path.exists(f"/proc/{child}"):
    processes.bury_orphans({parent})
    time.sleep(0.01)
"""
    done = subprocess.run(
        [sys.executable, "-c", watching], cwd=tmp_path, env=with_package(), timeout=60, check=False
    )
    assert done.returncode == 0


def test_a_fork_has_an_exit_code_and_a_signal() -> None:
    for code in (3, -signal.SIGKILL):
        pid = os.fork()
        if not pid:
            if code < 0:
                os.kill(os.getpid(), -code)
            os._exit(code)
        fork = processes.Forked(pid)
        assert fork.wait(60) == code
        assert fork.poll() == code
    pid = os.fork()
    if not pid:
        time.sleep(100)
        os._exit(0)
    fork = processes.Forked(pid)
    with pytest.raises(subprocess.TimeoutExpired):
        fork.wait(0.05)
    assert fork.poll() is None
    os.kill(pid, signal.SIGTERM)
    assert fork.wait(60) == -signal.SIGTERM
