"""What an experiment consists of: methods, topologies, seeds, and the settings to choose among."""

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "experiments"
ALL_REDUCE = "allreduce"

Settings = dict[str, Any]

# Files of the data folder; what a run's numbers do not depend on; what only its times depend on.
PATHS = ("data", "target", "validation", "validation_target", "vocabulary_file")
HOW_IT_RUNS = (
    "seed evaluate_every checkpoint_every keep trace_steps timeout_s kernel_threads".split()
)
EMULATION = "gamma link_rate link_latency inside_rate compute_ms".split()

REQUIRED = ("seeds", "methods", "recipe")
OF_METHODS = ("topologies", "tune_on", "seeds")  # for all methods that do not have their own
NO_SETTINGS = ("name", "tune_with", *OF_METHODS)
OPTIONAL = ("title", "topologies", "tune_on", "tune_seeds", "cases", "time")


class ExperimentError(Exception):
    """Something that whoever started the experiments can mend."""


@dataclass(frozen=True)
class Method:
    """A row of the table. A setting of `choices` has several values, of which tuning finds one."""

    name: str
    settings: Settings
    choices: dict[str, list[Any]]
    topologies: tuple[str, ...]  # one empty name where the method has none
    tune_on: str  # the topology whose choice all others take; empty: each has its own
    seeds: tuple[int, ...]
    tune_with: str = ""  # the method whose choice this one takes; empty: its own

    def candidates(self) -> list[Settings]:
        """Its settings with every combination of the choices."""
        combinations = itertools.product(*self.choices.values())
        return [
            {**self.settings, **dict(zip(self.choices, values, strict=True))}
            for values in combinations
        ]

    def as_in(self, candidate: Settings) -> Settings:
        """Its settings with the choices of a candidate, maybe of another method."""
        return {**self.settings, **{key: candidate[key] for key in self.choices}}


@dataclass(frozen=True)
class Case:
    """A variant of the whole experiment with a table of its own, e.g. a split of the data."""

    name: str = ""
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    recipe: Settings  # all tables of the recipe in one
    methods: tuple[Method, ...]
    cases: tuple[Case, ...]
    tune_seeds: tuple[int, ...]
    time: Settings

    @property
    def task(self) -> str:
        return str(self.recipe.get("task", "text"))

    def is_all_reduce(self, method: Method) -> bool:
        return {**self.recipe, **method.settings}.get("pattern") == ALL_REDUCE

    def is_reference(self, method: Method) -> bool:
        """All-reduce as DistributedDataParallel does it: what others are compared to."""
        codec = {**self.recipe, **method.settings}.get("codec", "fp32")
        return self.is_all_reduce(method) and codec == "fp32"

    def recipe_hash(self) -> str:
        """Of everything in the recipe that the numbers of a run depend on."""
        leave_out = (*HOW_IT_RUNS, *EMULATION)
        kept = {key: value for key, value in self.recipe.items() if key not in leave_out}
        return hashlib.sha256(canonical(kept).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Run:
    """One call of `gossamer train`."""

    experiment: Experiment
    case: Case
    method: Method
    topology: str
    seed: int
    chosen: Settings  # the method's settings, with one value each

    @property
    def settings(self) -> Settings:
        """Those that the recipe does not have."""
        return {**self.case.settings, **self.chosen}

    @property
    def key(self) -> str:
        return key_of(
            self.case.name,
            self.method.name,
            self.topology,
            self.seed,
            self.settings,
            self.experiment.recipe_hash(),
        )

    @property
    def name(self) -> str:
        """For people; two runs may have the same one only if their settings differ."""
        parts = [self.case.name, self.method.name, self.topology]
        parts += [f"{key} {format_value(self.chosen[key])}" for key in self.method.choices]
        return ", ".join([*filter(None, parts), f"seed {self.seed}"])

    @property
    def folder(self) -> str:
        words = "".join(
            c if c.isalnum() or c in ".-" else "_" for c in self.name.replace(", ", "-")
        )
        return f"{words}-{hashlib.sha256(self.key.encode()).hexdigest()[:8]}"

    def flat(self) -> Settings:
        """Everything that `gossamer train` is told."""
        emulation = self.experiment.time if self.experiment.time.get("emulate") else {}
        links = {key: value for key, value in emulation.items() if key in EMULATION}
        graph = {"topology": self.topology} if self.topology else {}
        seed = {"seed": self.seed}
        return {**self.experiment.recipe, **links, **self.settings, **graph, **seed}


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def key_of(
    case: str, method: str, topology: str, seed: int, settings: Settings, recipe_hash: str
) -> str:
    """Two runs with the same key have the same numbers."""
    return canonical([case, method, topology, seed, settings, recipe_hash])


def format_value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def flags(settings: Settings) -> list[str]:
    """The settings as `gossamer train` reads them."""
    words: list[str] = []
    for key, value in settings.items():
        flag = key.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, list):
            words += [f"--{flag}", *map(str, value)]
        else:
            words += [f"--{flag}", str(value)]
    return words


