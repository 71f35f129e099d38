"""TensorBoard, Weights & Biases and MLflow: they show the metrics of every rank while it trains.

A tracker follows one Gossip: ``gossamer.trackers.tensorboard(gossip, "runs/a")`` on every rank, or
on some of them. It is given the lines that ``Gossip(metrics="folder")`` writes, with or without
that folder, and ends with ``gossip.close()``. A tracker that cannot be begun is an error; one that
fails later is one warning, and the run goes on. docs/trackers.md has the names of the series.

``python -m gossamer.trackers RUN --tensorboard FOLDER`` shows a run folder in TensorBoard.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gossamer._core import IoError
from gossamer.base import files
from gossamer.base.closing import AtExit
from gossamer.records import tracing
from gossamer.records.sinks import Sink, Tracker, Values
from gossamer.step.run import Run
from gossamer.step.runs import run_of
from gossamer.workers.world import own_folder

__all__ = ["Sink", "follow", "mlflow", "tensorboard", "wandb"]

_FLUSH_S = 10
"""How old a value may be before it is in TensorBoard's file, and how long MLflow's are kept."""

_LARGEST_BATCH = 1000
"""Metrics that MLflow takes at once."""

_PATIENCE_S, _NAP_S = 10.0, 0.1


def follow(gossip: Any, sink: Sink, *, every: int = 1) -> None:
    """Gives the metrics of this rank to ``sink``, from the next step on.

    The line of each ``every``-th step is given, and all that tell of more than their step: those
    of ``averaged()``, of ``disagreement()`` and of a lost worker. Not collective. Raises TypeError
    for what is no Gossip, ValueError for one that is closed and for an ``every`` below 1.

    Example::

        from gossamer import trackers

        seen = []
        trackers.follow(gossip, trackers.Sink("a list", lambda *what: seen.append(what)))
    """
    run = _open_run(gossip, "follow()", every)
    run.metrics.follow(
        Tracker(sink, run.session.world.rank, every), run.totals.waited(run.team.engine)
    )
    AtExit(gossip)  # once more: before what the tracker's library does there
    run.resume()


def tensorboard(gossip: Any, folder: str | os.PathLike[str], *, every: int = 1) -> Any:
    """Writes this rank's metrics for TensorBoard to ``folder/rank0`` and so on: a run per rank.

    Returns the ``torch.utils.tensorboard.SummaryWriter``, for other things than metrics. ``every``
    as in ``follow``. A run that goes on in the folder keeps what it had up to its step. Needs the
    package ``tensorboard``; raises ModuleNotFoundError without it, IoError where the folder cannot
    be made, and what ``follow`` raises.

    Example::

        gossamer.trackers.tensorboard(gossip, "runs/a")
        gossip.log(loss=loss_of(model, x, y))
    """
    run = _open_run(gossip, "tensorboard()", every)
    world = run.session.world
    place = own_folder(world, folder) / f"rank{world.rank}"
    writer = _summary_writer(place, run.team.engine.steps_done)
    follow(gossip, _tensorboard_sink(writer, place), every=every)
    return writer


def wandb(gossip: Any, name: str, *, every: int = 1, **init: Any) -> Any:
    """Logs this rank's metrics to Weights & Biases: a run per rank, all in the group ``name``.

    Returns the ``wandb.Run``. ``init``: arguments of ``wandb.init``, such as ``project`` and
    ``mode="offline"``; an ``id`` gets the rank at its end. The x-axis is ``step``. ``every`` as in
    ``follow``. Needs the package ``wandb``; raises ModuleNotFoundError without it, and what
    ``wandb.init`` and ``follow`` raise.

    Example::

        gossamer.trackers.wandb(gossip, "a", project="translation", mode="offline")
    """
    run = _open_run(gossip, "wandb()", every)
    library = _library("wandb", "wandb")
    label = _label(run, name)
    settings = {"group": name, "name": label, "reinit": "create_new", **init}
    settings["config"] = {**_facts(run), **init.get("config", {})}
    if "id" in init:
        settings["id"] = _label(run, init["id"])
    made = library.init(**settings)
    made.define_metric("*", step_metric="step")

    def write(step: int, values: Values) -> None:
        made.log({"step": step, **values})

    def close() -> None:
        made.finish(exit_code=1 if _is_failing() else None)

    follow(gossip, Sink(f"Weights & Biases, {label}", write, close=close), every=every)
    return made


def mlflow(
    gossip: Any,
    name: str,
    *,
    experiment: str = "Default",
    tracking_uri: str | None = None,
    every: int = 1,
) -> str:
    """Logs this rank's metrics to MLflow: a run per rank, with the tag ``gossamer.run`` = ``name``.

    Returns the id of the MLflow run. ``tracking_uri``: by default MLflow's own, of
    ``MLFLOW_TRACKING_URI``. An ``experiment`` that is not there is made. ``every`` as in
    ``follow``. Values are sent together every few seconds. Needs the package ``mlflow`` or
    ``mlflow-skinny``; raises ModuleNotFoundError without it, and what MLflow and ``follow`` raise.

    Example::

        gossamer.trackers.mlflow(gossip, "a", experiment="translation")
    """
    run = _open_run(gossip, "mlflow()", every)
    library = _library("mlflow", "mlflow")
    client = library.MlflowClient(tracking_uri)
    place = _experiment(client, experiment, is_first=run.session.world.rank == 0)
    label = _label(run, name)
    tags = {"gossamer.run": name, "gossamer.rank": str(run.session.world.rank)}
    made = client.create_run(place, run_name=label, tags=tags).info.run_id
    params = [library.entities.Param(key, str(value)) for key, value in _facts(run).items()]
    client.log_batch(made, params=params)
    batch = _Batch(library, client, made)
    follow(gossip, Sink(f"MLflow, {label}", batch.add, close=batch.close), every=every)
    return str(made)


def _open_run(gossip: Any, who: str, every: int) -> Run:
    run = run_of(gossip, f"trackers.{who}")
    if run.is_closed:
        raise ValueError(
            f"[trackers] {who} follows the steps of a Gossip, got one that is closed; call it "
            "before gossip.close()"
        )
    if every < 1:
        raise ValueError(
            f"[trackers] every is a number of steps, got {every} in {who}; give 1 or more"
        )
    return run


def _library(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"[trackers] {package}() needs the package {package}, got: {error}; run `pip install "
            f"{package}`, or leave the tracker out",
            name=error.name,
        ) from error


def _label(run: Run, name: str) -> str:
    """Of this rank; groups of some of the ranks have names of their own."""
    world = run.session.world
    return "-".join(filter(None, (name, world.subfolder, f"rank{world.rank}")))


def _facts(run: Run) -> dict[str, Any]:
    """What runs are compared by."""
    world = run.session.world
    return {
        "rank": world.rank,
        "workers": world.size,
        "hosts": len(world.workers_per_host),
        **tracing.method(run.session, run.trained.optimizers.word),
    }


def _is_failing() -> bool:
    """Whether an exception is on its way through ``with gossip:``."""
    kind = sys.exc_info()[0]
    return kind is not None and not issubclass(kind, SystemExit)


# TensorBoard.


def _summary_writer(place: Path, step: int) -> Any:
    """Of a run that goes on after so many steps; what the folder has of later ones is hidden."""
    library = _library("torch.utils.tensorboard", "tensorboard")
    try:
        return library.SummaryWriter(str(place), purge_step=step + 1, flush_secs=_FLUSH_S)
    except OSError as error:
        raise IoError(
            f"[trackers] tensorboard() could not write to {place}, got {error}; look at the "
            "folder's rights and its disk, or give another folder"
        ) from error


def _tensorboard_sink(writer: Any, place: Path) -> Sink:
    events = importlib.import_module("tensorboard.compat.proto.event_pb2")
    summaries = importlib.import_module("tensorboard.compat.proto.summary_pb2")

    def write(step: int, values: Values) -> None:
        numbers = {name: value for name, value in values.items() if not isinstance(value, str)}
        each = [summaries.Summary.Value(tag=k, simple_value=v) for k, v in numbers.items()]
        writer.file_writer.add_summary(summaries.Summary(value=each), step)  # one for all of them
        for name in values.keys() - numbers.keys():
            writer.add_text(name, values[name], step)

    def restart(step: int) -> None:
        begins = events.SessionLog(status=events.SessionLog.START)
        writer.file_writer.add_event(events.Event(session_log=begins), step + 1)

    return Sink(f"TensorBoard in {place}", write, restart, writer.close)


# MLflow.


class _Batch:
    """What is sent to MLflow together: a call for each value would cost the steps too much."""

    def __init__(self, library: Any, client: Any, run: str) -> None:
        self._entities = library.entities
        self._client = client
        self._run = run
        self._metrics: list[Any] = []
        self._tags: dict[str, str] = {}
        self._sent = time.monotonic()

    def add(self, step: int, values: Values) -> None:
        """Of one line."""
        if len(self._metrics) + len(values) > _LARGEST_BATCH:
            self._send()
        now_ms = int(1e3 * time.time())
        for name, value in values.items():
            if isinstance(value, str):
                self._tags[name] = value
            else:
                self._metrics.append(self._entities.Metric(name, value, now_ms, step))
        if time.monotonic() - self._sent > _FLUSH_S:
            self._send()

    def close(self) -> None:
        """The rest, and the end of the run."""
        self._send()
        self._client.set_terminated(self._run, "FAILED" if _is_failing() else "FINISHED")

    def _send(self) -> None:
        metrics, self._metrics = self._metrics, []
        tags = [self._entities.RunTag(name, text) for name, text in self._tags.items()]
        self._tags = {}
        self._client.log_batch(self._run, metrics=metrics, tags=tags)
        self._sent = time.monotonic()


def _experiment(client: Any, name: str, *, is_first: bool) -> str:
    """Its id. Rank 0 makes it, for folders would have it twice; others wait a while for that."""
    deadline = time.monotonic() + (0 if is_first else _PATIENCE_S)
    while (found := client.get_experiment_by_name(name)) is None:
        if time.monotonic() >= deadline:
            return str(client.create_experiment(name))
        time.sleep(_NAP_S)
    return str(found.experiment_id)


# Runs that are over, or of `gossamer train`.


def _main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m gossamer.trackers",
        description="Writes the metrics of a run folder for TensorBoard, a run per rank.",
        epilog="Exit codes: 0 written, 2 something is wrong with the run or the command line.",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="a folder with metrics.rank*.jsonl")
    parser.add_argument("--tensorboard", metavar="FOLDER", type=Path, required=True)
    given = parser.parse_args(arguments)
    paths = sorted(given.run.glob("metrics.rank*.jsonl"))
    if not paths:
        parser.error(
            f"no metrics.rank*.jsonl in {given.run}; give a folder of `gossamer train --out` or "
            "Gossip(metrics=folder)"
        )
    for path in paths:
        place = given.tensorboard / path.name.split(".")[1]
        try:
            _replay(path, _tensorboard_sink(_summary_writer(place, 0), place))
        except (OSError, ValueError, KeyError, TypeError) as error:
            parser.error(f"{path} cannot be shown, got {error}")
    return 0


def _replay(path: Path, sink: Sink) -> None:
    tracker = Tracker(sink, 0, 1)
    with files.opened(path) as file:
        for line in file:
            tracker.write(files.parse_json(line))
    tracker.close()


if __name__ == "__main__":
    sys.exit(_main())
