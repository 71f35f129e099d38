"""A program for `gossamer launch`: Lightning's fit, in which rank 0 ends by SIGKILL."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import gossamer.lightning

EPOCHS = 4
DIES_IN_EPOCH = 1


class Line(lightning.LightningModule):
    """A line through noisy points. Rank 0 ends in the middle of an epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(3, 1)
        self.said: list[dict[str, Any]] = []

    def training_step(self, batch: list[torch.Tensor], number: int) -> torch.Tensor:
        if self.global_rank == 0 and self.current_epoch == DIES_IN_EPOCH and number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        loss = (self.line(batch[0]) - batch[1]).square().mean()
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        self.log("rank", float(self.global_rank), on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        self.log("test", (self.line(batch[0]) - batch[1]).square().mean(), sync_dist=True)

    def on_train_epoch_end(self) -> None:
        metrics = {name: float(value) for name, value in self.trainer.callback_metrics.items()}
        ranks = self.all_gather(torch.tensor(self.global_rank)).tolist()
        self.said.append({"metrics": metrics, "ranks": ranks})

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.05)


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    lightning.seed_everything(0, verbose=False)
    points = torch.randn(240, 3)
    data = TensorDataset(points, points.sum(1, keepdim=True) + 0.1 * torch.randn(240, 1))
    saver = ModelCheckpoint(folder / "kept", monitor="test", save_last=True, every_n_epochs=1)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=3,
        strategy=gossamer.lightning.GossipStrategy(
            {"topology": "ring", "lost": "go_on", "suspect_s": 60}
        ),
        max_epochs=EPOCHS,
        num_sanity_val_steps=0,
        callbacks=[saver, EarlyStopping("test", patience=10)],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Line()
    loader = DataLoader(data, 8, shuffle=True)
    trainer.fit(model, loader, DataLoader(data, 40))
    trainer.save_checkpoint(folder / "end.ckpt")
    found = {
        "said": model.said,
        "parameters": torch.cat([p.detach().flatten() for p in model.parameters()]).tolist(),
        "saves": trainer.is_global_zero,
        "best": saver.best_model_path,
    }
    (folder / f"found-{trainer.global_rank}.json").write_text(json.dumps(found))


main()
