"""The model of text_gossip.py, for workers that may be lost and come back.

    gossamer launch -n 4 -- python examples/text_lost.py

Kill one of them while it trains: the others go on, and it comes back to them. What text_gossip.py
asks of torch's process group, which needs all workers, is asked of the Gossip here.
"""

import argparse

import gossamer
import torch
from torch import nn

from text_data import load, windows
from text_gossip import Model, loss_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="text file, or folder of text files")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100, help="steps per epoch")
    parser.add_argument("--batch", type=int, default=16, help="windows per worker and step")
    parser.add_argument("--length", type=int, default=64, help="bytes per window")
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--pattern", default="cwa", help="or allreduce, and others that go on")
    parser.add_argument("--save", help="file for the trained parameters")
    args = parser.parse_args()

    torch.set_num_threads(1)
    rank, _ = gossamer.init()  # in place of init_process_group, which waits for all
    text, held_back = load(args.data)
    own = torch.Generator().manual_seed(torch.seed() + rank)  # other windows after a return

    torch.manual_seed(0)
    model = Model(args.length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.98))
    # A worker that dies is noticed at once. Four on one busy machine may say nothing for seconds.
    how = {"pattern": args.pattern, "lost": "go_on", "suspect_s": 30}
    gossip = gossamer.Gossip(model, optimizer, **how)
    total = args.epochs * args.steps
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total, cycle_momentum=False)
    gossip.hand_over(scheduler=scheduler)  # who comes back has the others' rate

    losses = []
    for step in range(gossip.steps_done, total):
        optimizer.zero_grad()
        loss = loss_of(model, *windows(text, args.batch, args.length, own))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
        if (step + 1) % args.steps > 0:
            continue
        with torch.no_grad(), gossip.averaged():
            test = torch.Generator().manual_seed(1000 + rank)  # the same windows in every epoch
            test_loss = gossip.mean(loss_of(model, *windows(held_back, 64, args.length, test)))
            there = gossip.gather(None)
            if rank == min(there):
                mean, count = torch.stack(losses).mean(), f"{len(there)} workers"
                epoch = f"epoch {step // args.steps}"
                print(f"{epoch}: loss {mean:.4f}, test {test_loss:.4f}, {count}", flush=True)
                if args.save:
                    torch.save(model.state_dict(), args.save)
        losses.clear()
    gossip.gather(None)  # nobody ends while others still train
    gossip.close()


if __name__ == "__main__":
    main()
