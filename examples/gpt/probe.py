"""Measures cluster and model for `gossamer plan`, as train_gossip.py --plan takes them.

    torchrun --nproc-per-node 2 examples/gpt/probe.py --data shards --out probed

It takes the arguments of train_gossip.py and trains nothing.
"""

import gossamer
import torch.distributed as dist

import recipe


def main() -> None:
    args = recipe.arguments(__doc__, "out", "seconds")
    device = recipe.start(args)
    batches = recipe.Batches(args, device)
    model, optimizers = recipe.make(args, device)

    def step() -> None:
        for k in range(args.accumulate):
            with recipe.precision(args, device):
                loss = model(*batches.next(0, k))
            loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    gossamer.probe(step, model, optimizers[-1], out=args.out, seconds=args.seconds)
    if dist.get_rank() == 0:
        print(f"{args.out}: cluster.toml and workload.toml, for `gossamer plan`")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
