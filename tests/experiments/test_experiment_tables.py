"""Tables and figures against results whose figures can be had by hand."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import figures
import grid
import plan
import pytest
import records
import rows
import step_times
import tables
import time_table
from grid import Experiment, ExperimentError
from matplotlib.figure import Figure
from workbench import table

EXPERIMENT = grid.from_table(
    "small",
    table(seeds=[1, 2, 3], methods=[])
    | {
        "methods": [
            {"name": "AllReduce", "pattern": "allreduce", "lr": [0.01, 0.02]},
            {"name": "AllReduce, plain", "pattern": "allreduce", "optimizer": "sgd"},
            {"name": "DAdam", "pattern": "cwa", "topologies": ["ring"]},
        ]
    },
)
NONE, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
LOSSES = {
    ("AllReduce", 0.01): [2.5, 9.0, 9.0],
    ("AllReduce", 0.02): [2.0, 2.2, 2.1],
    ("AllReduce, plain", None): [3.0, 3.0, 3.0],
    ("DAdam", None): [2.3, 2.3, 2.5],
    ("AccumAdam", None): [2.2, 2.2, 2.4],
    ("AllReduce", None): [2.0, 2.2, 2.1],
    ("AllReduce, int8", None): [1.0, 1.0, 1.0],
}


def record(run: grid.Run) -> plan.Record:
    loss = LOSSES[run.method.name, run.chosen.get("lr")][run.seed - 1]
    gossips = bool(run.topology)
    return {
        "case": "",
        "method": run.method.name,
        "topology": run.topology,
        "seed": run.seed,
        "settings": run.settings,
        "recipe_hash": run.experiment.recipe_hash(),
        "machine": {"cpu": "abacus", "cores": 2, "kernel": "0"},
        "status": "ok",
        "summary": {
            "val_loss": loss,
            "train_loss": loss + 1,
            "disagreement": 0.01 if gossips else 0.0,
        },
        "bleu": 50 - 10 * loss,
        "bleu_signature": "signed",
        "curve": [[2, loss + 1, 0.1, 0.03 if gossips else 0.0], [4, loss, 0.2, 0.0]],
    }


def all_done(experiment: Experiment = EXPERIMENT) -> dict[str, plan.Record]:
    done: dict[str, plan.Record] = {}
    while todo := [run for run in plan.planned(experiment, done) if run.key not in done]:
        done |= {run.key: record(run) for run in todo}
    return done


def cells_of(text: str, start: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_spread_of_three_numbers() -> None:
    found = rows.spread({1: 2.0, 2: 2.2, 3: 2.1})
    assert found is not None
    assert (found.mean, found.deviation, found.width) == pytest.approx((2.1, 0.1, 0.2))
    single = rows.spread({1: 2.0})
    assert single is not None
    assert single.deviation is None
    assert rows.spread({}) is None


def test_a_table_by_hand() -> None:
    text = tables.document(EXPERIMENT, all_done())
    assert cells_of(text, "| AllReduce | ") == [
        "AllReduce", NONE, r"lr 0.02\*", "2.100 ± 0.100 (0.200)", NONE,
        "29.00 ± 1.00 (2.00)", NONE, "3.100 ± 0.100 (0.200)", NONE, "1, 2, 3",
    ]  # fmt: skip
    # 2.3, 2.3, 2.5 less 2.0, 2.2, 2.1: .3, .1, .4, of mean .8/3 and variance (.26 - .64/3) / 2
    deviation = math.sqrt((0.26 - 0.64 / 3) / 2)
    assert cells_of(text, "| DAdam | ring") == [
        "DAdam", "ring", NONE, "2.367 ± 0.115 (0.200)", f"+0.267 ± {deviation:.3f} (0.300)",
        "26.33 ± 1.15 (2.00)", f"{MINUS}2.67 ± {10 * deviation:.2f} (3.00)",
        "3.367 ± 0.115 (0.200)", "0.0300", "1, 2, 3",
    ]  # fmt: skip
    assert cells_of(text, "| AllReduce, plain")[4] == "+0.900 ± 0.100 (0.200)"
    assert "- AllReduce: lr 0.01: 2.500; lr 0.02: 2.000" in text
    assert "BLEU: `signed`" in text
    assert "10 runs on abacus, 2 cores" in text


def test_differences_are_of_seeds_that_both_have() -> None:
    done = all_done()
    (gone,) = [
        key for key, each in done.items() if each["topology"] == "ring" and each["seed"] == 3
    ]
    done.pop(gone)
    found = cells_of(tables.document(EXPERIMENT, done), "| DAdam | ring")
    # .3 and .1
    assert found[4] == f"+0.200 ± {math.sqrt(0.02):.3f} (0.200)"
    assert found[-1] == "1, 2"


def test_one_seed_has_no_spread() -> None:
    done = {key: each for key, each in all_done().items() if each["seed"] == 1}
    found = cells_of(tables.document(EXPERIMENT, done), "| DAdam | ring")
    assert found[3:5] == ["2.300", "+0.300"]


def test_what_diverged_is_counted() -> None:
    done = all_done()
    for each in done.values():
        if each["topology"] == "ring" and each["seed"] == 2:
            each |= {"status": "diverged", "summary": None, "curve": []}
    found = cells_of(tables.document(EXPERIMENT, done), "| DAdam | ring")
    assert found[3] == "2.400 ± 0.141 (0.200)"
    assert found[-1] == "1, 3 (1 diverged)"


def test_results_of_another_recipe_are_left_out() -> None:
    done = {key: {**each, "recipe_hash": "other"} for key, each in all_done().items()}
    assert tables.NO_RESULTS in tables.document(EXPERIMENT, done)


def test_every_experiment_has_a_page(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    for _ in range(2):
        words = ["--write-docs", "--folder", str(folder), "--results", str(tmp_path)]
        assert tables.main(words) == 0
        pages = {page.stem: page.read_text() for page in folder.iterdir()}
        assert pages.keys() == {each.stem for each in grid.FOLDER.glob("*.toml")}
        assert all(text.startswith("# ") and text.endswith("\n") for text in pages.values())
        assert all(tables.NO_RESULTS in text for text in pages.values())


TIMES: dict[str, Any] = {"gamma": 2, "cluster": "4x2", "source": "of bench"}


def times(**ms: float) -> step_times.StepTimes:
    return step_times.StepTimes(ms=ms, **TIMES)


def test_a_step_time_is_by_method_and_topology_or_by_topology() -> None:
    cells = {cell.name: cell for cell in plan.cells(EXPERIMENT)}
    found = times(**{"DDP": 100, "DAdam@ring": 30, "ring": 40})
    assert found.of(cells["AllReduce"]) == 100
    assert found.of(cells["DAdam, ring"]) == 30
    assert times(ring=40).of(cells["DAdam, ring"]) == 40
    assert times(ring=40).of(cells["AllReduce"]) is None


def test_what_was_measured_and_predicted_goes_by_the_names_of_the_methods() -> None:
    time = {"gamma": 2.0, "setting": "slow"}
    time["contenders"] = {"AllReduce": "ddp", "ring": "gossamer ring", "star": "gossamer star"}
    small = dataclasses.replace(EXPERIMENT, time=time)
    good = {"contender": "ddp", "status": "ok", "seconds": 0.5}
    bad = {"contender": "gossamer ring", "status": "failed", "words": "a wire"}
    measured = [
        {"setting": {"name": name, "hosts": "4x2"}, "rows": found}
        for name, found in (("slow", [good, bad]), ("fast", [{**good, "seconds": 9}]))
    ]
    predicted = [{"setting": "slow", "contender": "gossamer ring", "predicted_s": 0.2512}]
    found = step_times.collected(small, measured, predicted)
    assert found is not None
    assert (found.ms, found.predicted_ms) == ({"AllReduce": 500}, {"ring": 251.2})
    assert step_times.collected(small, measured[1:], predicted) is None
    assert step_times.collected(EXPERIMENT, measured, predicted) is None


def test_times_are_beside_those_of_ddp() -> None:
    found = rows.rows(EXPERIMENT, EXPERIMENT.cases[0], all_done())
    measured = times(DDP=500, ring=250)
    base, ring = time_table.time_rows(found, measured)
    assert (base.ms, base.steps, base.reached_at) == (500, 4, 4)
    assert (ring.ms, ring.predicted_ms, ring.reached_at) == (250, None, None)  # 2.37 above 2.1
    text = tables.document(EXPERIMENT, all_done(), measured)
    assert "of bench. A method has reached" in text
    row = [line for line in text.splitlines() if line.startswith("| DAdam | ring |")][1]
    assert row == f"| DAdam | ring | 250 | 0.500 | {NONE} | 4 | 50 | {NONE} | {NONE} |"
    assert "Times on" not in tables.document(EXPERIMENT, all_done(), times(star=1))


def test_all_reduce_with_a_codec_is_compared_to_the_one_without() -> None:
    methods = [
        {"name": "AllReduce", "pattern": "allreduce", "lr": 0.02},
        {"name": "AllReduce, int8", "pattern": "allreduce", "codec": "int8"},
    ]
    both = grid.from_table("both", table(seeds=[1, 2, 3], methods=[]) | {"methods": methods})
    done = all_done(both)
    found = rows.rows(both, both.cases[0], done)
    base = rows.baseline(found)
    assert base is not None
    assert base.cell.method.name == "AllReduce"  # though its loss is twice as large
    assert len(time_table.time_rows(found, times(DDP=500))) == 1  # DDP's are not those of int8
    _, coded = time_table.time_rows(found, times(**{"DDP": 500, "AllReduce, int8": 200}))
    assert (coded.ms, coded.reached_at) == (200, 2)  # 2.0 below 2.1
    (panel,) = figures.panels(both, both.cases[0], done, None)
    assert [curve.label for curve in panel.curves] == ["AllReduce", "AllReduce, int8"]
    assert panel.curves[0].colour != panel.curves[1].colour


def test_curves_are_means_over_seeds_against_steps_or_seconds() -> None:
    for measured, x in ((None, [2, 4]), (times(DDP=500, ring=250), [0.5, 1.0])):
        (panel,) = figures.panels(EXPERIMENT, EXPERIMENT.cases[0], all_done(), measured)
        base, ring = panel.curves
        assert (base.label, ring.label) == ("AllReduce", "ring")
        assert ring.x == x
        assert ring.mean == pytest.approx([7.1 / 3 + 1, 7.1 / 3])
        assert (ring.least[-1], ring.most[-1]) == (2.3, 2.5)


def test_methods_on_the_same_topology_share_a_panel() -> None:
    names = ("AllReduce", "DAdam", "AccumAdam")
    one_each = [
        {"name": name, "pattern": "cwa" if k else "allreduce", "topologies": ["ring"]}
        for k, name in enumerate(names)
    ]
    experiment = grid.from_table("small", table(methods=one_each))
    done = {
        run.key: record(run) | {"curve": [[2, 3.0, 0.1, 0.0], [4, 2.0, 0.2, 0.0]]}
        for run in plan.planned(experiment, {})
    }
    (panel,) = figures.panels(experiment, experiment.cases[0], done, None)
    assert panel.title == "ring"
    assert [curve.label for curve in panel.curves] == list(names)
    assert len({curve.colour for curve in panel.curves}) == 3


def test_labels_keep_apart() -> None:
    assert figures.spread_out([0.5, 0.5, 0.9], 0.1) == pytest.approx([0.4667, 0.5667, 0.8667], 1e-3)
    assert figures.spread_out([0.3, 0.1], 0.1) == [0.3, 0.1]
    assert figures.spread_out([0.0, 0.0], 0.1) == pytest.approx([0.0, 0.1])


def test_what_is_above_the_picture_is_marked() -> None:
    curve = figures.Curve("a", "#000000", "-", [0, 10, 20, 30], [5, 3, 1, 1], [1] * 4, [5] * 4)
    axes = Figure().subplots()
    axes.set_xlim(0, 30)
    figures.mark_what_is_above(axes, [curve], 4.0)
    (mark,) = axes.lines
    assert mark.get_xydata().tolist() == [[5.0, 4.0]]
    axes.set_xlim(10, 30)
    figures.mark_what_is_above(axes, [curve], 4.0)
    assert len(axes.lines) == 1, "it is left of the picture"


def test_steps_begin_where_the_losses_come_into_the_picture_and_seconds_at_0() -> None:
    (panel,) = figures.panels(EXPERIMENT, EXPERIMENT.cases[0], all_done(), None)
    assert figures.shown_from([panel], "steps") == panel.curves[0].x[0]
    assert figures.shown_from([panel], "seconds") == 0


def test_figures_are_drawn_and_are_the_same_each_time(tmp_path: Path) -> None:
    said = figures.make(EXPERIMENT, all_done(), times(DDP=500, ring=250), tmp_path / "one")
    assert said == ["small: small_steps.svg and .png", "small: small_seconds.svg and .png"]
    figures.make(EXPERIMENT, all_done(), None, tmp_path / "two")
    drawn = [(tmp_path / folder / "small_steps.svg").read_bytes() for folder in ("one", "two")]
    assert drawn[0] == drawn[1]
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [f"small_{x}.{end}" for x in ("seconds", "steps") for end in ("png", "svg")]


def test_figures_that_cannot_be_drawn_say_why(tmp_path: Path) -> None:
    assert "no results yet" in figures.make(EXPERIMENT, {}, None, tmp_path)[0]
    assert "step_times.json has none" in figures.make(EXPERIMENT, all_done(), None, tmp_path)[1]
    other = times(star=1)
    assert "names other methods" in figures.make(EXPERIMENT, all_done(), other, tmp_path)[1]


def test_step_times_are_read(tmp_path: Path) -> None:
    path = tmp_path / "step_times.json"
    assert step_times.read(path, "small") is None
    path.write_text(json.dumps({"small": {**TIMES, "ms": {"DDP": 1}}, "bad": {"ms": {}}}))
    assert step_times.read(path, "small") == times(DDP=1)
    assert step_times.read(path, "other") is None
    with pytest.raises(ExperimentError, match="bad has no step times"):
        step_times.read(path, "bad")


def test_the_results_of_the_project_can_be_read() -> None:
    for path in (grid.FOLDER / "results").glob("*.jsonl"):
        text = path.read_text()
        assert '"/' not in text, f"{path.name}: an absolute path"
        assert records.read(path)
