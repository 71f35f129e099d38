"""Loss over wall time, one curve per contender, one picture per setting."""

import importlib
import importlib.util
from pathlib import Path
from typing import Any


def missing() -> str:
    """Why there can be no picture; empty if there can."""
    if importlib.util.find_spec("matplotlib"):
        return ""
    return "needs matplotlib, which is not installed; pip install matplotlib"


def draw(about: dict[str, Any], path: Path) -> None:
    """Writes the curves of everything that run.py found. Settings are side by side."""
    importlib.import_module("matplotlib").use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    settings = about["settings"]
    figure, axes = pyplot.subplots(
        1, len(settings), figsize=(8 * len(settings), 5), squeeze=False, layout="constrained"
    )
    for axis, each in zip(axes[0], settings, strict=True):
        good = [row for row in each["rows"] if row["status"] == "ok"]
        for row in good:
            seconds = [point["seconds"] for point in row["curve"][1:]]
            losses = [point["loss"] for point in row["curve"][1:]]
            style = "--" if row["contender"].startswith("decent-dp") else "-"
            is_base = row["contender"] == "ddp"
            axis.plot(
                seconds,
                losses,
                style,
                color="black" if is_base else None,
                linewidth=2.0 if is_base else 1.3,
                label=f"{row['contender']} (lr {row['lr']:g})",
            )
        if each["target"] is not None:
            axis.axhline(each["target"], color="grey", linewidth=0.8, linestyle=":")
        setting = each["setting"]
        axis.set_title(f"{setting['name']}: {setting['hosts']} workers, gamma {setting['gamma']:g}")
        axis.set_xlabel("seconds of training")
        axis.set_ylabel("validation loss of the mean model, nats per byte")
        axis.legend()
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
