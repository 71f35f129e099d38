"""Lightning itself: ``lightning.pytorch`` or ``pytorch_lightning``."""

from __future__ import annotations

import contextlib
import importlib
import sys
from types import ModuleType
from typing import Any

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _lightning() -> ModuleType:
    """The package that is imported already, else the first that is installed."""
    for name in _PACKAGES:
        if name in sys.modules:
            return sys.modules[name]
    for name in _PACKAGES:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    raise ModuleNotFoundError(
        "[gossamer.lightning] neither lightning nor pytorch_lightning is installed; "
        "run `pip install lightning`"
    )


def module(name: str) -> Any:
    """One of its modules, such as ``strategies``."""
    return importlib.import_module(f"{_lightning().__name__}.{name}")
