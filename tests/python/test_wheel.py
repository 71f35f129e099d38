"""The wheel of the build, as somebody without a compiler installs it beside torch."""

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomllib
import torch
import yaml
from conftest import ROOT

from gossamer import _series

BUILD = ROOT / "build"
SERIES = _series.series_of(torch.__version__)
FOLDER = _series.folder_of(torch.__version__).name
TORCH = Path(torch.__file__).parents[1]
EXAMPLE = ROOT / "examples" / "text_gossip.py"
LIMIT_S = 300
# Of every Linux, by PEP 600, and those of torch.
SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libz)\.so|ld-linux")
OF_TORCH = re.compile(r"lib(torch|torch_cpu|torch_python|c10)\.so")


def make_wheel(out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "wheel.py"), str(BUILD), "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The wheel, and what was said."""
    out = tmp_path_factory.mktemp("wheel")
    done = make_wheel(out)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel, done.stdout


class Environment:
    """Of Python, with the wheel and, from elsewhere, torch; nothing of the build or of a compiler
    can be found."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.bin = folder / "bin"
        self.packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.packages /= "site-packages"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install"]
        subprocess.run([*pip, "-q", "--no-deps", "--no-index", str(wheel)], check=True)
        (self.packages / "torch.pth").write_text(f"{TORCH}\n")

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            env={"PATH": str(self.bin), "OMP_NUM_THREADS": "1", **kept, **variables},
            cwd=self.bin,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )


@pytest.fixture(scope="module")
def installed(
    made: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Environment]:
    yield Environment(tmp_path_factory.mktemp("environment"), made[0])


def test_pip_reads_for_which_python_and_which_torch_it_is(made: tuple[Path, str]) -> None:
    wheel, said = made
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert re.fullmatch(rf"gossamer-[\d.]+-{python}-{python}-manylinux_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("dist-info/METADATA"))
        text = archive.read(name).decode()
    major, minor = SERIES.split(".")
    assert f"Requires-Dist: torch<{major}.{int(minor) + 1},>={SERIES}\n" in text
    assert "License-File: LICENSE\n" in text
    assert f"for torch {SERIES}," in said


def test_it_says_which_symbols_older_systems_lack(made: tuple[Path, str]) -> None:
    wheel, said = made
    oldest = re.search(r"manylinux_2_(\d+)", wheel.name)
    assert oldest is not None
    assert (int(oldest[1]) > 28) == ("beyond manylinux_2_28, libc.so.6: GLIBC_2." in said)


def test_all_libraries_are_in_it_or_of_every_linux(installed: Environment) -> None:
    inside = {path.name for path in (installed.packages / "gossamer.libs").iterdir()}
    assert any(name.startswith("libcrypto") for name in inside)
    for path in (installed.packages / "gossamer").rglob("*"):
        if path.is_dir() or path.read_bytes()[:4] != b"\x7fELF":
            continue
        done = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
        for needed in re.findall(r"NEEDED.*\[(.*)\]", done.stdout):
            known = needed in inside or SYSTEM.match(needed) or OF_TORCH.match(needed)
            assert known, f"{path.name} needs {needed}"
        assert str(ROOT) not in done.stdout, f"{path.name} looks where it was built"


def test_the_package_and_the_command_are_those_of_the_wheel(installed: Environment) -> None:
    code = "import gossamer; print(gossamer.__file__, gossamer._core.__file__)"
    done = installed.run("python", "-c", code)
    package = installed.packages / "gossamer"
    files = [str(package / "__init__.py"), str(package / FOLDER)]
    assert [done.stdout.startswith(files[0]), files[1] in done.stdout] == [True, True], done.stderr
    assert installed.run("gossamer", "topology", "--list").stdout != ""
    facts = installed.run("gossamer", "doctor")
    assert facts.returncode == 0, facts.stderr
    assert "built for torch" in facts.stdout


def test_the_demo_trains_and_names_the_command_as_typed(installed: Environment) -> None:
    done = installed.run("gossamer", "demo", "--steps", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "AER AccumAdamW" in done.stdout
    assert "\n  gossamer demo --gamma" in done.stdout
    assert "build/bin" not in done.stdout


def test_an_example_trains(installed: Environment) -> None:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = installed.run("python", *launcher, str(EXAMPLE), "--steps", "20")
    assert done.returncode == 0, done.stderr
    assert "loss" in done.stdout


def test_another_torch_gets_one_sentence(installed: Environment) -> None:
    code = "import torch; torch.__version__ = '2.12.1'; import gossamer"
    done = installed.run("python", "-c", code)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: [gossamer]"), done.stderr
    assert f"built for torch {SERIES}, got torch 2.12.1; install torch {SERIES}" in last


def test_a_command_that_trains_names_the_missing_torch(installed: Environment) -> None:
    hidden = installed.packages / "torch.pth"
    text = hidden.read_text()
    hidden.unlink()
    try:
        done = installed.run("gossamer", "demo")
    finally:
        hidden.write_text(text)
    assert (done.returncode, done.stdout) == (2, "")
    assert "[demo] this package has nothing that trains with the torch that is here" in done.stderr
    assert "says which torch it needs" in done.stderr


def test_the_same_build_gives_the_same_bytes(made: tuple[Path, str], tmp_path: Path) -> None:
    assert make_wheel(tmp_path).returncode == 0
    (again,) = tmp_path.glob("*.whl")
    assert again.read_bytes() == made[0].read_bytes()


def test_a_build_for_another_python_is_named(tmp_path: Path) -> None:
    script = tmp_path / "cmake_install.cmake"
    script.write_text(
        'file(WRITE "${CMAKE_INSTALL_PREFIX}/torch_9_9/_core.cpython-39-x86_64-linux-gnu.so" "x")'
    )
    command = [sys.executable, str(ROOT / "tools" / "wheel.py"), str(tmp_path)]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "[wheel] all builds must be for this Python" in done.stderr
    assert "_core.cpython-39" in done.stderr
    assert str(tmp_path) in done.stderr


def test_the_workflow_makes_and_tries_the_wheels_of_all_that_pip_takes() -> None:
    """Series of torch and versions of Python are those of the package's own conditions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    jobs = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text())["jobs"]
    build, tried = (jobs[name]["strategy"]["matrix"] for name in ("build", "try"))
    assert build["python"] == tried["python"]
    assert project["requires-python"] == f">={build['python'][0]}"
    (command,) = (step["run"] for step in jobs["build"]["steps"] if "wheels.sh" in str(step))
    versions = re.findall(r"\b2\.\d+\.\d+", command)
    assert versions == [str(version) for version in tried["torch"]]
    series = [tuple(map(int, version.split(".")[:2])) for version in versions]
    (bounds,) = (each for each in project["dependencies"] if each.startswith("torch"))
    assert bounds == f"torch>=2.{series[0][1]},<2.{series[-1][1] + 1}"
