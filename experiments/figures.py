"""Validation loss against steps and against time, one panel per method that gossips; one for all
where they gossip on the same topology."""

import argparse
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import outcomes
from grid import FOLDER, Case, Experiment
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from outcomes import Outcome
from plan import Done
from rows import Row, baseline, losses_by_seed, rows
from step_times import StepTimes
from time_table import own_times

BLACK = "#000000"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (10, 3)), (0, (3, 1, 1, 1)))
PANEL_INCHES = (6.4, 3.8)
COLUMNS = 2
LABEL_GAP = 0.07  # of the axis' height, between two labels
FROM = 0.35  # of the steps: losses before it are above the picture
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "svg.fonttype": "none",
    "svg.hashsalt": "gossamer",
    "text.parse_math": False,
}


@dataclass(frozen=True)
class Curve:
    """Mean, least and largest loss over seeds at each point."""

    label: str
    colour: str
    dashes: object
    x: list[float]
    mean: list[float]
    least: list[float]
    most: list[float]

    @property
    def end(self) -> tuple[float, float]:
        return self.x[-1], self.mean[-1]


@dataclass(frozen=True)
class Panel:
    title: str
    curves: list[Curve]


def curve_of(row: Row, name: str, number: int | None, ms: float | None) -> Curve:
    """`number`: which of the colours; None: black. Steps where `ms` is None."""
    steps, by_seed = losses_by_seed(row)
    losses = [[points[step] for points in by_seed] for step in steps]
    return Curve(
        label=name.replace("_", " "),
        colour=BLACK if number is None else COLOURS[number % len(COLOURS)],
        dashes="-" if number is None else DASHES[number % len(DASHES)],
        x=[step if ms is None else step * ms / 1000 for step in steps],
        mean=[sum(each) / len(each) for each in losses],
        least=[min(each) for each in losses],
        most=[max(each) for each in losses],
    )


def panels(experiment: Experiment, case: Case, done: Done, times: StepTimes | None) -> list[Panel]:
    """All but AllReduce, beside the best of that. With `times`, without those that it lacks."""
    found = [row for row in rows(experiment, case, done) if row.records]
    if times:
        found = [row for row in found if times.of(row.cell) is not None]
    others = [row for row in found if not experiment.is_reference(row.cell.method)]
    graphs = list(dict.fromkeys(row.cell.topology for row in others))
    base = baseline(found)

    def panel(title: str, mine: Sequence[tuple[str, int | None, Row]]) -> Panel:
        shown = [*([(base.cell.method.name, None, base)] if base else []), *mine]
        curves = [
            curve_of(row, name, number, times.of(row.cell) if times else None)
            for name, number, row in shown
        ]
        return Panel(f"{case.name}: {title}" if case.name else title, curves)

    methods = list(dict.fromkeys(row.cell.method.name for row in others))
    if len(graphs) == 1 and len(methods) > 1:
        mine = [(row.cell.method.name, k, row) for k, row in enumerate(others)]
        return [panel(graphs[0].replace("_", " "), mine)]
    return [
        panel(
            method,
            [
                (row.cell.topology or method, graphs.index(row.cell.topology), row)
                for row in others
                if row.cell.method.name == method
            ],
        )
        for method in methods
    ]


