"""A causal language model with the Trainer of transformers, and the package's in its place."""

import tempfile
from typing import Any

import torch
from job import Job
from parts import SYMBOLS, text, windows

NEEDS = ("accelerate", "transformers.trainer", "transformers.models.gpt2.modeling_gpt2")
LR, STEPS, BATCH, LENGTH = 2e-3, 60, 8, 64


def train(job: Job) -> dict[str, Any]:
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    from gossamer.transformers import GossipTrainer

    training, held_back = text()
    steps = len(job.step_numbers(STEPS))
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=SYMBOLS,
            n_positions=LENGTH,
            n_embd=48,
            n_layer=2,
            n_head=4,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    same = torch.Generator().manual_seed(job.seed)  # the Trainer deals it out
    x, _ = windows(training, job.size * steps * BATCH, LENGTH, same)
    data = [{"input_ids": row, "labels": row} for row in x]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            use_cpu=True,
            max_steps=steps,
            per_device_train_batch_size=BATCH,
            learning_rate=LR * job.rate,
            warmup_steps=steps // 10,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            seed=job.seed,
        )
        if job.is_ddp:
            trainer = Trainer(model, arguments, train_dataset=data)  # ddp
        else:
            trainer = GossipTrainer(  # gossip
                model, arguments, train_dataset=data, gossip=job.options
            )
        trainer.train()
    model.eval()
    with torch.no_grad():
        x, _ = windows(held_back, 60, LENGTH, job.test_batches())
        return {"loss": job.mean(model(input_ids=x, labels=x).loss)}
