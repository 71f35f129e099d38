"""Run folders with values that are known, for the tests of `gossamer report`."""

import gzip
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

HOSTS, PER_HOST = 2, 2
WORKERS = HOSTS * PER_HOST
STEPS = 8
FORWARD_US, BACKWARD_US, UPDATE_US = 1000.0, 2000.0, 500.0
MESSAGE_BYTES = 4000

RECIPE = """
[data]
task = "{task}"
[model]
width = 16
[cluster]
hosts = {hosts}
gamma = {gamma}
compute_ms = {compute_ms}
per_host = "2"
[algorithm]
topology = "{topology}"
pattern = "{pattern}"
codec = "{codec}"
"""


def write_recipe(folder: Path, pattern: str, **changes: Any) -> None:
    topology = "complete" if pattern == "allreduce" else "ring"
    values = {"task": "text", "hosts": HOSTS, "topology": topology, "codec": "fp32"}
    values = {"gamma": 0.0, "compute_ms": 0.0, **values, **changes}
    (folder / "run.toml").write_text(RECIPE.format(pattern=pattern, **values))


def write_metrics(folder: Path, step_ms: float, exposed_ms: float, gap: float) -> None:
    """Loss 4 less step / 10 at every worker but the last, which has 0.4 more; the first step takes
    100 times as long as the others. Validation after half of the steps and after all."""
    for rank in range(WORKERS):
        lines: list[dict[str, Any]] = []
        for step in range(1, STEPS + 1):
            loss = 4 - step / 10 + (0.4 if rank == WORKERS - 1 else 0)
            slow = 100 if step == 1 else 1
            lines.append(
                {
                    "step": step,
                    "loss": loss,
                    "step_ms": slow * step_ms,
                    "samples": 2,
                    "exposed_ms": slow * exposed_ms,
                }
            )
            if step in (STEPS // 2, STEPS):
                edges = [{"peer": (rank + 1) % WORKERS, "sent": 1000 * step, "received": 1}]
                check = {"val_loss": 5 - step / 10, "disagreement": gap, "edges": edges}
                lines.append({"step": step, **check})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"metrics.rank{rank}.jsonl").write_text(text)


def write_summary(folder: Path, **values: Any) -> None:
    (folder / "summary.json").write_text(json.dumps(values))


def trace_events(wait_us: float) -> list[dict[str, Any]]:
    """Every worker: forward, backward, a wait, an update; its one exchange begins with the update
    and goes on for the next forward. It sends one message per step to the next worker."""
    events: list[dict[str, Any]] = []
    length = FORWARD_US + BACKWARD_US + wait_us + UPDATE_US
    for worker in range(WORKERS):
        name = {"name": f"worker {worker}, host {worker // PER_HOST}"}
        events.append({"ph": "M", "name": "process_name", "pid": worker, "args": name})
        for step in range(STEPS):
            at = step * length
            parts = (("forward", FORWARD_US), ("backward", BACKWARD_US), ("wait", wait_us))
            for kind, span in (*parts, ("update", UPDATE_US)):
                events.append(interval(kind, worker, 0, at, span, step))
                at += span
            start = at - UPDATE_US
            events.append(interval("exchange", worker, 1, start, UPDATE_US + FORWARD_US, step))
    events.append({"ph": "M", "name": "process_name", "pid": WORKERS, "args": {"name": "links"}})
    for worker in range(WORKERS):
        edge = {"name": f"{worker} to {(worker + 1) % WORKERS}"}
        track = {"ph": "M", "name": "thread_name", "pid": WORKERS, "tid": worker, "args": edge}
        events.append(track)
        for step in range(STEPS):
            message = interval("bucket 0", WORKERS, worker, step * length, 10, step)
            message["args"].update({"bytes": MESSAGE_BYTES, "phase": 0})
            events.append(message)
    return events


def interval(
    name: str, process: int, track: int, at: float, span: float, step: int
) -> dict[str, Any]:
    place = {"pid": process, "tid": track, "ts": at, "dur": span}
    return {"ph": "X", "name": name, **place, "args": {"step": step, "bucket": 0}}


def write_trace(path: Path, events: list[dict[str, Any]], method: str = "") -> None:
    """As a run's, or with a method as a simulation's."""
    trace: dict[str, Any] = {"traceEvents": events}
    if method:
        trace["otherData"] = {"method": method}
    with gzip.open(path, "wt") as file:
        json.dump(trace, file)


def make_run(folder: Path, pattern: str, step_ms: float, **changes: Any) -> Path:
    """A measured run of 8 steps with everything but a trace and a prediction. `rate`: of its
    emulated links, in bytes per second."""
    folder.mkdir(parents=True)
    gap = 0.0 if pattern == "allreduce" else 0.0125
    write_recipe(folder, pattern, **changes)
    write_metrics(folder, step_ms, step_ms / 4, gap)
    write_summary(
        folder,
        topology=changes.get("topology", "complete" if pattern == "allreduce" else "ring"),
        pattern=pattern,
        workers=WORKERS,
        steps=STEPS,
        ms_per_step=step_ms,
        exposed_ms=step_ms / 4,
        bytes_per_host_per_step=64000,
        val_loss=4.2,
        disagreement=gap,
        **({"link_bytes_per_s": changes["rate"]} if "rate" in changes else {}),
    )
    return folder


class Page(HTMLParser):
    """What there is to see and to hear on a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[list[str]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.pictures: list[str] = []
        self.text = ""
        self.heading = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == [], "all elements are closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag not in ("meta", "link", "br", "img"):
            self._open.append(tag)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [found[key] or "" for key in ("href", "src") if key in found]
        if found.get("role") == "img":
            self.pictures.append(found.get("aria-label") or "")
        if tag == "tr":
            self.cells.append([])
        elif tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text += data
        if "h1" in self._open:
            self.heading += data
        if "tr" in self._open and ("td" in self._open or "th" in self._open):
            self.cells[-1][-1] += data

    def row(self, first: str) -> list[str]:
        """The cells of the first row whose first cell begins so, but for marks."""
        words = [[" ".join(cell.split()) for cell in row] for row in self.cells]
        return next(row for row in words if row and row[0].lstrip("■●◆▲▼✚ ").startswith(first))
