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
    """Writes the curves of everything that run.py found. Settings are side by side; before them
    are the losses over steps, if all settings train the same."""
    importlib.import_module("matplotlib").use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    settings = about["settings"]
    panels = [(each, "seconds") for each in settings]
    if _is_one_training(settings):
        panels = [(settings[0], "steps"), *panels]
    figure, axes = pyplot.subplots(
        1,
        len(panels),
        figsize=((8 if len(panels) < 3 else 5) * len(panels), 5),
        squeeze=False,
        sharey=len(panels) > len(settings),
        layout="constrained",
    )
    for axis, (each, over) in zip(axes[0], panels, strict=True):
        _panel(axis, each, over)
    axes[0][0].set_ylabel("validation loss of the mean model, nats per byte")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _is_one_training(settings: list[dict[str, Any]]) -> bool:
    """Whether they differ in their links alone."""
    kinds = [{**each["setting"], "name": "", "gamma": 0} for each in settings]
    return len(kinds) > 1 and all(kind == kinds[0] for kind in kinds)


def _panel(axis: Any, each: dict[str, Any], over: str) -> None:
    for row in each["rows"]:
        if row["status"] != "ok":
            continue
        points = row["curve"][1:]
        is_base = row["contender"] == "ddp"
        axis.plot(
            [point[over] for point in points],
            [point["loss"] for point in points],
            "--" if row["contender"].startswith("decent-dp") else "-",
            color="black" if is_base else None,
            linewidth=2.0 if is_base else 1.3,
            label=f"{row['contender']} (lr {row['lr']:g})",
        )
    if each["target"] is not None:
        axis.axhline(each["target"], color="grey", linewidth=0.8, linestyle=":")
    setting = each["setting"]
    if over == "steps":
        axis.set_title(f"{setting['hosts']} workers, after equally many steps")
        axis.set_xlabel("steps")
    else:
        axis.set_title(f"{setting['name']}: {setting['hosts']} workers, gamma {setting['gamma']:g}")
        axis.set_xlabel("seconds of training")
    axis.legend()
    axis.grid(alpha=0.3)
