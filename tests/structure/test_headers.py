"""Every header compiles alone, and no two of them give two types one name."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from layers import SEES_TORCH
from project import ROOT, project_files, relative

EIGEN = "/usr/include/eigen3"  # where Debian and Ubuntu put it
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror"]
FOLDERS = [f"-I{ROOT}", "-isystem", EIGEN]
# As in cmake/GossamerLayer.cmake; a precompiled header is known by the file beside it.
CCACHE = {
    "CCACHE_SLOPPINESS": "pch_defines,time_macros",
    "CCACHE_DEPEND": "1",
    "CCACHE_BASEDIR": str(ROOT),
    "CCACHE_NOHASHDIR": "1",
    "CCACHE_PCH_EXTSUM": "1",
}
# The headers that cost seconds per file: each is precompiled for the headers that include it.
HEAVY = ("torch/csrc/utils/pybind.h", "ATen/core/Tensor.h")


def torch_flags() -> list[str]:
    """Where libtorch's headers are; found without the seconds that importing torch takes."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None, "torch is not installed; run make setup"
    folder = Path(spec.origin).parent / "include"
    python = ["-isystem", sysconfig.get_path("include")]
    return [*python, "-isystem", str(folder), "-isystem", str(folder / "torch/csrc/api/include")]


def compiler(*flags: str) -> subprocess.CompletedProcess[str]:
    """Through ccache where it is installed: most headers are as they were."""
    command = [os.environ.get("CXX", "g++"), *FLAGS, *FOLDERS, *flags]
    if "-c" in flags and (ccache := shutil.which("ccache")):
        command = [ccache, *command]
    return subprocess.run(
        command,
        env={**os.environ, **CCACHE},
        capture_output=True,
        text=True,
        check=False,
    )


@cache
def all_includes(header: Path) -> frozenset[str]:
    """What the header and those headers of ours that it includes have between <>."""
    text = header.read_text()
    found = set(re.findall(r"^#include <(.+?)>", text, re.MULTILINE))
    for name in re.findall(r'^#include "(.+?)"', text, re.MULTILINE):
        if (ROOT / name).exists():
            found |= all_includes(ROOT / name)
    return frozenset(found)


def precompile(name: str, flags: list[str], folder: Path) -> list[str]:
    """The flags with which a source begins as if it included <name>."""
    copy = folder / name.replace("/", "_")
    copy.write_text(f"#include <{name}>\n")
    done = compiler(*flags, "-x", "c++-header", str(copy), "-o", f"{copy}.gch")
    assert done.returncode == 0, done.stderr
    # In place of the file's own bytes, which no two runs of the compiler give alike.
    version = metadata.version("torch") + compiler("--version").stdout
    told = f"{version} {flags} {FLAGS} {name}".replace(str(ROOT), "")  # clones have the same
    digest = hashlib.sha256(told.encode()).hexdigest()
    Path(f"{copy}.gch.sum").write_text(digest)
    return ["-Winvalid-pch", "-fpch-preprocess", "-include", str(copy)]


def compile_alone(header: Path, flags: list[str], folder: Path) -> str:
    """What the compiler says about a source that includes only this header, twice."""
    source = folder / (relative(header).replace("/", "_") + ".cpp")
    line = f'#include "{relative(header)}"\n'
    source.write_text(line + line)
    done = compiler("-c", "-MD", *flags, str(source), "-o", f"{source}.o")
    return "" if done.returncode == 0 else f"{relative(header)}\n{done.stderr[:2000]}"


def failures(headers: list[Path], flags: list[str], folder: Path) -> list[str]:
    precompiled = {}
    for name in HEAVY:
        if any(name in all_includes(header) for header in headers):
            precompiled[name] = precompile(name, flags, folder)

    def try_header(header: Path) -> str:
        heavy = next((name for name in precompiled if name in all_includes(header)), None)
        return compile_alone(header, flags + precompiled.get(heavy or "", []), folder)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [text for text in pool.map(try_header, headers) if text]


def needs_torch(header: Path) -> bool:
    path = relative(header)
    return path.startswith(("bindings/", "tests/device/")) or SEES_TORCH.match(path) is not None


def compiled_by_the_build(header: Path) -> bool:
    """Whether the build compiles it alone already: its own source begins with it, which
    test_files.py checks. The layers over torch precompile headers, which hides what is missing."""
    return header.with_suffix(".cpp").exists() and not needs_torch(header)


@pytest.fixture
def folder() -> Path:
    """The same in every run, for ccache."""
    place = ROOT / "build" / "headers"
    place.mkdir(parents=True, exist_ok=True)
    return place


def test_every_header_compiles_alone(folder: Path) -> None:
    headers = [path for path in project_files(".h") if not needs_torch(path)]
    alone = [path for path in headers if not compiled_by_the_build(path)]
    assert 0 < len(alone) < len(headers)
    assert failures(alone, [], folder) == []


def test_every_header_over_torch_compiles_alone(folder: Path) -> None:
    """And one that does not is found, although others have the precompiled header it lacks."""
    headers = [path for path in project_files(".h") if needs_torch(path)]
    lacking = ROOT / "build" / "lacks_an_include.h"
    lacking.write_text("#pragma once\nat::Tensor tensor();\n")
    try:
        said = failures([*headers, lacking], torch_flags(), folder)
    finally:
        lacking.unlink()
    assert [text.splitlines()[0] for text in said] == [relative(lacking)], "\n".join(said)


def test_a_name_means_one_type() -> None:
    """Two types of one name in one program share what the compiler makes of templates over them."""
    places: dict[str, set[str]] = {}
    for header in project_files(".h"):
        space = ""
        for line in header.read_text().splitlines():
            if found := re.match(r"namespace ([\w:]+) \{", line):
                space = found[1]
            if found := re.match(r"(?:struct|class) (\w+)[^;]*\{", line):
                places.setdefault(f"{space}::{found[1]}", set()).add(relative(header))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_a_name_is_a_class_or_a_struct() -> None:
    """g++ takes a declaration with the other word; clang, which builds the fuzzer, does not."""
    words: dict[str, set[str]] = {}
    for header in project_files(".h"):
        for word, name in re.findall(
            r"^(class|struct) (\w+)(?=;| [^;\n]*\{)", header.read_text(), re.MULTILINE
        ):
            words.setdefault(name, set()).add(word)
    assert {name: found for name, found in words.items() if len(found) > 1} == {}
