"""The package as it was built: build/python, or where GOSSAMER_PYTHON_PATH says."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, os.environ.get("GOSSAMER_PYTHON_PATH", str(ROOT / "build" / "python")))
