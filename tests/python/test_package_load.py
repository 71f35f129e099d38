"""What the import says where the extension cannot work."""

import re
import shutil
import sysconfig
from pathlib import Path

import pytest
from conftest import ROOT
from package_runs import PACKAGE, run

from gossamer import _built, _core

IMPORT = "import gossamer; print('loaded')"


def import_as_torch(version: str) -> str:
    return f"import torch; torch.__version__ = {version!r}; {IMPORT}"


def minor(version: str) -> tuple[int, int]:
    first, second = version.split(".")[:2]
    return int(first), int(second)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The package's Python files without the extension; the path to import them from."""
    (tmp_path / "gossamer").mkdir()
    for file in PACKAGE.glob("*.py"):
        shutil.copy(file, tmp_path / "gossamer")
    return tmp_path


def said(code: str, path: Path = PACKAGE.parent) -> str:
    """The message of the ImportError that the code ends with."""
    done = run(["-c", code], path=path)
    assert done.returncode != 0, done.stdout
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: [gossamer]"), done.stderr
    return last


@pytest.mark.parametrize("step", [-1, 1])
def test_another_minor_version_of_torch_is_refused(step: int) -> None:
    first, second = minor(_built.TORCH_VERSION)
    other = f"{first}.{second + step}.0+cpu"
    message = said(import_as_torch(other))
    assert f"got torch {other}" in message
    assert f"built for torch {_built.TORCH_VERSION}" in message
    assert "pip install" in message


def test_another_patch_of_torch_is_taken() -> None:
    first, second = minor(_built.TORCH_VERSION)
    done = run(["-c", import_as_torch(f"{first}.{second}.99+elsewhere")])
    assert done.stdout == "loaded\n", done.stderr


def test_a_missing_torch_is_named() -> None:
    assert "torch is missing" in said(f"import sys; sys.modules['torch'] = None; {IMPORT}")


def test_sources_without_an_extension_say_how_to_build_it(sources: Path) -> None:
    message = said(IMPORT, sources)
    assert str(sources / "gossamer") in message
    assert "make build" in message
    assert "pip install" in message


def test_an_extension_for_another_python_is_named(sources: Path) -> None:
    other = sources / "gossamer" / "_core.cpython-39-x86_64-linux-gnu.so"
    other.touch()
    message = said(IMPORT, sources)
    assert "another Python" in message
    assert other.name in message


def test_an_extension_that_does_not_load_is_explained(sources: Path) -> None:
    broken = f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    (sources / "gossamer" / broken).write_text("no library")
    message = said(IMPORT, sources)
    assert "does not load" in message
    assert broken in message, "what the loader said"
    assert "pip install" in message


def test_what_is_known_before_loading_is_what_was_built() -> None:
    assert minor(_built.TORCH_VERSION) == minor(_core.__torch_version__)


def test_every_file_asks_for_the_same_torch() -> None:
    first, second = minor(_built.TORCH_VERSION)
    pattern = r"torch==(\d+)\.(\d+)|TORCH_SERIES \"(\d+)\.(\d+)\""
    for name in ("pyproject.toml", "tools/requirements.txt", "cmake/FindTorchInVenv.cmake"):
        asked = re.findall(pattern, (ROOT / name).read_text())
        assert asked, name
        assert {"".join(match) for match in asked} == {f"{first}{second}"}, name
