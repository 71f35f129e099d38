"""A program for `gossamer launch`: a worker that is killed comes back into Lightning's fit.

lightning_back.py FOLDER WORDS: WORDS are JSON: "dies" and "told", the rank and the step in which it
gets SIGKILL and SIGTERM; "batches" of an optimizer step; "interval" of the scheduler; "epochs";
"resume", a checkpoint; "nodes" of two workers each, else there is one of three. Each rank writes
FOLDER/found-<rank>.json.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import lightning
import torch
import torch.distributed as dist
import torchmetrics
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import gossamer.lightning

EPOCHS, BATCH, SAMPLES = 6, 4, 480
PAUSE_S, WAITING_S = 0.01, 0.3  # in a step, and while one that was lost is not back
TESTS = "test", "test by torchmetrics"
IS_FIRST = os.environ["GOSSAMER_RESTARTS"] == "0"


class Line(lightning.LightningModule):
    """A line through noisy points, which notes on what it is trained."""

    def __init__(self, folder: Path, words: dict[str, Any]) -> None:
        super().__init__()
        self.line = nn.Linear(3, 1)
        self.error = torchmetrics.MeanMetric()
        self.folder = folder
        self.words = words
        self.samples: dict[str, list[int]] = {}
        self.ranks: list[list[int]] = []
        self.rates: dict[int, float] = {}
        self.broadcasts = 0

    def training_step(self, batch: list[torch.Tensor], number: int) -> torch.Tensor:
        points, targets, places = batch
        self.samples[f"{self.current_epoch} {number}"] = places.tolist()
        if not IS_FIRST:
            (self.folder / "back").touch()
        elif self.words.get("dies") == [self.global_rank, self.global_step]:
            (self.folder / "away").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.words.get("told") == [self.global_rank, self.global_step]:
            os.kill(os.getpid(), signal.SIGTERM)
        waits = (self.folder / "away").exists() and not (self.folder / "back").exists()
        time.sleep(WAITING_S if waits else PAUSE_S)
        self.rates[self.global_step] = self.optimizers().param_groups[0]["lr"]
        loss = (self.line(points) - targets).square().mean()
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        errors = (self.line(batch[0]) - batch[1]).square()
        self.log("test", errors.mean(), sync_dist=True)
        self.error.update(errors)
        self.log("test by torchmetrics", self.error)

    def on_train_epoch_end(self) -> None:
        self.ranks.append(self.all_gather(torch.tensor(self.global_rank)).tolist())

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.05)
        rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.99**step)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": rate, "interval": self.words.get("interval", "step")},
        }


def main(folder: Path, words: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    lightning.seed_everything(0, verbose=False)
    points = torch.randn(SAMPLES, 3)
    targets = points.sum(1, keepdim=True) + 0.1 * torch.randn(SAMPLES, 1)
    data = TensorDataset(points, targets, torch.arange(SAMPLES))
    saver = ModelCheckpoint(folder / "kept", monitor="test", save_last=True)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2 if "nodes" in words else 3,
        num_nodes=words.get("nodes", 1),
        strategy=gossamer.lightning.GossipStrategy(
            {"topology": "ring", "lost": "go_on", "suspect_s": 60}
        ),
        max_epochs=words.get("epochs", EPOCHS),
        accumulate_grad_batches=words.get("batches", 1),
        callbacks=[saver, EarlyStopping("test", patience=10)],
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Line(folder, words)
    loader = DataLoader(data, BATCH, shuffle=True)
    broadcast = dist.broadcast

    def counted(*args: Any, **named: Any) -> Any:
        model.broadcasts += 1
        return broadcast(*args, **named)

    dist.broadcast = counted
    try:
        trainer.fit(model, loader, DataLoader(data, 40), ckpt_path=words.get("resume"))
    finally:
        found = {
            "steps": trainer.global_step,
            "epoch": trainer.current_epoch,
            "samples": model.samples,
            "ranks": model.ranks,
            "rates": model.rates,
            "broadcasts": model.broadcasts,
            "mean": torch.cat([p.detach().flatten() for p in model.parameters()]).tolist(),
            "best": saver.best_model_path,
            "test": [float(trainer.callback_metrics.get(name, -1)) for name in TESTS],
        }
        (folder / f"found-{trainer.global_rank}.json").write_text(json.dumps(found))


main(Path(sys.argv[1]), json.loads(sys.argv[2]))
