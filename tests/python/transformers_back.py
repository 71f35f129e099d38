"""A program for `gossamer launch`: a worker that is killed comes back into GossipTrainer.train().

transformers_back.py FOLDER WORDS: WORDS are JSON: "dies", by rank after which step a worker is
killed the first time that it is there; "resume", a checkpoint; "steps", how many are made of the
320 that are planned. Each rank writes FOLDER/found-<rank>.json.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import gossip_support  # noqa: F401  the package's place, before the package

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from transformers_scenarios import Texts, make

import gossamer

STEPS, PAUSE_S = 320, 0.03
# While one is away, so that the run does not end before it is back, however long a start takes.
LONG_PAUSE_S, LONG_PAUSES = 1.0, 80


class Numbered(Texts):
    """Notes which sequences are trained on, by step."""

    def __init__(self) -> None:
        self.noted: list[int] = []

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        self.noted.append(index)
        return super().__getitem__(index)


class Counts(transformers.TrainerCallback, transformers.trainer_callback.ExportableState):
    """One whose state the others have to tell."""

    def __init__(self) -> None:
        self.steps = 0

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.steps += 1

    def state(self) -> dict[str, Any]:
        return {"args": {}, "attributes": {"steps": self.steps}}


def note_losses(trainer: Any) -> dict[int, float]:
    """By step of the Trainer, from now on."""
    noted: dict[int, float] = {}
    step = trainer.training_step

    def noting(*args: Any, **kwargs: Any) -> torch.Tensor:
        loss: torch.Tensor = step(*args, **kwargs)
        now = trainer.state.global_step + 1  # which may have several backwards
        noted[now] = noted.get(now, 0.0) + float(loss)
        return loss

    trainer.training_step = noting
    return noted


class Watch(transformers.TrainerCallback):
    def __init__(self, folder: Path, data: Numbered, dies: dict[str, int], steps: int) -> None:
        self._away, self._here = folder / "away", folder / "here"
        self._long_pauses = LONG_PAUSES
        self.began = -1
        self._steps = steps
        self.samples: dict[int, list[int]] = {}
        self._data = data
        is_first = os.environ["GOSSAMER_RESTARTS"] == "0"
        self._dies = dies.get(str(RANK), -1) if is_first else -1

    def on_train_begin(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        self.began = state.global_step
        if os.environ["GOSSAMER_RESTARTS"] != "0":
            self._here.touch()

    def on_step_end(self, args: Any, state: Any, control: Any, *_: Any, **__: Any) -> None:
        self.samples[state.global_step] = list(self._data.noted)
        self._data.noted.clear()
        if state.global_step == self._dies:
            self._away.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        control.should_training_stop = state.global_step >= self._steps
        waits = self._away.exists() and not self._here.exists() and self._long_pauses > 0
        self._long_pauses -= waits
        time.sleep(LONG_PAUSE_S if waits else PAUSE_S)


def main(folder: Path, dies: dict[str, int], resume: str | None, steps: int) -> None:
    trainer = make(
        folder / "out", {}, STEPS, lost="go_on", suspect_s=60, topology="ring", watches=False
    )
    trainer.args.eval_steps = trainer.args.save_steps = trainer.args.logging_steps = 80
    trainer.train_dataset = data = Numbered()
    watch = Watch(folder, data, dies, steps)
    counts = Counts()
    trainer.add_callback(watch)
    trainer.add_callback(counts)
    losses = note_losses(trainer)
    trainer.train(resume_from_checkpoint=resume)
    history = trainer.state.log_history
    optimizer = trainer.optimizer.optimizer
    found = {
        "began": watch.began,
        "steps": trainer.state.global_step,
        "epoch": trainer.state.epoch,
        "counted": counts.steps,
        "saves": trainer.is_world_process_zero(),
        "eval": [(line["step"], line["eval_loss"]) for line in history if "eval_loss" in line],
        "logged": [(line["step"], line["loss"]) for line in history if "loss" in line],
        "losses": losses,
        "samples": watch.samples,
        "rate": optimizer.param_groups[0]["lr"],
        "last epoch": trainer.lr_scheduler.last_epoch,
        "updates": max(float(entry["step"]) for entry in optimizer.state.values()),
        "mean": torch.cat([p.detach().flatten() for p in trainer.model.parameters()]).tolist(),
    }
    (folder / f"found-{RANK}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    RANK, _ = gossamer.init()
    words = json.loads(sys.argv[2])
    dies, resume, steps = (words.get(name) for name in ("dies", "resume", "steps"))
    main(Path(sys.argv[1]), dies or {}, resume, steps or STEPS)
