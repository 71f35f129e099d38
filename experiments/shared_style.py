"""The style of the package's charts, without the package's own import, which needs torch."""

import importlib
import sys

from grid import FOLDER

sys.path.append(str(FOLDER.parent / "python"))
importlib.import_module("gossamer_command").without_torch()
style = importlib.import_module("gossamer.report.style")
wrapped = importlib.import_module("gossamer.report.chart_text").wrapped
