"""What a run of a contender comes to, and how it is printed."""

import statistics
from collections.abc import Sequence
from typing import Any

from contenders import CONTENDERS
from curves import Point, loss_at, time_to
from settings import Setting

COLUMNS = ("lr", "ms/step", "/compute", "CPU s", "s to loss", "/DDP", "loss", "vs DDP", "vs pair")
WIDTHS = (9, 9, 10, 8, 11, 7, 9, 9, 9)


def curve_of(row: dict[str, Any]) -> list[Point]:
    return [Point(**point) for point in row["curve"]]


def summary(
    setting: Setting,
    name: str,
    found: dict[str, Any],
    earlier: Sequence[dict[str, Any]],
    target: float | None,
) -> dict[str, Any]:
    """The row of a contender; `earlier` are the rows so far. Without a target DDP's own loss is
    it."""
    row: dict[str, Any] = {"contender": name, **found}
    if found["status"] != "ok":
        return row
    workers = row.pop("workers")
    row["curve"] = workers[0]["curve"]
    curve = curve_of(row)
    row["workers"] = [{**worker, "curve": []} for worker in workers]
    row["final_loss"] = loss_at(curve, setting.steps)
    row["seconds_per_step"] = curve[-1].seconds / curve[-1].steps
    row["cpu_s"] = sum(worker["cpu_s"] * worker["steps"] for worker in workers) / curve[-1].steps
    row["all_reduce_s"] = statistics.median(worker["all_reduce_s"] for worker in workers)
    row["disagreement"] = workers[0]["disagreement"]
    if setting.compute_s:
        row["ratio_to_compute"] = row["seconds_per_step"] / setting.compute_s
        row["gamma_all_reduce"] = row["all_reduce_s"] / setting.compute_s
    if CONTENDERS[name].entry.skips_late:
        counts = [worker["steps"] for worker in workers]
        row["steps_most_to_least"] = max(counts) / min(counts)
    if target is None and name == "ddp":
        target = row["final_loss"]
    row["seconds_to_target"] = None if target is None else time_to(curve, target)
    good = {each["contender"]: each for each in (*earlier, row) if each["status"] == "ok"}
    pair = good.get(CONTENDERS[name].pair)
    if pair:
        row["loss_to_pair"] = row["final_loss"] / pair["final_loss"]
    if "ddp" in good:
        row["loss_to_ddp"] = row["final_loss"] / good["ddp"]["final_loss"]
        whole = good["ddp"]["seconds_to_target"]
        if whole and row["seconds_to_target"]:
            row["time_to_ddp"] = row["seconds_to_target"] / whole
    return row


def heading(setting: Setting, payload: int, rates: Sequence[float], text: str | None) -> str:
    """What stands above the rows of a setting."""
    links = "links not shaped" if not rates[0] else f"{rates[0] / 1e6:.2f} Mbit/s"
    about = f"{setting.name}: hosts {setting.hosts}, {links}, gamma {setting.gamma:g} by bytes"
    about += f", {payload / 1e6:.3f} MB, compute {setting.compute_s:g} s, {setting.steps} steps of "
    about += f"{setting.batch} x {setting.length} bytes per worker"
    if setting.factors:
        about += f", factors {','.join(f'{factor:g}' for factor in setting.factors)}"
    about += f"\ntext: {text or 'the sources of the Python standard library'}"
    columns = "".join(f"{word:>{width}}" for word, width in zip(COLUMNS, WIDTHS, strict=True))
    return f"\n{about}\n{'':24}{columns}"


def line(row: dict[str, Any]) -> str:
    """The row as it is printed."""
    name = f"{row['contender']:24}"
    if row["status"] != "ok":
        return f"{name}{row['status']}: {row['words']}"

    def cell(key: str, form: str, scale: float = 1.0, offset: float = 0.0) -> str:
        value = row.get(key)
        return "-" if value is None else format(scale * (value + offset), form)

    cells = (
        cell("lr", "g"),
        cell("seconds_per_step", ".0f", 1e3),
        cell("ratio_to_compute", ".3f"),
        cell("cpu_s", ".2f"),
        cell("seconds_to_target", ".1f"),
        cell("time_to_ddp", ".3f"),
        cell("final_loss", ".4f"),
        cell("loss_to_ddp", "+.2f", 100, -1) + " %",
        cell("loss_to_pair", "+.2f", 100, -1) + " %",
    )
    text = "".join(f"{text:>{width}}" for text, width in zip(cells, WIDTHS, strict=True))
    if "steps_most_to_least" in row:
        text += f"  steps, most to least: {row['steps_most_to_least']:.2f}"
    return name + text
