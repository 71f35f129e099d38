"""The Trainer of Hugging Face's Transformers: a small GPT-2 on bytes of text.

The script exists twice; `diff trainer_ddp.py trainer_gossip.py` shows what Gossamer changes.

    torchrun --nproc-per-node 2 examples/trainer_ddp.py
    torchrun --nproc-per-node 2 examples/trainer_gossip.py

Without --data the text is that of the Python standard library.
"""

import argparse
import tempfile
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from text_data import load, windows


class Lines(TrainerCallback):
    """A line for each epoch, from rank 0."""

    loss = 0.0

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self.loss = logs.get("loss", self.loss)
        if "eval_loss" in logs and state.is_world_process_zero:
            epoch = round(logs["epoch"]) - 1
            print(f"epoch {epoch}: loss {self.loss:.4f}, test {logs['eval_loss']:.4f}", flush=True)


def dataset(text: torch.Tensor, count: int, length: int, seed: int) -> list[dict[str, Any]]:
    x, _ = windows(text, count, length, torch.Generator().manual_seed(seed))
    return [{"input_ids": row, "labels": row} for row in x]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="text file, or a folder of them")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=16, help="windows per worker and step")
    parser.add_argument("--windows", type=int, default=3200, help="of an epoch, for all workers")
    parser.add_argument("--length", type=int, default=64, help="bytes per window")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--save", help="file for the trained parameters")
    args = parser.parse_args()

    torch.set_num_threads(1)
    text, held_back = load(args.data)
    config = GPT2Config(vocab_size=256, n_positions=args.length, n_embd=64, n_layer=2, n_head=4)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            use_cpu=True,
            num_train_epochs=args.epochs,
            per_device_train_batch_size=args.batch,
            per_device_eval_batch_size=64,
            learning_rate=args.lr,
            warmup_steps=20,
            eval_strategy="epoch",
            logging_strategy="epoch",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = Trainer(
            GPT2LMHeadModel(config),
            arguments,
            train_dataset=dataset(text, args.windows, args.length, 0),
            eval_dataset=dataset(held_back, 256, args.length, 1),
            callbacks=[Lines()],
        )
        trainer.train()
    if args.save and trainer.is_world_process_zero():
        torch.save(trainer.model.state_dict(), args.save)


if __name__ == "__main__":
    main()
