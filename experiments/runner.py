"""Does one run: trains, or goes on where it stopped, translates, scores, and makes its record."""

import gzip
import importlib.util
import json
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import emulation
import machine
from grid import PATHS, ExperimentError, Run, Settings, flags
from plan import Record

NOT_FINITE = 3  # the exit code of `gossamer train` for a gradient that was not
INTERRUPTED = 130
PATIENCE_S = 30  # for a training that is to stop
NO_TRACE = {"trace_steps": 0, "keep": 1}
# The run folder, as a reader would call it.
FOLDER_WORD = "run"
HYPOTHESES = "val.hyp"


@dataclass(frozen=True)
class Place:
    """Where things are on this machine; nothing of it goes into a record."""

    program: Path
    data: Path
    runs: Path

    def folder(self, run: Run) -> Path:
        return self.runs / run.experiment.name / run.folder


def missing_files(run: Run, data: Path) -> list[str]:
    """Those of its data that are not in the data folder, with paths from there."""
    settings = run.flat()
    files = [str(settings[key]) for key in PATHS if settings.get(key)]
    return [file for file in files if not (data / file).exists()]


def train_words(run: Run, folder: str) -> list[str]:
    """The arguments of `gossamer`. They hold the whole recipe, so that a line is enough to repeat
    the run."""
    return ["train", *flags({**NO_TRACE, **run.flat()}), "--json", "--out", folder]


def translate_words(settings: Settings, folder: str) -> list[str]:
    source = str(settings["validation"])
    return ["translate", folder, "--input", source, "--output", f"{folder}/{HYPOTHESES}"]


def commands(run: Run) -> list[str]:
    """What a reader types in the data folder for the same figures."""
    train = shlex.join(["gossamer", *train_words(run, FOLDER_WORD)])
    settings = run.flat()
    after = []
    if scores_bleu(settings):
        after.append(["gossamer", *translate_words(settings, FOLDER_WORD)])
        reference = str(settings["validation_target"])
        after.append(["sacrebleu", reference, "-i", f"{FOLDER_WORD}/{HYPOTHESES}"])
    return [*emulation.commands(run.experiment, train), *map(shlex.join, after)]


def scores_bleu(settings: Settings) -> bool:
    return settings.get("task") == "translation" and bool(settings.get("validation_target"))


def perform(run: Run, place: Place) -> Record:
    """Raises ExperimentError where a program fails, KeyboardInterrupt where one was interrupted;
    what is done by then is kept for the next time."""
    folder = place.folder(run)
    code, resumed = train(run, folder, place)
    record = heading(run, place)
    if code == NOT_FINITE:
        shutil.rmtree(folder)
        return {**record, "status": "diverged", "resumed": resumed, "summary": None, "curve": []}
    summary = json.loads((folder / "summary.json").read_text())
    record |= {"status": "ok", "resumed": resumed, "summary": summary}
    settings = run.flat()
    if scores_bleu(settings):
        record |= translation_scores(settings, folder, place)
    return {**record, "curve": curve(folder / "metrics.rank0.jsonl")}


def tidy(run: Run, place: Place) -> None:
    """Drops the checkpoints, by far the largest files of a run; for runs that are recorded."""
    shutil.rmtree(place.folder(run) / "checkpoints", ignore_errors=True)


def heading(run: Run, place: Place) -> Record:
    return {
        "experiment": run.experiment.name,
        "case": run.case.name,
        "method": run.method.name,
        "topology": run.topology,
        "seed": run.seed,
        "settings": run.settings,
        "recipe_hash": run.experiment.recipe_hash(),
        "commands": commands(run),
        "gossamer": machine.version(place.program),
        "commit": machine.commit(place.program),
        "machine": machine.machine(),
        "date": machine.today(),
    }


def is_trained(folder: Path) -> bool:
    return (folder / "summary.json").exists()


def is_interrupted(folder: Path) -> bool:
    return not is_trained(folder) and (folder / "checkpoints" / "latest").exists()


def train(run: Run, folder: Path, place: Place) -> tuple[int, bool]:
    """Exit code 0 or NOT_FINITE, and whether a checkpoint was the start."""
    if is_trained(folder):
        return 0, False
    resumed = is_interrupted(folder)
    if resumed:
        words = ["train", "--resume", str(folder), "--json"]
    else:
        shutil.rmtree(folder, ignore_errors=True)  # of a run without a checkpoint
        folder.parent.mkdir(parents=True, exist_ok=True)
        words = train_words(run, str(folder))
    with emulation.made(run.experiment) as launcher:
        code = call(words, place, launcher)
    if code not in (0, NOT_FINITE):
        raise ExperimentError(
            f"{run.name}: gossamer train ended with code {code}; its message is above, and "
            f"`{commands(run)[0]}` in the data folder repeats it"
        )
    return code, resumed


def call(words: list[str], place: Place, launcher: Sequence[str] = ()) -> int:
    """`gossamer` in the data folder; what it says on stderr is passed on."""
    command = [*launcher, str(place.program), *words]
    try:
        process = subprocess.Popen(command, cwd=place.data, stdout=subprocess.DEVNULL)
    except OSError as error:
        raise ExperimentError(f"gossamer cannot be started: {error}; run make build") from error
    try:
        code = process.wait()
    except KeyboardInterrupt:
        stop(process)
        raise
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def translation_scores(settings: Settings, folder: Path, place: Place) -> Record:
    if call(translate_words(settings, str(folder)), place) != 0:
        raise ExperimentError(f"{folder.name}: gossamer translate failed; its message is above")
    reference = read_lines(place.data / str(settings["validation_target"]))
    return bleu(read_lines(folder / HYPOTHESES), reference)


def needs_sacrebleu() -> str:
    """Why there can be no BLEU; empty if there can."""
    if importlib.util.find_spec("sacrebleu"):
        return ""
    return "BLEU needs sacrebleu, which is not installed; run make setup"


def bleu(hypotheses: list[str], references: list[str]) -> Record:
    """sacrebleu's corpus BLEU with its defaults."""
    from sacrebleu.metrics.bleu import BLEU

    if len(hypotheses) != len(references):
        raise ExperimentError(
            f"{len(hypotheses)} translations, but {len(references)} references; "
            "validation and validation_target must have the same number of lines"
        )
    metric = BLEU()
    score = metric.corpus_score(hypotheses, [references]).score
    return {"bleu": score, "bleu_signature": str(metric.get_signature())}


def read_lines(path: Path) -> list[str]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    lines = text.decode().split("\n")  # not splitlines, which knows more ends of a line
    return lines[:-1] if lines[-1] == "" else lines


def curve(metrics: Path) -> list[list[Any]]:
    """[step, val_loss, val_accuracy, disagreement] of every validation. A run that went on from a
    checkpoint has some steps twice, and maybe a line without an end: the later one counts."""
    points: dict[int, list[Any]] = {}
    for line in metrics.read_text().splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if "val_loss" in found:
            values = [found.get(key) for key in ("val_loss", "val_accuracy", "disagreement")]
            points[found["step"]] = [found["step"], *values]
    return [points[step] for step in sorted(points)]
