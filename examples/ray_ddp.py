"""Image classification with Ray Train: a perceptron on IDX files.

The script exists twice; `diff ray_ddp.py ray_gossip.py` shows what Gossamer changes.

    python examples/ray_ddp.py --workers 2
    python examples/ray_gossip.py --workers 2

Ray starts the workers, on this machine or on the cluster that it is connected to. Data as in
images_ddp.py.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ray.train
import torch
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from idx_data import load


def train(args: dict[str, Any]) -> None:
    """What each worker runs."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train_set, test_set = load(args["data"])
    loader = prepare_data_loader(DataLoader(train_set, args["batch"], shuffle=True, drop_last=True))
    test_loader = DataLoader(test_set, 250)

    network = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 10))
    model = prepare_model(network)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args["lr"])

    context = ray.train.get_context()
    for epoch in range(args["epochs"]):
        if context.get_world_size() > 1:
            loader.sampler.set_epoch(epoch)
        losses = []
        for images, labels in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad(), TemporaryDirectory() as folder:
            test = [cross_entropy(model(x), y).item() for x, y in test_loader]
            means = {"loss": sum(losses) / len(losses), "test": sum(test) / len(test)}
            checkpoint = None
            if context.get_world_rank() == 0:
                torch.save(network.state_dict(), Path(folder, "model.pt"))
                checkpoint = Checkpoint.from_directory(folder)
            ray.train.report({"epoch": epoch, **means}, checkpoint=checkpoint)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the four IDX files")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--gpu", action="store_true", help="a GPU for each worker")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=16, help="images per worker and step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--out", help="folder for checkpoints; default: Ray's own")
    args = parser.parse_args()
    result = TorchTrainer(
        train,
        train_loop_config=vars(args),
        scaling_config=ScalingConfig(num_workers=args.workers, use_gpu=args.gpu),
        run_config=RunConfig(storage_path=args.out),
    ).fit()
    print(f"loss {result.metrics['loss']:.4f}, test {result.metrics['test']:.4f}")
    print(f"saved in {result.checkpoint.path}")


if __name__ == "__main__":
    main()
