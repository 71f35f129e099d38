"""Loads the extension, or says why that cannot work here."""

import sysconfig
from pathlib import Path

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


def _minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def _why_not_loaded(error: ImportError) -> str:
    folder = Path(__file__).parent
    found = [path.name for path in sorted(folder.glob("_core.*.so"))]
    wanted = f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not found:
        return (
            f"[gossamer] {folder} has no extension, so it holds sources only; build with `make "
            "build` and put build/python on the path, or install with `pip install "
            "--no-build-isolation .`"
        )
    if wanted not in found:
        return f"[gossamer] built for another Python: want {wanted}, got {found}; {_REINSTALL}"
    return f"[gossamer] the extension does not load, got: {error}; {_REINSTALL}"


def check_torch() -> None:
    """Raises ImportError when torch is of another minor version than the one built for."""
    if _minor(_built.TORCH_VERSION) != _minor(torch.__version__):
        raise ImportError(
            f"[gossamer] built for torch {_built.TORCH_VERSION}, got torch {torch.__version__}; "
            f"install torch {_minor(_built.TORCH_VERSION)}, or {_REINSTALL}"
        )


try:
    from gossamer import _built

    check_torch()  # before the extension is loaded, which would fail with less clear words
    from gossamer import _core  # noqa: F401
except ImportError as error:
    if str(error).startswith("[gossamer]"):
        raise
    raise ImportError(_why_not_loaded(error)) from error
