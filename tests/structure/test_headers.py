"""Every header compiles alone."""

import importlib.util
import os
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from project import ROOT, project_files, relative

EIGEN = "/usr/include/eigen3"  # where Debian and Ubuntu put it
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
FOLDERS = [f"-I{ROOT}", "-isystem", EIGEN]


def torch_flags() -> list[str]:
    """Where libtorch's headers are; found without the seconds that importing torch takes."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None, "torch is not installed; run make setup"
    folder = Path(spec.origin).parent / "include"
    python = ["-isystem", sysconfig.get_path("include")]
    return [*python, "-isystem", str(folder), "-isystem", str(folder / "torch/csrc/api/include")]


def compile_alone(header: Path, flags: list[str], folder: Path) -> str:
    """What the compiler says about a source that includes only this header, twice."""
    source = folder / (relative(header).replace("/", "_") + ".cpp")
    line = f'#include "{relative(header)}"\n'
    source.write_text(line + line)
    command = [os.environ.get("CXX", "g++"), *FLAGS, *FOLDERS, *flags, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"{relative(header)}\n{done.stderr[:2000]}"


def failures(headers: list[Path], flags: list[str], folder: Path) -> list[str]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = pool.map(lambda header: compile_alone(header, flags, folder), headers)
        return [text for text in said if text]


def needs_torch(header: Path) -> bool:
    return relative(header).startswith(("gossamer/torch/", "gossamer/cli/train", "bindings/"))


def test_every_header_compiles_alone(tmp_path: Path) -> None:
    headers = [path for path in project_files(".h") if not needs_torch(path)]
    assert headers
    assert failures(headers, [], tmp_path) == []


def test_every_header_over_torch_compiles_alone(tmp_path: Path) -> None:
    headers = [path for path in project_files(".h") if needs_torch(path)]
    assert failures(headers, torch_flags(), tmp_path) == []
