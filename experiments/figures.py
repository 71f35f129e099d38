"""Validation loss against steps and against time, one panel per method that gossips; one for all
where they gossip on the same topology."""

import argparse
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import outcomes
from grid import FOLDER, Case, Experiment
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from outcomes import Outcome
from plan import Done
from rows import Row, baseline, losses_by_seed, rows
from shared_style import style, wrapped
from step_times import StepTimes
from time_table import own_times

COLOURS = tuple(style.light(mark) for mark in style.SERIES)  # the first is of AllReduce
PANEL_INCHES = (4.4, 2.7)
TITLE_SIZE = 9
MOST_IN_TWO_COLUMNS = 4
LABEL_GAP = 0.085  # of the axis' height, between two labels
FROM = 0.35  # of the steps: losses before it are above the picture
MOST_RANGES = 4  # of the ends, from the least loss to the top of a picture
SHORT = {"alternating_exponential_ring": "AER"}


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
    """`number`: which of the colours; None: AllReduce's. Steps where `ms` is None."""
    steps, by_seed = losses_by_seed(row)
    losses = [[points[step] for points in by_seed] for step in steps]
    return Curve(
        label=SHORT.get(name, name.replace("_", " ")),
        colour=COLOURS[0 if number is None else 1 + number % (len(COLOURS) - 1)],
        dashes="-" if number is None else style.DASHES[number % len(style.DASHES)],
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
    """Of the losses: all that come after the first part of a curve, but what is so high that the
    ends could not be told from each other."""
    tails = [
        loss
        for panel in drawn
        for curve in panel.curves
        for loss in [
            *curve.least[int(FROM * len(curve.x)) :],
            *curve.most[int(FROM * len(curve.x)) :],
        ]
    ]
    ends = [curve.mean[-1] for panel in drawn for curve in panel.curves]
    low = min(tails)
    high = min(max(tails), low + MOST_RANGES * (max(ends) - low))
    margin = 0.05 * (high - low) or 0.05
    return low - margin, high + margin


def shown_from(drawn: Sequence[Panel], kind: str) -> float:
    """Steps begin where the losses come into the picture. Seconds begin at 0: a ratio of two of
    them is to be seen."""
    curves = [curve for panel in drawn for curve in panel.curves]
    return min(curve.x[int(FROM * len(curve.x))] for curve in curves) if kind == "steps" else 0.0


def draw_panel(
    axes: Axes, panel: Panel, losses: tuple[float, float], begin: float, x_label: str
) -> None:
    for curve in panel.curves:
        axes.plot(curve.x, curve.mean, color=curve.colour, linestyle=curve.dashes, linewidth=1.6)
        axes.fill_between(curve.x, curve.least, curve.most, color=curve.colour, alpha=0.15, lw=0)
    axes.set_title(panel.title)
    axes.set_xlabel(x_label)
    axes.set_ylabel("validation loss, nats")
    axes.set_ylim(losses)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlim(begin, max(curve.x[-1] for curve in panel.curves))
    mark_what_is_above(axes, panel.curves, losses[1])
    label_curves(axes, panel.curves, losses)


def mark_what_is_above(axes: Axes, curves: list[Curve], top: float) -> None:
    """An arrowhead where a curve comes into the picture from above."""
    begin = axes.get_xlim()[0]
    for curve in curves:
        points = list(zip(curve.x, curve.mean, strict=True))
        for (x, above), (end, below) in itertools.pairwise(points):
            if above > top >= below:
                place = x + (end - x) * (above - top) / (above - below)
                if place >= begin:
                    look: dict[str, Any] = {
                        "color": curve.colour,
                        "markersize": 4.5,
                        "clip_on": False,
                    }
                    axes.plot(place, top, "^", zorder=4, **look)
                break


def label_curves(axes: Axes, curves: list[Curve], losses: tuple[float, float]) -> None:
    """Names at the right, each with a line to where its curve ends."""
    height = losses[1] - losses[0]
    ends = [(curve.end[1] - losses[0]) / height for curve in curves]
    for curve, place in zip(curves, spread_out(ends, LABEL_GAP), strict=True):
        axes.annotate(
            f"{curve.label}  {curve.end[1]:.3f}",
            xy=curve.end,
            xycoords="data",
            xytext=(1.06, place),
            textcoords="axes fraction",
            color=curve.colour,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": curve.colour, "lw": 0.6, "relpos": (0, 0.5)},
        )
        axes.plot(*curve.end, "o", color=curve.colour, markersize=4, clip_on=False, zorder=4)


def draw(by_case: list[list[Panel]], title: str, x_label: str) -> Figure:
    """Each case on rows of its own, with the same limits in all its panels."""
    most = max(len(drawn) for drawn in by_case)
    columns = min(most, 2 if most <= MOST_IN_TWO_COLUMNS else 3)
    lines = [
        (limits(drawn), shown_from(drawn, x_label), drawn[first : first + columns])
        for drawn in by_case
        for first in range(0, len(drawn), columns)
    ]
    width, height = PANEL_INCHES
    room = 72 * width * columns - 20
    words = [part for line in title.split("\n") for part in wrapped(line, room, TITLE_SIZE)]
    size = (width * columns, height * len(lines) + 0.2 * len(words))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(lines), columns, squeeze=False)
    for row, (losses, begin, chunk) in zip(axes, lines, strict=True):
        for place, panel in zip(row, chunk, strict=False):
            draw_panel(place, panel, losses, begin, x_label)
        for place in row[len(chunk) :]:
            place.set_axis_off()
    figure.suptitle("\n".join(words), x=0.01, ha="left", fontsize=TITLE_SIZE)
    return figure


