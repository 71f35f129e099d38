"""Loads the extension, or says why that cannot work here."""

import torch


def _minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def explain(error: ImportError) -> ImportError:
    """What to do about an extension that does not load."""
    return ImportError(
        f"[gossamer] the extension does not load with torch {torch.__version__}: {error}; "
        "it must be built for the torch it runs with: reinstall it with "
        "`pip install --no-build-isolation --force-reinstall .`"
    )


try:
    from gossamer import _core
except ImportError as error:
    raise explain(error) from error


def check_torch() -> None:
    """Raises ImportError when torch is of another minor version than the one built for."""
    if _minor(_core.__torch_version__) != _minor(torch.__version__):
        raise ImportError(
            f"[gossamer] built for torch {_core.__torch_version__}, got torch "
            f"{torch.__version__}; reinstall gossamer with "
            "`pip install --no-build-isolation --force-reinstall .`"
        )
