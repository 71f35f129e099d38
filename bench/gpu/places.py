"""Where the package and the device of the tests are; import it before the package."""

import importlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, os.environ.get("GOSSAMER_PYTHON_PATH", str(ROOT / "build" / "python")))


def make_known(device: str) -> None:
    """Makes the name of the tests' device known, if it is asked for."""
    if device.startswith("testdev"):
        sys.path.insert(0, str(ROOT / "tests" / "python"))
        importlib.import_module("device_backend").install()
