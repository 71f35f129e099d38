"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

from typing import Any

from . import figures, members, pages, style, timeline, words
from .compare import Comparison
from .measure import Figures, sent_per_step
from .run import Run
from .window import Choice

_MOST_SETTINGS = 30


def render(comparison: Comparison, version: str, choice: Choice | None = None) -> str:
    """The whole page as text. `choice`: what of the traces the timeline shows."""
    drawn = {
        "timeline": timeline.timeline(comparison, choice or Choice()),
        **_figures(comparison),
    }
    rows = [_row(comparison, index) for index in range(len(comparison.runs))]
    missing = [key for key in rows[0]["cells"] if all(_is_missing(row, key) for row in rows)]
    return pages.render(
        "page.html",
        headline=comparison.headline,
        remarks=_remarks(comparison),
        rows=rows,
        columns=[key for key in rows[0]["cells"] if key not in missing],
        missing=missing,
        differences=comparison.differences[:_MOST_SETTINGS],
        more_differences=max(0, len(comparison.differences) - _MOST_SETTINGS),
        pairs=[_pair(pair) for pair in comparison.pairs],
        version=version,
        absent=_absent(comparison, drawn),
        **drawn,
    )


def _remarks(comparison: Comparison) -> list[str]:
    """Who was lost comes first: it stands on the first screen then."""
    lost = [said for run in comparison.runs if (said := members.sentence(run))]
    return [*lost, *comparison.remarks]


def _figures(comparison: Comparison) -> dict[str, Any]:
    is_one_task = comparison.is_one_task
    each = list(zip(comparison.runs, comparison.figures, strict=True))
    changed = [members.members(run, own, index) for index, (run, own) in enumerate(each)]
    matrices = [figures.links(run, own, index) for index, (run, own) in enumerate(each)]
    return {
        "no_trace": [run.name for run in comparison.runs if run.trace is None],
        "members": [found for found in changed if found is not None],
        "parts": figures.parts(comparison),
        "has_hidden": any(own.parts and own.parts.hidden_ms is not None for _, own in each),
        "no_hidden": [own.label for _, own in each if own.parts and own.parts.hidden_ms is None],
        "losses": [
            drawn
            for by_time in (False, True)
            if is_one_task and (drawn := figures.losses(comparison, by_time)) is not None
        ],
        "disagreement": figures.disagreement(comparison) if is_one_task else None,
        "equal": [own.label for _, own in each if own.disagreement == 0],
        "links": [drawn for drawn in matrices if drawn is not None],
        "link_sources": sorted({source for run, _ in each if (source := sent_per_step(run)[1])}),
        "no_links": [run.name for run, _ in each if not sent_per_step(run)[0]],
        "predicted": figures.predicted(comparison.pairs),
    }


def _absent(comparison: Comparison, drawn: dict[str, Any]) -> list[str]:
    """A sentence for each picture that the runs have no data for."""
    sentences = []
    if not drawn["timeline"]:
        sentences.append(f"No trace was recorded of {words.listed(drawn['no_trace'])}.")
    if not drawn["parts"]:
        sentences.append("It is not recorded where the time of a step went.")
    if not drawn["losses"]:
        sentences.append(
            "No losses were recorded."
            if comparison.is_one_task
            else "The runs are of different tasks; their losses are not compared."
        )
    if not drawn["disagreement"] and drawn["equal"]:
        sentences.append(
            f"The disagreement is 0 at the end of {words.listed(drawn['equal'])}: all workers are "
            "the same."
        )
    elif not drawn["disagreement"] and comparison.is_one_task:
        sentences.append("No disagreement was recorded.")
    if not drawn["links"]:
        sentences.append("The bytes per link are not recorded.")
    if not comparison.pairs:
        sentences.append("No run has a prediction (prediction.json) beside what was measured.")
    return sentences


def _row(comparison: Comparison, index: int) -> dict[str, Any]:
    own = comparison.figures[index]
    baseline = comparison.baselines[index]
    part = comparison.share_of(index)
    return {
        "label": own.label,
        "swatch": style.swatch(index, own.is_baseline),
        "kind": "simulated" if own.is_simulated else "measured",
        "steps": _steps(own),
        "cells": {
            "ms per step": words.plain(own.step_ms),
            "of AllReduce's time": words.share(1) if baseline is own else _compared(part),
            "samples per s": words.plain(own.samples_per_s),
            "exposed ms": words.plain(own.exposed_ms),
            "validation loss": words.plain(own.val_loss, 4),
            "disagreement": words.plain(own.disagreement, 2),
            "sent per host, step": words.size(own.bytes_per_host),
            "topology": "all workers" if own.is_baseline else _text(own.topology.replace("_", " ")),
            "pattern": _text(own.pattern),
            "codec": _text(own.codec),
            "workers": _shape(own),
        },
    }


def _steps(own: Figures) -> str:
    if not own.steps:
        return ""
    noun = "step" if own.steps == 1 else "steps"
    after = f" after {own.warm_up} to warm up" if own.warm_up else ""
    return f", {own.steps} {noun}{after}"


def _is_missing(row: dict[str, Any], key: str) -> bool:
    return bool(row["cells"][key] == words.NONE)


def _compared(part: float | None) -> str:
    return "not compared" if part is None else words.share(part)


def _text(value: str) -> str:
    return value or words.NONE


def _shape(own: Figures) -> str:
    if own.workers is None:
        return words.NONE
    if not own.hosts:
        return str(own.workers)
    noun = "host" if own.hosts == 1 else "hosts"
    return f"{own.workers} on {own.hosts}\N{NO-BREAK SPACE}{noun}"


def _pair(pair: Any) -> dict[str, Any]:
    rows = []
    for name, said, got in pair.rows:
        show = words.size if name.startswith("bytes") else words.plain
        ratio = words.plain(got / said) if said and got is not None else "not compared"
        rows.append((name, show(said), show(got), ratio))
    return {"label": pair.label, "source": pair.source, "rows": rows}


def values(comparison: Comparison) -> dict[str, Any]:
    """The same as an object for JSON: what the page says, in the units of the names."""
    return {
        "headline": comparison.headline,
        "remarks": _remarks(comparison),
        "runs": [_values_of(comparison, index) for index in range(len(comparison.runs))],
        "differences": {each.key: each.values for each in comparison.differences},
        "predicted": [
            {
                "run": pair.label,
                "source": pair.source,
                "rows": [
                    {"name": name, "predicted": said, "measured": got}
                    for name, said, got in pair.rows
                ],
            }
            for pair in comparison.pairs
        ],
    }


def _values_of(comparison: Comparison, index: int) -> dict[str, Any]:
    run: Run = comparison.runs[index]
    own = comparison.figures[index]
    parts = own.parts
    return {
        "run": own.label,
        "folder": str(run.folder),
        "kind": "simulated" if own.is_simulated else "measured",
        "topology": own.topology,
        "pattern": own.pattern,
        "codec": own.codec,
        "workers": own.workers,
        "hosts": own.hosts,
        "steps": own.steps,
        "ms_per_step": own.step_ms,
        "share_of_allreduce": comparison.share_of(index),
        "samples_per_s": own.samples_per_s,
        "exposed_ms": own.exposed_ms,
        "val_loss": own.val_loss,
        "disagreement": own.disagreement,
        "bytes_per_host_per_step": own.bytes_per_host,
        **members.values(run),
        "parts_ms": None
        if parts is None
        else {
            "compute": parts.compute_ms,
            "update": parts.update_ms,
            "exposed": parts.exposed_ms,
            "hidden": parts.hidden_ms,
        },
    }
