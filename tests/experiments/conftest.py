"""Where the modules of experiments/ are, and the fixtures of this folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "experiments"))

from workbench import bench

__all__ = ["bench"]
