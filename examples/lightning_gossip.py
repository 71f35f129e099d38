"""Image classification with Lightning: a perceptron on IDX files.

The script exists twice; `diff lightning_ddp.py lightning_gossip.py` shows what Gossamer changes.

    python examples/lightning_ddp.py
    python examples/lightning_gossip.py

Lightning starts the processes itself. Data as in images_ddp.py.
"""

import argparse

import gossamer.lightning  # noqa: F401 (makes the strategy known)
import lightning
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from idx_data import load


class Classifier(lightning.LightningModule):
    def __init__(self, lr: float) -> None:
        super().__init__()
        self.lr = lr
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(28 * 28, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10)
        )

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        loss = cross_entropy(self.layers(images), labels)
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        images, labels = batch
        self.log("test", cross_entropy(self.layers(images), labels), sync_dist=True)

    def on_train_epoch_end(self) -> None:
        values = {name: float(value) for name, value in self.trainer.callback_metrics.items()}
        loss, test = values["loss"], values["test"]
        self.print(f"epoch {self.current_epoch}: loss {loss:.4f}, test {test:.4f}", flush=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the four IDX files")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32, help="images per worker and step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--save", help="file for Lightning's checkpoint")
    args = parser.parse_args()

    torch.set_num_threads(1)
    lightning.seed_everything(0, verbose=False)
    train_set, test_set = load(args.data)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=args.workers,
        strategy="gossamer",
        max_epochs=args.epochs,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Classifier(args.lr)
    loader = DataLoader(train_set, args.batch, shuffle=True, drop_last=True)
    trainer.fit(model, loader, DataLoader(test_set, 250))
    if args.save:
        trainer.save_checkpoint(args.save)


if __name__ == "__main__":
    main()
