"""The SFTTrainer of TRL: a small GPT-2 learns to go on with lines of source text.

The script exists twice; `diff sft_ddp.py sft_gossip.py` shows what Gossamer changes.

    torchrun --nproc-per-node 2 examples/sft_ddp.py
    torchrun --nproc-per-node 2 examples/sft_gossip.py

Without --data the text is that of the Python standard library. Nothing is downloaded: the model is
new, and a byte is a token.
"""

import argparse
import tempfile
from typing import Any

import torch
from datasets import Dataset
from transformers import ByT5Tokenizer, GPT2Config, GPT2LMHeadModel, TrainerCallback
from trl import SFTConfig, SFTTrainer

from text_data import load


class Lines(TrainerCallback):
    """A line for each epoch, from rank 0."""

    loss = 0.0

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self.loss = logs.get("loss", self.loss)
        if "eval_loss" in logs and state.is_world_process_zero:
            epoch = round(logs["epoch"]) - 1
            print(f"epoch {epoch}: loss {self.loss:.4f}, test {logs['eval_loss']:.4f}", flush=True)


def pairs(text: torch.Tensor, count: int) -> Dataset:
    """The first half of a line is the prompt, the other one is what is learnt."""
    lines = bytes(text.tolist()).decode(errors="replace").splitlines()
    lines = [line for line in lines if 24 <= len(line) <= 80][:count]
    halves = [(line[: len(line) // 2], line[len(line) // 2 :]) for line in lines]
    return Dataset.from_list([{"prompt": prompt, "completion": rest} for prompt, rest in halves])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="text file, or a folder of them")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=16, help="lines per worker and step")
    parser.add_argument("--lines", type=int, default=3200, help="of an epoch, for all workers")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--save", help="file for the trained parameters")
    args = parser.parse_args()

    torch.set_num_threads(1)
    text, held_back = load(args.data)
    tokenizer = ByT5Tokenizer()
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=128, n_embd=64, n_layer=2, n_head=4)
    with tempfile.TemporaryDirectory() as folder:
        arguments = SFTConfig(
            folder,
            use_cpu=True,
            bf16=False,
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
        trainer = SFTTrainer(
            GPT2LMHeadModel(config),
            arguments,
            train_dataset=pairs(text, args.lines),
            eval_dataset=pairs(held_back, 256),
            processing_class=tokenizer,
            callbacks=[Lines()],
        )
        trainer.train()
    if args.save and trainer.is_world_process_zero():
        torch.save(trainer.model.state_dict(), args.save)


if __name__ == "__main__":
    main()
