"""Stands for the `gossamer` program: keeps its command line and files, and trains nothing.

FAKE_STOP_AT=STEP: a run that is not resumed ends there as if interrupted, with a checkpoint.
FAKE_BREAK_AT=STEP: the same without a checkpoint, and with a message.
Each call is noted in FAKE_LOG. A learning rate above 1 is one at which a gradient is not finite.
"""

import json
import math
import os
import sys
from pathlib import Path

BEST = {"allreduce": 0.02, "cwa": 0.04}


def flags_of(words: list[str]) -> dict[str, str]:
    return {
        word[2:].replace("-", "_"): value
        for word, value in zip(words, [*words[1:], ""], strict=True)
        if word.startswith("--")
    }


def loss(flags: dict[str, str], step: int) -> float:
    """Falls with the steps, and is the lower the nearer the rate is to the pattern's best."""
    distance = abs(math.log2(float(flags["lr"]) / BEST[flags["pattern"]]))
    return 2 + distance + 0.1 * int(flags["seed"]) + 1 / step


def write_line(folder: Path, flags: dict[str, str], step: int) -> None:
    with (folder / "metrics.rank0.jsonl").open("a") as file:
        file.write(json.dumps({"step": step, "loss": 9.0}) + "\n")
        point = {"val_loss": loss(flags, step), "val_accuracy": 0.5, "disagreement": 0.1 / step}
        if step % int(flags["evaluate_every"]) == 0:
            file.write(json.dumps({"step": step, **point}) + "\n")


def stop(folder: Path, step: int) -> None:
    if str(step) == os.environ.get("FAKE_BREAK_AT"):
        print("gossamer: [train] broken", file=sys.stderr)
        sys.exit(1)
    if str(step) == os.environ.get("FAKE_STOP_AT"):
        (folder / "checkpoints").mkdir()
        (folder / "checkpoints" / "latest").write_text("step")
        with (folder / "metrics.rank0.jsonl").open("a") as file:
            file.write('{"step": 4, "val_l')  # killed while it wrote
        sys.exit(130)


def train(flags: dict[str, str]) -> None:
    folder = Path(flags.get("resume") or flags["out"])
    resumed = "resume" in flags
    if resumed:
        with (folder / "metrics.rank0.jsonl").open("a") as file:
            file.write("\n")
        flags = json.loads((folder / "run.toml").read_text())
    else:
        folder.mkdir()
        (folder / "run.toml").write_text(json.dumps(flags))
    if float(flags["lr"]) > 1:
        sys.exit(3)
    for step in range(1, int(flags["steps"]) + 1):
        write_line(folder, flags, step)
        if not resumed:
            stop(folder, step)
    point = {"val_loss": loss(flags, int(flags["steps"])), "disagreement": 0.0, "val_accuracy": 0.5}
    (folder / "summary.json").write_text(json.dumps(point))


def translate(words: list[str]) -> None:
    flags = flags_of(words)
    lines = Path(flags["input"]).read_text().splitlines()
    Path(flags["output"]).write_text("".join(f"{line}\n" for line in lines))


def main() -> None:
    with Path(os.environ["FAKE_LOG"]).open("a") as file:
        file.write(" ".join(sys.argv[1:]) + "\n")
    if sys.argv[1] == "--version":
        print("gossamer 9.9.9")
    elif sys.argv[1] == "translate":
        translate(sys.argv[2:])
    else:
        train(flags_of(sys.argv[2:]))


if __name__ == "__main__":
    main()
