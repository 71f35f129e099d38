"""`gossamer launch --spares`: a process that has imported torch becomes the worker that is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from package_runs import with_package

from gossamer.launching import spares

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


def spare_of(*words: str) -> list[str]:
    command = spares.spare_command([sys.executable, *words])
    assert command is not None
    return command


def ended(
    command: list[str], folder: Path, told: str | None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=with_package({**({} if told else {"RANK": "7"}), **environment}),
        input=told,
        stdin=None if told else subprocess.DEVNULL,
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
    usual = ended([sys.executable, *words], tmp_path, None, PYTHONSAFEPATH=safe)
    spare = ended(spare_of(*words), tmp_path, json.dumps({"RANK": "7"}), PYTHONSAFEPATH=safe)
    assert (usual.returncode, spare.returncode) == (3, 3), usual.stderr + spare.stderr
    assert json.loads(spare.stdout) == json.loads(usual.stdout)


def test_errors_of_a_program_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("import os\n\n1 / 0\n")
    done = ended(spare_of("wrong.py"), tmp_path, "{}")
    assert done.returncode == 1
    assert 'wrong.py", line 3, in <module>\n    1 / 0' in done.stderr
    for words, said in ((["none.py"], "can't open file none.py"), (["-m", "none"], "named none")):
        done = ended(spare_of(*words), tmp_path, "{}")
        assert done.returncode == 1
        assert said in done.stderr


def test_a_spare_that_is_not_needed_ends(tmp_path: Path) -> None:
    (tmp_path / "runs.py").write_text("print('runs')")
    process = subprocess.Popen(
        spare_of("runs.py"),
        cwd=tmp_path,
        env=with_package(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    said, _ = process.communicate(timeout=120)  # stdin ends, as where the launcher is killed
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
        [sys.executable, "-m", "gossamer", "launch", "-n", "1", "--spares", "1", "--", *command],
        Path.cwd(),
        None,
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
    assert some.take({}) is None
    assert "ended by itself with exit code 1" in capsys.readouterr().err
    some.look()
    assert some.take({}) is None


def test_each_is_taken_once_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spares, "_PAUSE_S", 0.0)
    code = "import os, sys; open(os.path.join(*sys.argv[1:]), 'w').write(sys.stdin.read())"
    some = spares.Spares(1, [sys.executable, "-c", code, str(tmp_path), "a"], {})
    assert some.take({"RANK": "0"}) is None
    some.look()
    some.look()
    taken = some.take({"RANK": "2"})
    assert taken is not None
    assert some.take({"RANK": "1"}) is None
    assert taken.wait(60) == 0
    assert json.loads((tmp_path / "a").read_text()) == {"RANK": "2"}
    some.look()
    some.end()
    assert some.take({"RANK": "1"}) is None
