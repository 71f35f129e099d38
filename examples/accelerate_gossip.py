"""Image classification with Hugging Face Accelerate: a perceptron on IDX files.

The script exists twice; `diff accelerate_ddp.py accelerate_gossip.py` shows what Gossamer changes.

    torchrun --nproc-per-node 2 examples/accelerate_ddp.py --cpu
    torchrun --nproc-per-node 2 examples/accelerate_gossip.py --cpu

Data as in images_ddp.py.
"""

import argparse

import gossamer
import torch
from accelerate import Accelerator
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from idx_data import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the four IDX files")
    parser.add_argument("--cpu", action="store_true", help="train on the CPU")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=16, help="images per worker and pass")
    parser.add_argument("--accumulate", type=int, default=2, help="passes per step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--save", help="file for the trained parameters")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=args.cpu, gradient_accumulation_steps=args.accumulate)
    train_set, test_set = load(args.data)
    loader = DataLoader(train_set, args.batch, shuffle=True, drop_last=True)
    test_loader = DataLoader(test_set, 250)

    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model = accelerator.prepare_model(model, evaluation_mode=True)  # does not wrap it in DDP
    gossip = gossamer.Gossip(model, optimizer)
    optimizer, loader, test_loader = accelerator.prepare(optimizer, loader, test_loader)

    for epoch in range(args.epochs):
        losses = []
        for images, labels in loader:
            with accelerator.accumulate(model):
                loss = cross_entropy(model(images), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                losses.append(loss.item())
        with torch.no_grad(), gossip.averaged():
            scores, truth = zip(
                *[accelerator.gather_for_metrics((model(x), y)) for x, y in test_loader],
                strict=True,
            )
            test_loss = cross_entropy(torch.cat(scores), torch.cat(truth))
            mean = sum(losses) / len(losses)
            accelerator.print(f"epoch {epoch}: loss {mean:.4f}, test {test_loss:.4f}", flush=True)
            if args.save:
                accelerator.save(accelerator.unwrap_model(model).state_dict(), args.save)
    gossip.close()
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