def save(figure: Figure, path: Path, alt: str) -> None:
    """As SVG and as PNG; the same curves give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = style.to_file(figure, "figure", alt)
    path.with_suffix(".svg").write_text(text, encoding="utf-8")
    figure.savefig(path.with_suffix(".png"), dpi=110, facecolor=style.light(style.PAPER))


def described(by_case: list[list[Panel]], title: str, kind: str) -> str:
    """What people hear who do not see the figure."""
    said = [
        f"{panel.title}: "
        + ", ".join(f"{curve.label} ends at {curve.end[1]:.3f}" for curve in panel.curves)
        for drawn in by_case
        for panel in drawn
    ]
    return f"{title}. Validation loss in nats against {kind}. {'; '.join(said)}"


def every_row(experiment: Experiment, done: Done) -> list[Row]:
    return [row for case in experiment.cases for row in rows(experiment, case, done)]


def make(experiment: Experiment, done: Done, times: StepTimes | None, folder: Path) -> list[str]:
    """Draws what there is, and says of each figure where it is or why there is none."""
    name, note = (
        experiment.name,
        "mean over seeds; bands: least to largest",
    )

    def figure(kind: str, about: str, measured: StepTimes | None) -> bool:
        by_case = [panels(experiment, case, done, measured) for case in experiment.cases]
        by_case = [found for found in by_case if found]
        if by_case:
            with style.light_settings(), matplotlib.rc_context({"axes.grid": True}):
                drawn = draw(by_case, f"{experiment.title}\n{about}{note}", kind)
                alt = described(by_case, experiment.title, kind)
                save(drawn, folder / f"{name}_{kind}", alt)
        return bool(by_case)

    if not figure("steps", "", None):
        return [f"{name}: no figures, for there are no results yet"]
    said = [f"{name}: {name}_steps.svg and .png"]
    times = times or own_times(experiment, every_row(experiment, done))
    if times is None:
        return [*said, f"{name}: no figure against time, for step_times.json has none of {name}"]
    about = (
        f"steps as long as on {times.cluster} workers at gamma {times.gamma:g}\n"
        "arrowheads: the loss was higher before; "
    )
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
