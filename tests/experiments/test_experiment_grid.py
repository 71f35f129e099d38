"""What an experiment consists of, and what tuning chooses."""

import hashlib
import math
from dataclasses import replace
from typing import Any

import grid
import plan
import pytest
from grid import Case, Experiment, ExperimentError, Run
from workbench import EXPERIMENTS, table


def small(**changes: Any) -> Experiment:
    return grid.from_table("small", table(**changes))


def result(loss: float) -> plan.Record:
    return {"status": "ok", "summary": {"val_loss": loss}}


def tuned(experiment: Experiment, losses: dict[float, float]) -> dict[str, plan.Record]:
    """The results of all tuning runs; the loss by learning rate."""
    return {run.key: result(losses[run.chosen["lr"]]) for run in plan.planned(experiment, {})}


LOSSES = {0.01: 3.0, 0.02: 1.0, 0.04: 2.0, 0.08: 4.0}


def test_before_the_tuning_only_its_runs_are_known() -> None:
    runs = plan.planned(small(), {})
    assert [(run.method.name, run.topology, run.chosen["lr"]) for run in runs] == [
        *(("AllReduce", "", lr) for lr in (0.01, 0.02, 0.04)),
        *(("DAdam", "ring", lr) for lr in (0.02, 0.04, 0.08)),
    ]
    assert len(plan.undecided(small(), {})) == 3


def test_after_the_tuning_the_best_runs_on_all_seeds_and_topologies() -> None:
    experiment = small()
    done = tuned(experiment, LOSSES)
    new = [run for run in plan.planned(experiment, done) if run.key not in done]
    assert [(run.seed, run.method.name, run.topology) for run in new] == [
        (1, "DAdam", "complete"),
        (2, "AllReduce", ""),
        (2, "DAdam", "ring"),
        (2, "DAdam", "complete"),
    ]
    assert {run.chosen["lr"] for run in new} == {0.02}
    assert plan.undecided(experiment, done) == []


def test_without_tune_on_every_topology_is_tuned() -> None:
    experiment = small(tune_on="")
    assert len(plan.planned(experiment, {})) == 9
    done = tuned(experiment, LOSSES)
    assert len(plan.planned(experiment, done)) == 9 + 3


def test_a_method_may_be_tuned_on_a_topology_of_its_own() -> None:
    methods = [
        {"name": "A", "lr": [0.01, 0.02]},
        {"name": "B", "lr": [0.01, 0.02], "tune_on": "complete"},
    ]
    runs = plan.planned(small(methods=methods), {})
    assert {(run.method.name, run.topology) for run in runs} == {("A", "ring"), ("B", "complete")}


def test_a_method_may_take_the_choice_of_another() -> None:
    methods = [
        {"name": "A", "pattern": "allreduce", "lr": [0.01, 0.02, 0.04]},
        {"name": "B", "pattern": "atc", "tune_with": "A"},
    ]
    experiment = small(methods=methods)
    done = tuned(experiment, LOSSES)
    assert {run.method.name for run in plan.planned(experiment, {})} == {"A"}
    others = [run for run in plan.planned(experiment, done) if run.method.name == "B"]
    assert [run.topology for run in others if run.seed == 1] == ["ring", "complete"]
    assert all(run.settings == {"pattern": "atc", "lr": 0.02} for run in others)


def test_a_method_may_have_seeds_of_its_own() -> None:
    methods = [{"name": "A", "lr": 0.01}, {"name": "B", "lr": 0.01, "seeds": [1]}]
    runs = plan.planned(small(methods=methods, topologies=["ring"]), {})
    assert [(run.method.name, run.seed) for run in runs] == [("A", 1), ("B", 1), ("A", 2)]


def test_the_best_is_by_the_mean_over_the_tuning_seeds() -> None:
    experiment = small(tune_seeds=[1, 2])
    cell = plan.cells(experiment)[0]
    means = {0.01: (1.0, 4.0), 0.02: (2.0, 2.0), 0.04: (3.0, 3.0)}
    runs = plan.tuning_runs(cell)
    assert len(runs) == 6
    done = {run.key: result(means[run.chosen["lr"]][run.seed - 1]) for run in runs}
    choice = plan.choice(cell, done)
    assert choice is not None
    assert choice["lr"] == 0.02
    done.pop(runs[-1].key)
    assert plan.choice(cell, done) is None, "one is missing"


def test_what_diverges_is_not_chosen() -> None:
    experiment = small()
    cell = plan.cells(experiment)[0]
    runs = plan.tuning_runs(cell)
    lost: plan.Record = {"status": "diverged", "summary": None}
    done = dict(zip([run.key for run in runs], [result(2.0), lost, result(math.nan)], strict=True))
    choice = plan.choice(cell, done)
    assert choice is not None
    assert choice["lr"] == 0.01
    assert plan.choice(cell, {run.key: lost for run in runs}) is None


