"""A detector on images with boxes in COCO's format, with data parallelism: SGD or AdamW, average
precision, checkpoints.

The script exists twice; `diff train_ddp.py train_gossip.py` shows what Gossamer changes.

    torchrun --nproc-per-node 2 examples/detection/train_ddp.py --data digits
    torchrun --nproc-per-node 2 examples/detection/train_gossip.py --data digits

README.md leads from digits to a report.
"""

import gossamer
import torch
import torch.distributed as dist
from torch import nn

import recipe


def main() -> None:
    args = recipe.arguments(__doc__, "method")
    device = recipe.start(args)
    data = recipe.Data(args, device)
    model, optimizer = recipe.make(args, data.classes, device)
    run = gossamer.Gossip(model, optimizer, metrics=args.metrics, **recipe.method(args))
    if args.resume:
        run.load(args.resume)
    done = run.stats()["steps"]
    say = recipe.Say(done)

    for step, (images, targets) in enumerate(data.batches(done), done):
        recipe.set_rate(args, optimizer, step)
        loss = model(images, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        if args.metrics:
            run.log(loss=loss.detach())
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % args.validate_every == 0 or step + 1 == args.steps:
            with torch.no_grad(), run.averaged():
                validated = data.validate(model)
                say(step + 1, loss.detach(), validated)
                if args.metrics:
                    run.log(**validated)
                if args.export and dist.get_rank() == 0:
                    torch.save(recipe.plain(model).state_dict(), args.export)
            if args.save:
                run.save(args.save)
    run.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
