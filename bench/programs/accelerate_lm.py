"""A causal language model of transformers with a loop over Accelerate, as its example has it."""

from typing import Any

import torch
from job import Job
from parts import SYMBOLS, text, windows

NEEDS = ("accelerate", "transformers.models.gpt2.modeling_gpt2")
LR, STEPS, BATCH, LENGTH = 2e-3, 60, 8, 64


def train(job: Job) -> dict[str, Any]:
    from accelerate import Accelerator
    from transformers import GPT2Config, GPT2LMHeadModel, get_scheduler

    training, held_back = text()
    own, steps = job.own_batches(), job.step_numbers(STEPS)
    accelerator = Accelerator(cpu=True)
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
    optimizer = torch.optim.AdamW(model.parameters(), LR * job.rate)
    if job.is_ddp:
        model = accelerator.prepare(model)  # ddp
    else:
        model = accelerator.prepare_model(model, evaluation_mode=True)  # gossip
        job.gossip(model, optimizer)  # gossip
    optimizer = accelerator.prepare(optimizer)
    schedule = get_scheduler("linear", optimizer, len(steps) // 10, len(steps))
    model.train()
    for _ in steps:
        x, _ = windows(training, BATCH, LENGTH, own)
        accelerator.backward(model(input_ids=x, labels=x).loss)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad(), job.averaged():  # changed
        x, _ = windows(held_back, 60, LENGTH, job.test_batches())
        return {"loss": job.mean(model(input_ids=x, labels=x).loss)}
