"""LoRA of peft on a small GPT-2 whose base is frozen; only what is trained is in the optimizer."""

from typing import Any

import torch
from job import Job
from parts import SYMBOLS, text, windows
from torch.nn.parallel import DistributedDataParallel

NEEDS = ("transformers.models.gpt2.modeling_gpt2", "peft")
LR, STEPS, BATCH, LENGTH = 5e-3, 60, 8, 64


def train(job: Job) -> dict[str, Any]:
    from peft import LoraConfig, get_peft_model
    from transformers import GPT2Config, GPT2LMHeadModel

    training, held_back = text()
    own = job.own_batches()
    base = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=SYMBOLS,
            n_positions=LENGTH,
            n_embd=64,
            n_layer=2,
            n_head=4,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
            tie_word_embeddings=False,
        )
    )
    adapters = LoraConfig(
        r=8,
        target_modules=["c_attn", "c_proj", "c_fc"],
        fan_in_fan_out=True,
        modules_to_save=["lm_head"],
    )
    model = get_peft_model(base, adapters)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, LR * job.rate)
    if job.is_ddp:
        model = DistributedDataParallel(model)  # ddp
    else:
        job.gossip(model, optimizer)  # gossip
    for _ in job.step_numbers(STEPS):
        optimizer.zero_grad()
        x, _ = windows(training, BATCH, LENGTH, own)
        model(input_ids=x, labels=x).loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad(), job.averaged():  # changed
        x, _ = windows(held_back, 60, LENGTH, job.test_batches())
        return {"loss": job.mean(model(input_ids=x, labels=x).loss)}
