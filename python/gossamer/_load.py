"""Loads the extension for the torch that is there, or says why none can be loaded."""

import sys
import sysconfig
from collections.abc import Iterable

from gossamer import _series

_REINSTALL = (
    "reinstall Gossamer from its folder with "
    "`pip install --no-build-isolation --no-deps --force-reinstall .`"
)

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "[gossamer] torch is missing; install the one that Gossamer is to be built for, see "
        "docs/install.md"
    ) from error


def _listed(names: Iterable[str], link: str) -> str:
    *others, last = names
    return f"{', '.join(others)} {link} {last}" if others else last


def check_build() -> None:
    """Raises ImportError where nothing is built for this torch, or for this Python."""
    built = _series.built()
    if not built:
        raise ImportError(
            f"[gossamer] {_series.PACKAGE} has no extension, so it holds sources only; build with "
            "`make build` and put build/python on the path, or install with `pip install "
            "--no-build-isolation .`"
        )
    series = _series.series_of(torch.__version__)
    if series not in built:
        raise ImportError(
            f"[gossamer] built for torch {_listed(built, 'and')}, got torch {torch.__version__}; "
            f"install torch {_listed(built, 'or')}, or {_REINSTALL}"
        )
    wanted = f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    if wanted not in built[series]:
        raise ImportError(
            f"[gossamer] built for another Python: want {wanted}, got {built[series]}; {_REINSTALL}"
        )


check_build()  # before the extension is loaded, which would fail with less clear words
sys.modules["gossamer"].__path__.insert(0, str(_series.folder_of(torch.__version__)))
try:
    from gossamer import _core  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"[gossamer] the extension does not load, got: {error}; {_REINSTALL}"
    ) from error