def test_an_end_of_the_list_is_named() -> None:
    cell = plan.cells(small())[0]
    assert plan.at_the_edge(cell, {"lr": 0.01}) == ["lr"]
    assert plan.at_the_edge(cell, {"lr": 0.02}) == []


def test_every_combination_of_lists_is_a_candidate() -> None:
    methods = [{"name": "A", "pattern": "allreduce", "lr": [1.0, 2.0], "beta1": [0.7, 0.8, 0.9]}]
    assert len(plan.planned(small(methods=methods), {})) == 6


def test_each_case_has_the_whole_grid() -> None:
    cases = [{"name": "iid", "pieces": 0}, {"name": "by class", "pieces": 2}]
    experiment = small(cases=cases)
    runs = plan.planned(experiment, {})
    assert len(runs) == 12
    assert [run.flat()["pieces"] for run in (runs[0], runs[-1])] == [0, 2]


def test_a_key_holds_what_the_numbers_depend_on() -> None:
    """Results are kept by it: it must be the same tomorrow."""
    methods = [{"name": "A", "pattern": "allreduce", "lr": 0.5}]
    recipe = {"run": {"steps": 4, "seed": 9, "evaluate_every": 2}, "cluster": {"gamma": 2.0}}
    (first, _) = plan.planned(small(methods=methods, recipe=recipe), {})
    hashed = hashlib.sha256(b'{"steps":4}').hexdigest()[:12]
    assert first.key == f'["","A","",1,{{"lr":0.5,"pattern":"allreduce"}},"{hashed}"]'


def test_other_settings_are_other_runs() -> None:
    run = plan.planned(small(), {})[0]
    recipe = table()["recipe"]
    recipe["run"]["steps"] = 5
    others = [
        replace(run, seed=2),
        replace(run, topology="ring"),
        replace(run, chosen={**run.chosen, "lr": 0.3}),
        replace(run, case=Case("other")),
        replace(run, experiment=small(recipe=recipe)),
    ]
    keys = {run.key, *(other.key for other in others)}
    assert len(keys) == 6
    assert len({run.folder, *(other.folder for other in others)}) == 6


def test_flags_are_those_of_the_program() -> None:
    settings = {"global_batch": 8, "lr": 4e-3, "lazy": False, "tls": True, "suffixes": [".a", ".b"]}
    words = "--global-batch 8 --lr 0.004 --no-lazy --tls --suffixes .a .b"
    assert grid.flags(settings) == words.split()


def test_links_are_emulated_only_on_demand() -> None:
    plain, slow = ({"gamma": 2.0, "emulate": emulate} for emulate in (False, True))
    runs: list[Run] = [plan.planned(small(time=time), {})[0] for time in (plain, slow)]
    assert ["gamma" in run.flat() for run in runs] == [False, True]
    assert runs[0].key == runs[1].key, "the same numbers"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": [1]}, "small: unknown key 'seed'; there are: seeds, methods"),
        ({"seeds": []}, "small: no seeds; an experiment needs"),
        ({"topologies": []}, "DAdam has no topologies; add some"),
        ({"methods": [{"lr": 1.0}]}, "a method has no name, got {'lr': 1.0}"),
        ({"methods": [{"name": "A", "lr": []}]}, "A has an empty list"),
        ({"methods": [{"name": "A"}, {"name": "A"}]}, "two methods are called 'A'"),
        ({"methods": [{"name": "A", "tune_with": "B"}]}, "A has tune_with 'B'; it must"),
        ({"recipe": {"steps": 4}}, "steps is outside a table"),
        ({"recipe": "examples/recipes/nowhere.toml"}, "its recipe cannot be read"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        small(**changes)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "tuning", "whole"),
    [
        ("translation", 33, 53),
        ("translation_fr", 11, 15),
        ("translation_fr_wide", 9, 13),
        ("translation_16", 17, 25),
        ("digits", 12, 12),
        ("masked_language_model", 12, 16),
        ("translation_time", 3, 3),
        ("images", 18, 75),
        ("images_long", 3, 3),
        ("images_workers", 27, 27),
        ("images_hosts", 21, 21),
        ("images_epochs", 4, 21),
        ("language_model", 15, 15),
        ("language_model_adam", 3, 17),
    ],
)
def test_the_experiments_of_the_project(name: str, tuning: int, whole: int) -> None:
    experiment = grid.load(EXPERIMENTS / f"{name}.toml")
    runs = plan.planned(experiment, {})
    assert len(runs) == tuning
    done = {run.key: result(1.0) for run in runs}
    assert len(plan.planned(experiment, done)) == whole
