"""A GPT-2 on token shards with data parallelism: Muon and AdamW, accumulation, bf16, checkpoints.

The script exists twice; `diff train_ddp.py train_gossip.py` shows what Gossamer changes.

    torchrun --nproc-per-node 2 examples/gpt/train_ddp.py --data shards
    torchrun --nproc-per-node 2 examples/gpt/train_gossip.py --data shards

README.md leads from a text to a report.
"""

from contextlib import nullcontext

import gossamer
import torch
import torch.distributed as dist
from torch import nn

import recipe


def main() -> None:
    args = recipe.arguments(__doc__, "method", "plan")
    device = recipe.start(args)
    batches = recipe.Batches(args, device)
    model, optimizers = recipe.make(args, device)
    run = gossamer.Gossip(model, optimizers, metrics=args.metrics, **recipe.method(args))
    if args.resume:
        run.load(args.resume)
    say = recipe.Say(recipe.steps_done(optimizers))

    for step in range(recipe.steps_done(optimizers), args.steps):
        recipe.set_rates(args, optimizers, step)
        loss = torch.zeros((), device=device)
        for k in range(args.accumulate):
            is_last = k + 1 == args.accumulate
            with nullcontext() if is_last else run.no_sync():
                with recipe.precision(args, device):
                    part = model(*batches.next(step, k)) / args.accumulate
                part.backward()
            loss += part.detach()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        if args.metrics:
            run.log(loss=loss)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        if (step + 1) % args.validate_every == 0 or step + 1 == args.steps:
            with torch.no_grad(), run.averaged():
                val_loss = batches.validate(model)
                say(step + 1, loss, val_loss)
                if args.metrics:
                    run.log(val_loss=val_loss)
                if args.export and dist.get_rank() == 0:
                    torch.save(recipe.plain(model).state_dict(), args.export)
            if args.save:
                run.save(args.save)
    run.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
