"""Markdown tables of the results, a page per experiment in docs/results/tables."""

import argparse
import sys
from pathlib import Path

import outcomes
from grid import ROOT, Case, Experiment, format_value
from outcomes import Outcome
from plan import Cell, Done, at_the_edge, cells, mean_tuning_loss, tuned_cell
from rows import Row, Spread, baseline, differences, rows, spread
from step_times import StepTimes
from time_table import TimeRow, own_times, time_rows

FOLDER = ROOT / "docs" / "results" / "tables"
SCORES = {"translation": ("bleu", "BLEU"), "images": ("top1", "top-1, %")}
NOTHING, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
AT_THE_EDGE = r"\*"
LEGEND = (
    "Mean over seeds ± sample standard deviation (in brackets: largest minus smallest). "
    "Differences are to the best all-reduce in float, seed by seed."
)
NO_RESULTS = "No results yet; `make experiments` makes them."
ABOUT = (
    "`experiments/tables.py --write-docs` writes this page; do not edit it by hand. "
    "[Quality](../quality.md) and [sources](../sources.md) say what the numbers mean."
)


def number(value: float, digits: int, sign: bool = False) -> str:
    return format(value, f"{'+' if sign else ''}.{digits}f").replace("-", MINUS)


def with_spread(found: Spread | None, digits: int, sign: bool = False) -> str:
    if found is None:
        return NOTHING
    text = number(found.mean, digits, sign)
    if found.deviation is None:
        return text
    return f"{text} ± {number(found.deviation, digits)} ({number(found.width, digits)})"


def line(words: list[str]) -> str:
    return f"| {' | '.join(words)} |"


def chosen_words(row: Row) -> str:
    """What tuning chose; an asterisk where an end of the list was the best."""
    edges = at_the_edge(row.cell, row.chosen)
    words = [
        f"{key} {format_value(row.chosen[key])}{AT_THE_EDGE if key in edges else ''}"
        for key in row.cell.method.choices
    ]
    return ", ".join(words) or NOTHING


def seed_words(row: Row) -> str:
    seeds = ", ".join(map(str, row.records)) or NOTHING
    return f"{seeds} ({row.diverged} diverged)" if row.diverged else seeds


def row_words(row: Row, base: Row | None, score: str) -> list[str]:
    def cell(what: str, digits: int) -> list[str]:
        mine = with_spread(spread(row.values(what)), digits)
        if base is None or row is base:
            return [mine, NOTHING]
        return [mine, with_spread(spread(differences(row, base, what)), digits, sign=True)]

    return [
        row.cell.method.name,
        row.cell.topology or NOTHING,
        chosen_words(row),
        *cell("val_loss", 3),
        *(cell(score, 2) if score else []),
        with_spread(spread(row.values("train_loss")), 3),
        disagreement(row),
        seed_words(row),
    ]


def disagreement(row: Row) -> str:
    found = spread(row.values("disagreement"))
    return NOTHING if found is None or not row.cell.topology else number(found.mean, 4)


def results_table(found: list[Row], task: str) -> list[str]:
    score, score_name = SCORES.get(task, ("", ""))
    columns = ["method", "topology", "tuned", "val loss", "difference"]
    columns += [score_name, "difference"] if score else []
    columns += ["train loss", "largest disagreement", "seeds"]
    base = baseline(found)
    body = [line(row_words(row, base, score)) for row in found]
    return [line(columns), line(["---"] * len(columns)), *body]


def tuning_words(cell: Cell, done: Done) -> str:
    """Candidates of a method with their losses, e.g. `lr 0.004: 2.086`."""
    words = []
    for candidate in cell.method.candidates():
        settings = " ".join(f"{key} {format_value(candidate[key])}" for key in cell.method.choices)
        loss = mean_tuning_loss(cell, candidate, done)
        words.append(f"{settings}: {NOTHING if loss is None else number(loss, 3)}")
    return "; ".join(words)