def files_of(settings: Settings) -> list[str]:
    """The paths in the data folder that a run reads."""
    return [str(settings[key]) for key in PATHS if settings.get(key)]


def every_name() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(path: Path) -> Experiment:
    """Reads an experiment; raises ExperimentError where it is wrong."""
    try:
        table = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ExperimentError(f"{path.name} cannot be read: {error}") from error
    return from_table(path.stem, table)


def from_table(name: str, table: Mapping[str, Any]) -> Experiment:
    check_keys(name, table)
    recipe = flat_recipe(name, table["recipe"])
    shared = {key: table[key] for key in OF_METHODS if key in table}
    methods = tuple(method_of(name, each, recipe, shared) for each in table["methods"])
    check_names(name, [method.name for method in methods])
    methods = tuple(with_choices_of(name, each, methods) for each in methods)
    return Experiment(
        name=name,
        title=table.get("title", name),
        recipe=recipe,
        methods=methods,
        cases=tuple(map(case_of, table.get("cases", [{"name": ""}]))),
        tune_seeds=tuple(table.get("tune_seeds", table["seeds"][:1])),
        time=dict(table.get("time", {})),
    )


def check_keys(name: str, table: Mapping[str, Any]) -> None:
    for key in REQUIRED:
        if not table.get(key):
            raise ExperimentError(f"{name}: no {key}; an experiment needs {', '.join(REQUIRED)}")
    known = (*REQUIRED, *OPTIONAL)
    for key in table:
        if key not in known:
            raise ExperimentError(f"{name}: unknown key {key!r}; there are: {', '.join(known)}")


def check_names(name: str, names: Sequence[str]) -> None:
    for each in names:
        if names.count(each) > 1:
            raise ExperimentError(f"{name}: two methods are called {each!r}; rename one")


def flat_recipe(name: str, recipe: Mapping[str, Any] | str) -> Settings:
    """The tables of a recipe, or of the file at a path from the project's root, as one table."""
    if isinstance(recipe, str):
        try:
            recipe = tomllib.loads((ROOT / recipe).read_text())
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise ExperimentError(f"{name}: its recipe cannot be read: {error}") from error
    flat: Settings = {}
    for section, settings in recipe.items():
        if not isinstance(settings, dict):
            raise ExperimentError(f"{name}: {section} is outside a table; move it, e.g. to [run]")
        flat.update(settings)
    return flat


def method_of(name: str, entry: Mapping[str, Any], recipe: Settings, shared: Settings) -> Method:
    if "name" not in entry:
        raise ExperimentError(f"{name}: a method has no name, got {dict(entry)}; add one")
    entry = {**shared, **entry}
    settings = {key: value for key, value in entry.items() if key not in NO_SETTINGS}
    choices = {key: value for key, value in settings.items() if isinstance(value, list)}
    gossips = {**recipe, **settings}.get("pattern") != ALL_REDUCE
    graphs = tuple(entry.get("topologies", ())) if gossips else ("",)
    if not graphs:
        raise ExperimentError(f"{name}: {entry['name']} has no topologies; add some")
    if any(not value for value in choices.values()):
        raise ExperimentError(f"{name}: {entry['name']} has an empty list; give it values")
    on, seeds = entry.get("tune_on", ""), tuple(entry["seeds"])
    return Method(
        entry["name"], settings, choices, graphs, on, seeds, tune_with=entry.get("tune_with", "")
    )


def with_choices_of(name: str, method: Method, methods: Sequence[Method]) -> Method:
    """The method, with the lists of the one that it names."""
    if not method.tune_with:
        return method
    lists = {each.name: each.choices for each in methods if each.choices}
    if method.choices or method.tune_with not in lists:
        raise ExperimentError(
            f"{name}: {method.name} has tune_with {method.tune_with!r}; it must have no lists "
            f"itself and name a method that has: {', '.join(lists)}"
        )
    return replace(method, choices=lists[method.tune_with])


def case_of(entry: Mapping[str, Any]) -> Case:
    return Case(entry["name"], {key: value for key, value in entry.items() if key != "name"})
