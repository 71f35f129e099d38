"""Commands of the program that draw: what they print does not need Python, what they draw does."""

import json
import shutil
from pathlib import Path

import pytest
from package_runs import PACKAGE, started

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

QUICK = "--hosts 6 --samples 50 --dimension 3 --steps 200 --record-every 100"


@pytest.fixture
def without_torch(tmp_path: Path) -> str:
    """A path to import from on which torch cannot be imported."""
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "torch.py").write_text("raise AssertionError('torch was imported')")
    return str(folder)


def test_a_figure_is_printed_and_drawn(tmp_path: Path, without_torch: str) -> None:
    command = f"lab figure exact_averaging --out {tmp_path}/new/figures"
    done = started(command, PYTHONPATH=without_torch)
    picture = tmp_path / "new" / "figures" / "exact_averaging.svg"
    assert (done.returncode, done.stderr.splitlines()[1:]) == (0, [f"wrote {picture}"])
    assert "base_k" in done.stdout
    text = picture.read_text()
    assert text.startswith("<svg")
    assert "what is left of a disagreement, at worst" in text
    printed = started(command + " --json", PYTHONPATH=without_torch)
    assert len(json.loads(printed.stdout)["charts"][0]["series"]) == 6
    assert picture.read_text() == text, "the same figure gives the same bytes"


def test_a_run_and_a_model_are_drawn_where_it_is_told(tmp_path: Path) -> None:
    sigma = "\N{GREEK SMALL LETTER SIGMA}"
    cases = {
        f"lab run {QUICK} --json --svg": ["allreduce", "atc@ring", "MSE"],
        "theory speedup --hosts 4 --omega 1,0.5 --sigma 0,0.1 --steps 20 --json --figure": [
            *("Speed-up over all-reduce", f"{sigma} = 0", f"{sigma} = 0.1", "ω = 1", "ω = 0.5"),
        ],
    }
    for command, words in cases.items():
        done = started(f"{command} picture.svg", cwd=str(tmp_path))
        assert (done.returncode, done.stderr) == (0, "wrote picture.svg\n")
        json.loads(done.stdout)
        text = (tmp_path / "picture.svg").read_text()
        assert [word for word in words if word not in text] == []


def test_a_paper_gets_a_pdf_and_a_caption_that_names_all_settings(tmp_path: Path) -> None:
    def made(name: str) -> bytes:
        done = started(f"lab run {QUICK} --pdf {name}.pdf", cwd=str(tmp_path))
        assert (done.returncode, done.stderr) == (0, f"wrote {name}.pdf\nwrote {name}.txt\n")
        return (tmp_path / f"{name}.pdf").read_bytes()

    pdf = made("a")
    assert pdf.startswith(b"%PDF-")
    assert made("b") == pdf, "the same figure gives the same bytes"
    caption = (tmp_path / "a.txt").read_text()
    assert caption.count("\n") == 1
    for word in ("MSE: ", "logistic on ", "batch 1", "heterogeneity 0", "lr 0.1", "atc@ring"):
        assert word in caption, word


def test_a_library_that_is_missing_is_named_after_the_table(
    tmp_path: Path, without_torch: str
) -> None:
    missing = "raise ModuleNotFoundError('gone', name='matplotlib')"
    Path(without_torch, "matplotlib.py").write_text(missing)
    done = started(f"lab run {QUICK} --svg {tmp_path}/a.svg", PYTHONPATH=without_torch)
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 4
    assert done.stderr.startswith("[lab run] matplotlib is missing, got Python ")
    assert "-m pip install matplotlib jinja2" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "a.svg").exists()


def test_modules_of_the_current_folder_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise AssertionError('imported')")
    done = started(f"lab run {QUICK} --svg a.svg", cwd=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "wrote a.svg\n")


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build whose environment has what a test puts there for Python."""
    for folder in ("build/bin", "build/python", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(PACKAGE / "bin" / "gossamer", tmp_path / "build" / "bin")
    (tmp_path / "build" / "python" / "gossamer_command.py").touch()
    return tmp_path


def test_without_python_the_table_is_printed(build: Path) -> None:
    program = build / "build" / "bin" / "gossamer"
    done = started(f"lab run {QUICK} --svg {build}/a.svg", program, PATH="/nowhere")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 4)
    assert done.stderr == (
        "[lab run] cannot start Python: No such file or directory, got python3; install Python "
        "3.10 or newer with matplotlib and Jinja2\n"
    )


def test_a_python_that_is_killed_is_reported(build: Path) -> None:
    python = build / ".venv" / "bin" / "python3"
    python.write_text("#!/bin/sh\nkill -9 $$\n")
    python.chmod(0o755)
    program = build / "build" / "bin" / "gossamer"
    done = started(f"lab run {QUICK} --svg {build}/a.svg", program)
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 4)
    assert done.stderr.startswith("[lab run] Python did not draw the pictures, got signal Killed")
