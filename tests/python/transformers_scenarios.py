"""Run by torchrun: trains with GossipTrainer and writes what happened to a file as JSON.

transformers_scenarios.py NOTES FOLDER: rank 0 writes NOTES; checkpoints go to FOLDER.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import gossip_support  # noqa: F401  the package's place, before the package

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import torch.distributed as dist
import transformers
from watch_example import spread

from gossamer.transformers import GossipTrainer

STEPS = 6
Notes = dict[str, Any]


class Texts(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Sequences that count upwards."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = (torch.arange(8) + index) % 16
        return {"input_ids": ids, "labels": ids}


class Watch(transformers.TrainerCallback):
    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def on_step_end(self, *_: Any, model: Any, **__: Any) -> None:
        self._notes.setdefault("spread in training", []).append(spread(model))

    def on_evaluate(self, *_: Any, model: Any, **__: Any) -> None:
        self._notes.setdefault("spread in evaluation", []).append(spread(model))

    def on_train_end(self, *_: Any, model: Any, **__: Any) -> None:
        self._notes["spread at the end"] = spread(model)


class OwnAverage(transformers.TrainerCallback):
    """Each worker's own, whose mean over the workers is taken at the very end."""

    def __init__(self, trainer: GossipTrainer, notes: Notes) -> None:
        self._trainer, self._notes = trainer, notes
        self._average = torch.tensor(float(trainer.args.process_index))

    def on_train_end(self, *_: Any, **__: Any) -> None:
        assert self._trainer.gossip is not None
        with self._trainer.gossip.averaged(also=self._average):
            self._notes["own average at the end"] = float(self._average)


class StopsHalfWay(transformers.TrainerCallback):
    def on_step_end(self, _: Any, state: Any, control: Any, **__: Any) -> None:
        control.should_training_stop = state.global_step == STEPS


def make(
    folder: Path,
    notes: Notes,
    steps: int = STEPS,
    watches: bool = True,
    save_workers: bool = False,
    **gossip: Any,
) -> GossipTrainer:
    transformers.set_seed(0)
    config = transformers.GPT2Config(
        vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=0
    )
    args = transformers.TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        max_steps=steps,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        learning_rate=1e-2,
        eval_strategy="steps",
        eval_steps=3,
        save_steps=3,
        logging_steps=3,
        report_to=[],
        disable_tqdm=True,
    )
    return GossipTrainer(
        transformers.GPT2LMHeadModel(config),
        args,
        train_dataset=Texts(),
        eval_dataset=Texts(),
        callbacks=[Watch(notes)] if watches else [],
        gossip={"timeout_s": 60, **gossip},
        save_workers=save_workers,
    )


def flat(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().double().flatten() for p in model.parameters()])


def trained(folder: Path) -> Notes:
    notes: Notes = {}
    trainer = make(folder, notes, metrics=folder / "metrics")
    trainer.add_callback(OwnAverage(trainer, notes))
    trainer.train()
    own = folder / "metrics" / f"metrics.rank{trainer.args.process_index}.jsonl"
    notes["samples"] = [json.loads(line).get("samples") for line in own.read_text().splitlines()]
    notes["wrapped"] = type(trainer.model_wrapped).__name__
    notes["losses"] = [x["eval_loss"] for x in trainer.state.log_history if "eval_loss" in x]
    notes["closed"] = trainer.gossip is None
    if trainer.is_world_process_zero():
        trainer.save_model(str(folder / "last"))  # needs nobody else any more
        for name in ("last", f"checkpoint-{STEPS}"):
            kept = transformers.GPT2LMHeadModel.from_pretrained(folder / name)
            notes[f"{name} away"] = float((flat(kept) - flat(trainer.model)).abs().max())
    return notes


def resumed(folder: Path) -> Notes:
    notes: Notes = {}
    trainer = make(folder, notes, 2 * STEPS)
    trainer.train(resume_from_checkpoint=str(folder / f"checkpoint-{STEPS}"))
    notes["steps"] = trainer.state.global_step
    entry = next(iter(trainer.optimizer.optimizer.state.values()))
    notes["updates"] = float(entry["step"])
    return notes


def stopped(folder: Path) -> Notes:
    """A run that is stopped half-way and resumed, beside one that is not."""
    notes: Notes = {}
    ends = {}
    for name, stops in (("whole", False), ("parts", True)):
        trainer = make(folder / name, {}, 2 * STEPS, watches=False, save_workers=True)
        if stops:
            trainer.add_callback(StopsHalfWay())
        trainer.train()
        if stops:
            trainer = make(folder / name, {}, 2 * STEPS, watches=False, save_workers=True)
            trainer.train(resume_from_checkpoint=True)
        ends[name] = flat(trainer.model)
        notes[name] = [line.get("eval_loss") for line in trainer.state.log_history]
    notes["away"] = float((ends["whole"] - ends["parts"]).abs().max())
    return notes


def allreduce(folder: Path) -> Notes:
    notes: Notes = {}
    make(folder / "allreduce", notes, pattern="allreduce").train()
    return notes


def main(notes: str, folder: str) -> None:
    os.environ["GROUP_RANK"] = os.environ["RANK"]  # so that there is gossip, and no mean of a host
    cases = (trained, resumed, stopped, allreduce)
    found: Notes = {case.__name__: case(Path(folder)) for case in cases}
    try:
        make(Path(folder), {}, lost="go_on")
    except ValueError as error:
        found["goes on in torch's group"] = str(error)
    if dist.get_rank() == 0:
        Path(notes).write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