def tuning_lines(experiment: Experiment, case: Case, done: Done) -> list[str]:
    """What was tried, once for each method and topology on which it was."""
    found: dict[str, str] = {}
    for cell in cells(experiment):
        at = tuned_cell(cell)
        if cell.case == case and cell.method.choices:
            found[at.name] = tuning_words(at, done)
    seeds = ", ".join(map(str, experiment.tune_seeds))
    heading = f"Validation losses of the tuning (seeds {seeds}; {AT_THE_EDGE} above: a list's end):"
    return [heading, "", *(f"- {name}: {words}" for name, words in found.items())] if found else []


def case_lines(
    experiment: Experiment, case: Case, done: Done, times: StepTimes | None
) -> list[str]:
    found = rows(experiment, case, done)
    title = [f"**{case.name}**", ""] if case.name else []
    table = results_table(found, experiment.task) if found else ["No results yet."]
    return [
        *title,
        *table,
        "",
        *tuning_lines(experiment, case, done),
        "",
        *time_lines(found, times or own_times(experiment, found)),
    ]


def time_words(each: TimeRow, base: TimeRow) -> list[str]:
    per_step = [number(each.ms, 0), number(each.ms / base.ms, 3)]
    expected = NOTHING if each.predicted_ms is None else number(each.predicted_ms, 0)
    whole = each.ms * each.steps / (base.ms * base.steps)
    reached = [NOTHING, NOTHING]
    if each.reached_at is not None and base.reached_at:
        ratio = each.ms * each.reached_at / (base.ms * base.reached_at)
        reached = [str(each.reached_at), number(ratio, 3)]
    cell = each.row.cell
    name = [cell.method.name, cell.topology or NOTHING]
    return [*name, *per_step, expected, str(each.steps), number(100 * (1 - whole), 0), *reached]


def time_lines(found: list[Row], times: StepTimes | None) -> list[str]:
    made = time_rows(found, times) if times else []
    if times is None or len(made) < 2:
        return []
    columns = ["method", "topology", "ms per step", "/ AllReduce", "predicted ms", "steps"]
    columns += ["less time in all, %", "AllReduce's loss at step", "time / AllReduce's"]
    about = (
        f"Times on the emulated cluster, {times.cluster} workers, \N{GREEK SMALL LETTER GAMMA} = "
        f"{times.gamma:g}: milliseconds per step {times.source}. A method has reached "
        "all-reduce's loss at the first validation where its mean over the seeds is at most what "
        "all-reduce ends with."
    )
    body = [line(time_words(each, made[0])) for each in made]
    return [about, "", line(columns), line(["---"] * len(columns)), *body, ""]


def made_with(done: Done) -> str:
    every = list(done.values())
    machines = {f"{each['machine']['cpu']}, {each['machine']['cores']} cores" for each in every}
    signatures = {each["bleu_signature"] for each in every if "bleu_signature" in each}
    text = f"{LEGEND} {len(every)} runs on {'; '.join(sorted(machines))}."
    return f"{text} BLEU: `{'`, `'.join(sorted(signatures))}`." if signatures else text


def document(experiment: Experiment, done: Done, times: StepTimes | None = None) -> str:
    """The Markdown of an experiment, without results of another recipe than the present one; with
    `times` also how long the runs would have taken."""
    now = experiment.recipe_hash()
    mine = {key: record for key, record in done.items() if record["recipe_hash"] == now}
    lines = [f"# {experiment.title}", ""]
    if not mine:
        return "\n".join([*lines, NO_RESULTS])
    lines += [made_with(mine), ""]
    for case in experiment.cases:
        lines += case_lines(experiment, case, mine, times)
    return "\n".join(lines).rstrip()


def page(table: str) -> str:
    title, rest = table.split("\n\n", 1)
    return f"{title}\n\n{ABOUT}\n\n{rest}\n"


def show(outcome: Outcome, args: argparse.Namespace) -> None:
    table = document(outcome.experiment, outcome.done, outcome.times)
    if args.write_docs:
        args.folder.mkdir(parents=True, exist_ok=True)
        (args.folder / f"{outcome.experiment.name}.md").write_text(page(table))
    else:
        print(f"{table}\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write-docs", action="store_true", help="a page for each")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="another folder for them")
    return outcomes.run(parser, arguments, show)


if __name__ == "__main__":
    sys.exit(main())
