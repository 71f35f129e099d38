"""The figures of the page but the timeline."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator

from . import style
from .compare import Comparison, Pair
from .measure import Figures, Parts, host_of_workers, sent_per_step
from .run import Run
from .words import listed, milliseconds, plain, share, size, unit_of

_POINTS = 300
_MOST_CELLS = 32
_MOST_NUMBERS = 8
_MOST_BOXES = 4096
_MOST_LINES = 64
_CROSS_ENTROPY = ("text", "images", "translation")
"""Tasks of `gossamer train`."""


def losses(comparison: Comparison, by_time: bool) -> Markup | None:
    """Training and validation loss against steps, or against seconds of training."""
    drawn = []
    with style.settings():
        figure, (ax,) = style.axes(4.4, 2.9)
        for index, (run, own) in enumerate(_with(comparison)):
            metrics = run.metrics
            if not metrics or not any(value is not None for value in metrics.loss):
                continue
            look = style.look(index, own.is_baseline)
            places = metrics.times_s() if by_time else [float(step) for step in metrics.steps]
            xs, ys = thinned(places, metrics.loss)
            ax.plot(xs, ys, **{**look, "marker": ""}, alpha=0.55, linewidth=1.2)
            ends = dict(zip(metrics.steps, places, strict=True))
            checks = [(ends[c.step], c.val_loss) for c in metrics.checks if c.step in ends]
            ax.plot(*_columns(checks), **{**look, "linestyle": "none"})
            drawn.append(own)
        if not drawn:
            return None
        ax.set_xlabel("training time, s" if by_time else "steps")
        ax.set_ylabel("loss, nats" if all(map(_is_in_nats, comparison.runs)) else "loss")
        ax.grid(True)
        ax.set_title("against time" if by_time else "against steps")
        words = [f"{each.label} ends at {plain(each.val_loss, 4)}" for each in drawn]
        alt = f"Loss against {'time' if by_time else 'steps'}; validation loss: {listed(words)}"
        return style.to_svg(figure, "loss-time" if by_time else "loss-steps", alt)


def _is_in_nats(run: Run) -> bool:
    """All that `gossamer train` trains minimises the cross-entropy; other loops may do as they
    like."""
    return run.setting("data", "task") in _CROSS_ENTROPY


def thinned(xs: list[float], ys: list[float | None]) -> tuple[list[float], list[float]]:
    """Means over neighbouring points where there are more than can be seen."""
    there = [(x, y) for x, y in zip(xs, ys, strict=True) if y is not None]
    width = -(-len(there) // _POINTS) or 1
    groups = [there[i : i + width] for i in range(0, len(there), width)]
    return (
        [sum(x for x, _ in group) / len(group) for group in groups],
        [sum(y for _, y in group) / len(group) for group in groups],
    )


def disagreement(comparison: Comparison) -> Markup | None:
    """Against steps, on a logarithmic axis; what is 0 cannot be there. None: there is none."""
    words = []
    with style.settings():
        figure, (ax,) = style.axes(4.4, 2.6)
        for index, (run, own) in enumerate(_with(comparison)):
            checks = run.metrics.checks if run.metrics else []
            points = [(float(c.step), c.disagreement) for c in checks if c.disagreement]
            if points:
                ax.plot(*_columns(points), **style.look(index, own.is_baseline))
                words.append(f"{own.label} {plain(own.disagreement, 2)} at its end")
        if not words:
            return None
        ax.set_yscale("log")
        _write_powers(ax)
        ax.set_xlabel("steps")
        ax.set_ylabel("disagreement")
        ax.grid(True)
        return style.to_svg(figure, "disagreement", f"Disagreement: {listed(words)}")


def parts(comparison: Comparison) -> Markup | None:
    """Where the time of a step went: a stacked bar per run, and what was hidden below it."""
    shown = [each for each in comparison.figures if each.parts]
    if not shown:
        return None
    with style.settings():
        figure, (ax,) = style.axes(5.2, 0.6 + 0.5 * len(shown))
        for row, own in enumerate(shown):
            assert own.parts
            left = 0.0
            for value, kind in (
                (own.parts.compute_ms, "forward"),
                (own.parts.update_ms or 0.0, "update"),
                (own.parts.exposed_ms, "wait"),
            ):
                ax.barh(row - 0.1, value, left=left, height=0.42, **FILLS[kind])
                left += value
            text = milliseconds(own.parts.step_ms)
            place: dict[str, Any] = {
                "xytext": (5, 0),
                "textcoords": "offset points",
                "va": "center",
            }
            ax.annotate(text, (left, row - 0.1), fontweight="bold", **place)
            if own.parts.hidden_ms is not None:
                ax.barh(row + 0.24, own.parts.hidden_ms, height=0.16, **FILLS["exchange"])
        ax.set_yticks(range(len(shown)), [each.label for each in shown])
        ax.set_ylim(len(shown) - 0.5, -0.5)
        ax.margins(x=0.12)
        ax.set_xlim(left=0)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel("ms per step, mean over the workers")
        ax.grid(True, axis="x")
        ax.set_axisbelow(True)
        words = [_said(each.label, each.parts) for each in shown if each.parts]
        return style.to_svg(figure, "parts", f"Where the time of a step went. {' '.join(words)}")


def _said(label: str, parts: Parts) -> str:
    text = f"{label}: {milliseconds(parts.step_ms)}, of which it waits "
    text += milliseconds(parts.exposed_ms)
    if parts.update_ms is not None and parts.hidden_ms is not None:
        text += (
            f", computes {milliseconds(parts.compute_ms)}, updates "
            f"{milliseconds(parts.update_ms)}; {milliseconds(parts.hidden_ms)} hidden"
        )
    return text + "."


FILLS: dict[str, dict[str, Any]] = {
    "forward": {"facecolor": style.COMPUTE, "linewidth": 0},
    "backward": {"facecolor": style.BACKWARD, "linewidth": 0},
    "update": {"facecolor": style.UPDATE, "linewidth": 0},
    "wait": {"facecolor": "none", "edgecolor": style.WAIT, "hatch": "/////", "linewidth": 0.8},
    "exchange": {"facecolor": style.EXCHANGE, "linewidth": 0},
}
"""What a worker does, as keywords of a patch."""


def links(run: Run, own: Figures, index: int) -> Markup | None:
    """Bytes per step over every edge as a matrix, by host where there are too many workers."""
    sent, _ = sent_per_step(run)
    if not sent:
        return None
    workers = max(own.workers or 0, 1 + max(max(edge) for edge in sent))
    host = host_of_workers(run, workers)
    by_host = workers > _MOST_CELLS
    cells: dict[tuple[int, int], float] = {}
    for (sender, receiver), count in sent.items():
        cell = (host[sender], host[receiver]) if by_host else (sender, receiver)
        cells[cell] = cells.get(cell, 0.0) + count
    n = max(host) + 1 if by_host else workers
    most = max(cells.values())
    unit, scale = unit_of(most)
    with style.settings():
        figure, (ax,) = style.axes(3.6, 3.7)
        largest = sorted(cells.items(), key=lambda cell: -cell[1])[:_MOST_BOXES]
        for (sender, receiver), count in largest:
            alpha = 0.06 + 0.44 * (count / most) ** 0.5 if count else 0.0
            color = style.look(index, False)["color"]
            box = Rectangle((receiver, sender), 1, 1, facecolor=color, alpha=alpha, linewidth=0)
            ax.add_patch(box)
            if count and n <= _MOST_NUMBERS:
                text = plain(count / scale, 2 if count < 100 * scale else 3)
                ax.text(receiver + 0.5, sender + 0.5, text, ha="center", va="center", fontsize=7)
        _draw_frame(ax, n, [] if by_host else host)
        noun = "host" if by_host else "worker"
        ax.set_xlabel(f"to {noun}")
        ax.set_ylabel(f"from {noun}")
        ax.set_title(f"{own.label}, {unit}" if n <= _MOST_NUMBERS else own.label)
        (sender, receiver) = max(cells, key=lambda cell: cells[cell])
        alt = (
            f"Bytes per step over the edges of {own.label}; most from {noun} {sender} to "
            f"{receiver}: {size(most)}"
        )
        return style.to_svg(figure, f"links-{index}", alt)


def _draw_frame(ax: Any, n: int, host: list[int]) -> None:
    ax.set_xlim(0, n)
    ax.set_ylim(n, 0)
    ax.set_aspect("equal")
    every = max(1, n // 8)
    ticks = [i + 0.5 for i in range(0, n, every)]
    ax.set_xticks(ticks, [str(i) for i in range(0, n, every)])
    ax.set_yticks(ticks, [str(i) for i in range(0, n, every)])
    ax.tick_params(length=0)
    for i in range(0, n + 1, max(1, n // _MOST_LINES)):
        edge = 0 < i < len(host) and host[i] != host[i - 1]
        look = {"color": style.MUTED if edge else style.GRID, "linewidth": 1.0 if edge else 0.4}
        ax.axhline(i, **look)
        ax.axvline(i, **look)


def predicted(pairs: list[Pair]) -> Markup | None:
    """Measured over predicted time per step of each run, beside 1."""
    shown = [(pair.label, *pair.rows[0][1:]) for pair in pairs]
    ratios = [(label, got / said) for label, said, got in shown if said and got]
    if not ratios:
        return None
    with style.settings():
        figure, (ax,) = style.axes(4.4, 0.8 + 0.32 * len(ratios))
        for row, (_, ratio) in enumerate(ratios):
            ax.plot([1, ratio], [row, row], color=style.MUTED, linewidth=1)
            ax.plot([ratio], [row], color=style.INK, marker="o", linestyle="none")
            ax.annotate(f"{plain(ratio)}", (ratio, row), (0, 6), textcoords="offset points")
        ax.axvline(1, color=style.INK, linewidth=1.2)
        ax.set_yticks(range(len(ratios)), [label for label, _ in ratios])
        ax.set_ylim(len(ratios) - 0.5, -0.7)
        ax.margins(x=0.2)
        ax.set_xlabel("measured time per step over the predicted one")
        words = [f"{label} takes {share(ratio)} of what was predicted" for label, ratio in ratios]
        return style.to_svg(figure, "predicted", listed(words))


def _write_powers(ax: Any) -> None:
    """Labels of a logarithmic axis as plain numbers: the page has no mathematical typesetting."""
    low, high = ax.get_ylim()
    is_short = high < 1e3 * low
    write = FuncFormatter(lambda value, _: plain(value, 1))
    ax.yaxis.set_major_formatter(write)
    shown = (2, 5) if is_short else ()
    ax.yaxis.set_minor_locator(LogLocator(subs=shown or (1,)))
    ax.yaxis.set_minor_formatter(write)


def _with(comparison: Comparison) -> list[tuple[Run, Figures]]:
    return list(zip(comparison.runs, comparison.figures, strict=True))


def _columns(points: list[Any]) -> tuple[list[float], list[float]]:
    there = [point for point in points if point[1] is not None]
    return [x for x, _ in there], [y for _, y in there]