def spread_out(places: Sequence[float], gap: float) -> list[float]:
    """The places, moved so that neighbours are at least `gap` apart, in their order, around the
    same middle; none below 0."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved = list(places)
    for below, above in itertools.pairwise(order):
        moved[above] = max(moved[above], moved[below] + gap)
    shift = (sum(moved) - sum(places)) / len(moved) if moved else 0.0
    return [place - min([shift, *moved]) for place in moved]


def limits(drawn: Sequence[Panel]) -> tuple[float, float]:
    """Of the losses: all that come after the first part of a curve."""
    tails = [
        loss
        for panel in drawn
        for curve in panel.curves
        for loss in [
            *curve.least[int(FROM * len(curve.x)) :],
            *curve.most[int(FROM * len(curve.x)) :],
        ]
    ]
    margin = 0.05 * (max(tails) - min(tails)) or 0.05
    return min(tails) - margin, max(tails) + margin


def draw_panel(axes: Axes, panel: Panel, losses: tuple[float, float], x_label: str) -> None:
    for curve in panel.curves:
        axes.plot(curve.x, curve.mean, color=curve.colour, linestyle=curve.dashes, linewidth=1.8)
        axes.fill_between(curve.x, curve.least, curve.most, color=curve.colour, alpha=0.15, lw=0)
    axes.set_title(panel.title, loc="left", fontweight="bold")
    axes.set_xlabel(x_label)
    axes.set_ylabel("validation loss, nats")
    axes.set_ylim(losses)
    axes.set_xlim(0, max(curve.x[-1] for curve in panel.curves))
    label_curves(axes, panel.curves, losses)


def label_curves(axes: Axes, curves: list[Curve], losses: tuple[float, float]) -> None:
    """Names at the right, each with a line to where its curve ends."""
    height = losses[1] - losses[0]
    ends = [(curve.end[1] - losses[0]) / height for curve in curves]
    for curve, place in zip(curves, spread_out(ends, LABEL_GAP), strict=True):
        axes.annotate(
            f"{curve.label}  {curve.end[1]:.3f}",
            xy=curve.end,
            xycoords="data",
            xytext=(1.04, place),
            textcoords="axes fraction",
            color=curve.colour,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": curve.colour, "lw": 0.6, "relpos": (0, 0.5)},
        )
        axes.plot(*curve.end, "o", color=curve.colour, markersize=4, clip_on=False, zorder=4)


def draw(by_case: list[list[Panel]], title: str, x_label: str) -> Figure:
    """Each case on rows of its own, with the same limits in all its panels."""
    lines = [
        (limits(drawn), drawn[first : first + COLUMNS])
        for drawn in by_case
        for first in range(0, len(drawn), COLUMNS)
    ]
    columns = max(len(chunk) for _, chunk in lines)
    width, height = PANEL_INCHES
    size = (width * columns, height * len(lines) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(lines), columns, squeeze=False)
    for row, (losses, chunk) in zip(axes, lines, strict=True):
        for place, panel in zip(row, chunk, strict=False):
            draw_panel(place, panel, losses, x_label)
        for place in row[len(chunk) :]:
            place.set_axis_off()
    figure.suptitle(title, x=0.01, ha="left")
    return figure


def save(figure: Figure, path: Path) -> None:
    """As SVG and as PNG; the same curves give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=110)


def every_row(experiment: Experiment, done: Done) -> list[Row]:
    return [row for case in experiment.cases for row in rows(experiment, case, done)]


def make(experiment: Experiment, done: Done, times: StepTimes | None, folder: Path) -> list[str]:
    """Draws what there is, and says of each figure where it is or why there is none."""
    name, note = experiment.name, "mean over seeds; bands: least to largest"

    def figure(kind: str, about: str, measured: StepTimes | None) -> bool:
        by_case = [panels(experiment, case, done, measured) for case in experiment.cases]
        by_case = [found for found in by_case if found]
        if by_case:
            with matplotlib.rc_context(STYLE):
                drawn = draw(by_case, f"{experiment.title}\n{about}{note}", kind)
                save(drawn, folder / f"{name}_{kind}")
        return bool(by_case)

    if not figure("steps", "", None):
        return [f"{name}: no figures, for there are no results yet"]
    said = [f"{name}: {name}_steps.svg and .png"]
    times = times or own_times(experiment, every_row(experiment, done))
    if times is None:
        return [*said, f"{name}: no figure against time, for step_times.json has none of {name}"]
    about = f"steps as long as on {times.cluster} workers at gamma {times.gamma:g}\n"
    if not figure("seconds", about, times):
        return [*said, f"{name}: no figure against time, for step_times.json names other methods"]
    return [*said, f"{name}: {name}_seconds.svg and .png"]


def show(outcome: Outcome, args: argparse.Namespace) -> None:
    print("\n".join(make(outcome.experiment, outcome.done, outcome.times, args.out)))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER / "figures")
    return outcomes.run(parser, arguments, show)


if __name__ == "__main__":
    sys.exit(main())
