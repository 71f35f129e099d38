"""A program for `gossamer launch`: GossipTrainer goes on when rank 0 is killed.

transformers_lost.py FOLDER: each rank that is left writes FOLDER/found-<rank>.json.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import gossip_support  # noqa: F401  the package's place, before the package

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from transformers_scenarios import Texts, flat, make

import gossamer

STEPS, LAST = 12, 4


class Dies(transformers.TrainerCallback):
    def on_step_end(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        if RANK == 0 and state.global_step == LAST:
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path) -> None:
    trainer = make(
        folder / "out", {}, STEPS, lost="go_on", suspect_s=60, topology="ring", watches=False
    )
    trainer.add_callback(Dies())
    trainer.train()
    trainer.save_model(str(folder / "last"))
    found: dict[str, Any] = {"after": trainer.evaluate()["eval_loss"]}
    history = trainer.state.log_history
    found["eval"] = [line["eval_loss"] for line in history if "eval_loss" in line]
    found["loss"] = [line["loss"] for line in history if "loss" in line]
    found["steps"] = trainer.state.global_step
    rows = [Texts()[k]["labels"] for k in range(len(Texts()))]
    predicted = trainer.predict(Texts())
    found["rows are there"] = predicted.label_ids.tolist() == [row.tolist() for row in rows]
    ids = torch.stack(rows)
    with torch.no_grad():
        logits = trainer.model.eval()(input_ids=ids).logits
    every = {"input_ids": ids, "labels": ids}
    found["loss of all rows"] = float(trainer.prediction_step(trainer.model, every, True)[0])
    found["predictions away"] = float((torch.tensor(predicted.predictions) - logits).abs().max())
    found["saves"] = trainer.is_world_process_zero()
    if found["saves"]:
        for name in ("last", f"out/checkpoint-{STEPS}"):
            kept = transformers.GPT2LMHeadModel.from_pretrained(folder / name)
            found[f"{name} away"] = float((flat(kept) - flat(trainer.model)).abs().max())
    (folder / f"found-{RANK}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    RANK, _ = gossamer.init()
    main(Path(sys.argv[1]))
