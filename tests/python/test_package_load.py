"""What the import says where the extension cannot work."""

import re
import shutil
import sysconfig
from pathlib import Path

import pytest
import torch
from conftest import ROOT
from package_runs import PACKAGE, run

from gossamer import _core, _series

IMPORT = "import gossamer; print('loaded')"
EXTENSION = f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
THIS = ".".join(_core.__torch_version__.split(".")[:2])


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


def make_series(sources: Path, *series: str) -> None:
    """As if the package had extensions for these series of torch."""
    for each in series:
        folder = sources / "gossamer" / f"torch_{each.replace('.', '_')}"
        folder.mkdir()
        (folder / EXTENSION).write_text("no library")


def said(code: str, path: Path = PACKAGE.parent) -> str:
    """The message of the ImportError that the code ends with."""
    done = run(["-c", code], path=path)
    assert done.returncode != 0, done.stdout
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: [gossamer]"), done.stderr
    return last


@pytest.mark.parametrize("step", [-1, 1])
def test_another_minor_version_of_torch_is_refused(step: int) -> None:
    first, second = minor(THIS)
    other = f"{first}.{second + step}.0+cpu"
    message = said(import_as_torch(other))
    assert f"built for torch {THIS}, got torch {other}" in message
    assert f"install torch {THIS}, or" in message
    assert "pip install" in message


def test_all_series_that_there_are_are_named(sources: Path) -> None:
    make_series(sources, "2.8", "2.10", "2.9")
    message = said(import_as_torch("2.11.1+cpu"), sources)
    assert "built for torch 2.8, 2.9 and 2.10, got torch 2.11.1+cpu" in message
    assert "install torch 2.8, 2.9 or 2.10, or" in message


def test_of_several_series_that_of_torch_is_loaded(sources: Path) -> None:
    make_series(sources, "1.0", "99.0")
    link = sources / "gossamer" / f"torch_{THIS.replace('.', '_')}"
    link.symlink_to(Path(_core.__file__).parent)
    (sources / "gossamer" / "__init__.py").write_text("from gossamer import _load")
    done = run(["-c", IMPORT], path=sources)
    assert done.stdout == "loaded\n", done.stderr
    assert "does not load" in said(import_as_torch("99.0.1"), sources)


def test_another_patch_of_torch_is_taken() -> None:
    first, second = minor(THIS)
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
    make_series(sources, THIS)
    folder = sources / "gossamer" / f"torch_{THIS.replace('.', '_')}"
    other = (folder / EXTENSION).rename(folder / "_core.cpython-39-x86_64-linux-gnu.so")
    message = said(IMPORT, sources)
    assert "another Python" in message
    assert other.name in message


def test_an_extension_that_does_not_load_is_explained(sources: Path) -> None:
    make_series(sources, THIS)
    message = said(IMPORT, sources)
    assert "does not load" in message
    assert EXTENSION in message, "what the loader said"
    assert "pip install" in message


def test_what_is_known_before_loading_is_what_was_built() -> None:
    assert list(_series.built()) == [THIS]
    assert Path(_core.__file__).parent == _series.folder_of(torch.__version__)


def test_every_file_asks_for_the_same_torch() -> None:
    """The series that the build takes are those that pip takes; the tests run with the first."""
    text = (ROOT / "cmake" / "FindTorchInVenv.cmake").read_text()
    tried = re.search(r"SERIES_TRIED ([\d. ]+)\)", text)
    assert tried is not None
    series = tried[1].split()
    first, last = minor(series[0]), minor(series[-1])
    asked = f'"torch>={series[0]},<{last[0]}.{last[1] + 1}"'
    assert asked in (ROOT / "pyproject.toml").read_text()
    assert minor(THIS) == first
    for name in ("tools/requirements.txt", "cmake/FindTorchInVenv.cmake"):
        assert re.findall(r"torch==(\d+\.\d+)", (ROOT / name).read_text()) == [series[0]], name
