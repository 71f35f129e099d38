"""Image classification with data parallelism: a small convolutional network on IDX files.

The script exists twice; `diff images_ddp.py images_gossip.py` shows what Gossamer changes.

    torchrun --nproc-per-node 2 examples/images_ddp.py
    torchrun --nproc-per-node 2 examples/images_gossip.py

With --data FOLDER it reads MNIST or Fashion-MNIST (train-images-idx3-ubyte and so on, plain or
gzip); without, it makes up 2,000 images of ten classes.
"""

import argparse
import os

import gossamer
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from idx_data import load


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )


def evaluate(model: nn.Module, loader: DataLoader) -> tuple[float, float]:
    """Loss and accuracy; every worker takes its share of the test images."""
    model.eval()
    device = next(model.parameters()).device
    sums = torch.zeros(3, device=device)
    for images, labels in loader:
        scores, right = model(images.to(device)), labels.to(device)
        sums[0] += cross_entropy(scores, right, reduction="sum")
        sums[1] += (scores.argmax(1) == right).sum()
        sums[2] += len(labels)
    model.train()
    dist.all_reduce(sums)
    return float(sums[0] / sums[2]), float(sums[1] / sums[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the four IDX files")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32, help="images per worker and step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--device", default="cpu", help="cuda: the GPU of the local rank")
    parser.add_argument("--save", help="file for the trained parameters")
    args = parser.parse_args()

    torch.set_num_threads(1)
    device = torch.device(args.device)
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    train_set, test_set = load(args.data)
    sampler = DistributedSampler(train_set, drop_last=True)
    loader = DataLoader(train_set, args.batch, sampler=sampler)
    test_loader = DataLoader(test_set, 250, sampler=DistributedSampler(test_set, shuffle=False))

    model = make_model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    gossip = gossamer.Gossip(model, optimizer)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        losses = []
        for images, labels in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())  # the number itself would be waited for
        with torch.no_grad(), gossip.averaged():
            test_loss, accuracy = evaluate(model, test_loader)
            if rank == 0:
                mean = torch.stack(losses).mean()
                print(f"epoch {epoch}: loss {mean:.4f}, test {test_loss:.4f}, {accuracy:.1%} right")
            if rank == 0 and args.save:
                torch.save(model.state_dict(), args.save)
    gossip.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
