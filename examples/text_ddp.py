"""A byte-level language model with data parallelism: a small transformer on text files.

The script exists twice; `diff text_ddp.py text_gossip.py` shows what Gossamer changes.

    torchrun --nproc-per-node 2 examples/text_ddp.py
    torchrun --nproc-per-node 2 examples/text_gossip.py

With --data PATH it reads a file or the files of a folder; without, the sources of Python's standard
library.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from text_data import load, windows


class Model(nn.Module):
    """Scores [batch, length, 256] of the byte that follows each byte of [batch, length]."""

    def __init__(self, length: int, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.bytes = nn.Embedding(256, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.scores = nn.Linear(width, 256)
        self.register_buffer("mask", torch.full((length, length), -torch.inf).triu(1))

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        hidden = self.bytes(text) + self.places
        return self.scores(self.layers(hidden, mask=self.mask, is_causal=True))


def loss_of(model: nn.Module, text: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    return cross_entropy(model(text).flatten(0, 1), following.flatten())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="text file, or folder of text files")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100, help="steps per epoch")
    parser.add_argument("--batch", type=int, default=16, help="windows per worker and step")
    parser.add_argument("--length", type=int, default=64, help="bytes per window")
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--device", default="cpu", help="cuda: the GPU of the local rank")
    parser.add_argument("--save", help="file for the trained parameters")
    args = parser.parse_args()

    torch.set_num_threads(1)
    device = torch.device(args.device)
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank, workers = dist.get_rank(), dist.get_world_size()
    text, held_back = load(args.data)
    own = torch.Generator().manual_seed(rank)  # every worker draws windows of its own

    torch.manual_seed(0)
    model = Model(args.length).to(device)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.98))
    total = args.epochs * args.steps
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total, cycle_momentum=False)

    for epoch in range(args.epochs):
        losses = []
        for _ in range(args.steps):
            optimizer.zero_grad()
            loss = loss_of(model, *windows(text, args.batch, args.length, own, device))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.detach())  # the number itself would be waited for
        with torch.no_grad():
            test = torch.Generator().manual_seed(1000 + rank)  # the same windows in every epoch
            test_loss = loss_of(model, *windows(held_back, 64, args.length, test, device))
            dist.all_reduce(test_loss)
            if rank == 0:
                mean = torch.stack(losses).mean()
                print(f"epoch {epoch}: loss {mean:.4f}, test {test_loss / workers:.4f}", flush=True)
            if rank == 0 and args.save:
                torch.save(model.module.state_dict(), args.save)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
