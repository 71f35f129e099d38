"""Average precision of the detectors against steps: a panel per method, beside parallel SGD.

    .venv/bin/python experiments/detection_figure.py

Writes figures/detection_steps.svg and .png from results/detection.jsonl.
"""

import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import detection
import figures
import records
from grid import FOLDER
from matplotlib.figure import Figure
from plan import Record
from shared_style import style

AP50 = 3  # its place in a point of a record's curve
LABELS = {"exponential": "static", "one_peer_exponential": "one-peer"}
TITLE = "Detection: a small RetinaNet on digits, 8 workers, 3 seeds, mean and range"


def curve_of(of_a_cell: Sequence[Record], label: str, number: int) -> figures.Curve:
    """Over the seeds of a method and graph; `number`: which of the colours, 0: all-reduce's."""
    by_step: dict[int, list[float]] = {}
    for record in of_a_cell:
        for point in record["curve"]:
            by_step.setdefault(point[0], []).append(point[AP50])
    values = list(by_step.values())
    return figures.Curve(
        label=label,
        colour=figures.COLOURS[number],
        dashes="-" if number == 0 else style.DASHES[number - 1],
        x=[float(step) for step in by_step],
        mean=[statistics.mean(each) for each in values],
        least=[min(each) for each in values],
        most=[max(each) for each in values],
    )


def panels(done: Iterable[Record]) -> list[figures.Panel]:
    here = [each for each in done if each["settings"] == detection.SETTINGS[detection.RETINANET]]

    def curve(method: str, graph: str, label: str, number: int) -> figures.Curve:
        own = [each for each in here if (each["method"], each["topology"]) == (method, graph)]
        return curve_of(own, label, number)

    base = curve(detection.ALL_REDUCE, "", "parallel SGD", 0)
    return [
        figures.Panel(
            detection.TITLES[method],
            [base, *(curve(method, graph, LABELS[graph], k) for k, graph in enumerate(LABELS, 1))],
        )
        for method in detection.METHODS
    ]


def draw(drawn: Sequence[figures.Panel]) -> Figure:
    width, height = figures.PANEL_INCHES
    figure = Figure(figsize=(width * len(drawn) * 0.8, height), layout="constrained")
    top = 1.05 * max(max(curve.most) for panel in drawn for curve in panel.curves)
    for axes, panel in zip(figure.subplots(1, len(drawn)), drawn, strict=True):
        for curve in panel.curves:
            look = {"color": curve.colour, "linestyle": curve.dashes}
            axes.plot(curve.x, curve.mean, **look, linewidth=1.6)
            axes.fill_between(curve.x, curve.least, curve.most, color=curve.colour, alpha=0.15)
        axes.set_title(panel.title)
        axes.set_xlabel("steps")
        axes.set_ylabel("average precision at .5")
        axes.set_ylim(0, top)
        axes.set_xlim(panel.curves[0].x[0], panel.curves[0].x[-1])
        figures.label_curves(axes, panel.curves, (0, top))
    figure.suptitle(TITLE, x=0.01, ha="left", fontsize=figures.TITLE_SIZE)
    return figure


def described(drawn: Sequence[figures.Panel]) -> str:
    said = [
        f"{panel.title}: "
        + ", ".join(f"{curve.label} ends at {curve.end[1]:.3f}" for curve in panel.curves)
        for panel in drawn
    ]
    return f"{TITLE}. Average precision at an overlap of .5 against steps. {'; '.join(said)}"


def main(folder: Path = FOLDER / "figures") -> int:
    with style.light_settings():
        drawn = panels(records.read(detection.RESULTS).values())
        figures.save(draw(drawn), folder / "detection_steps", described(drawn))
    print(f"wrote {folder / 'detection_steps.svg'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
