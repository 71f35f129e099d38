"""Run by torchrun: trains with strategy="gossamer" and writes what happened to a file as JSON.

lightning_scenarios.py NOTES FOLDER: rank 0 writes NOTES; checkpoints go to FOLDER.
"""

import json
import sys
from pathlib import Path
from typing import Any

import lightning
import torch
import torch.distributed as dist
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from watch_example import spread

import gossamer.lightning

EPOCHS = 2
Notes = dict[str, Any]


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(64, 6, generator=generator)
    return TensorDataset(x, x.sum(1, keepdim=True))


def flat(values: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([value.double().flatten() for value in values.values()])


def mean_of_workers(module: nn.Module) -> torch.Tensor:
    total = flat(module.state_dict())
    dist.all_reduce(total)
    return total / dist.get_world_size()


class Net(lightning.LightningModule):
    def __init__(self, notes: Notes, folder: Path) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.second = nn.Linear(8, 1)
        self.notes = notes
        self.folder = folder

    def loss(self, batch: list[torch.Tensor]) -> torch.Tensor:
        x, y = batch
        return (self.second(self.first(x).tanh()) - y).square().mean()

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        return self.loss(batch)

    def on_train_batch_end(self, *_: Any) -> None:
        self.notes.setdefault("spread in training", []).append(spread(self))

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        self.log("test", self.loss(batch), sync_dist=True)

    def on_validation_epoch_end(self) -> None:
        self.notes.setdefault("spread in validation", []).append(spread(self))
        self.average = flat(self.state_dict()).clone()

    def on_train_epoch_end(self) -> None:
        mean = mean_of_workers(self)
        self.trainer.save_checkpoint(self.folder / "by hand.ckpt")
        self.notes["kept by hand"] = away_from(self.folder / "by hand.ckpt", mean)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


class Two(Net):
    """With an optimizer for each layer."""

    def __init__(self, notes: Notes, folder: Path) -> None:
        super().__init__(notes, folder)
        self.automatic_optimization = False

    def training_step(self, batch: list[torch.Tensor]) -> None:
        optimizers = self.optimizers()
        self.notes["gossips"] = len(self.trainer.strategy.gossips)
        loss = self.loss(batch)
        self.manual_backward(loss)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        return [
            torch.optim.SGD(self.first.parameters(), lr=0.01),
            torch.optim.Adam(self.second.parameters(), lr=0.01),
        ]


def away_from(checkpoint: Path, values: torch.Tensor) -> float:
    """The largest difference, by rank 0, which writes the file; all wait for it."""
    dist.barrier()
    saved = torch.load(checkpoint, weights_only=True)["state_dict"]
    return float((flat(saved) - values).abs().max())


def fit(
    model: Net,
    epochs: int,
    *callbacks: Any,
    resume: Path | None = None,
    strategy: Any = "gossamer",
) -> None:
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=strategy,
        max_epochs=epochs,
        callbacks=list(callbacks),
        logger=False,
        enable_checkpointing=bool(callbacks),
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = DataLoader(data(), 8, shuffle=True)
    trainer.fit(model, loader, DataLoader(data(), 16), ckpt_path=resume)
    model.notes["spread after fit"] = spread(model)


def with_fabric() -> Notes:
    """Gossip first, then Fabric for the optimizer alone; and what is refused."""
    fabric = lightning.Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    notes: Notes = {"spread": []}
    with gossamer.Gossip(model, optimizer, timeout_s=60) as gossip:
        wrapped = fabric.setup_optimizers(optimizer)
        for x, y in fabric.setup_dataloaders(DataLoader(data(), 8, shuffle=True)):
            wrapped.zero_grad()
            fabric.backward((model(x) - y).square().mean())
            wrapped.step()
            notes["spread"].append(spread(model))
        notes["steps"] = gossip.stats()["steps"]
    both = fabric.setup(other := nn.Linear(6, 1), torch.optim.SGD(other.parameters(), lr=0.1))
    try:
        gossamer.Gossip(*both, timeout_s=60).close()
    except ValueError as error:
        notes["refused"] = str(error)
    return notes


def main(notes_file: Path, folder: Path) -> None:
    torch.set_num_threads(1)
    found: dict[str, Notes] = {"one": {}, "resumed": {}, "two": {}}
    torch.manual_seed(0)
    model = Net(found["one"], folder)
    keep = ModelCheckpoint(folder, filename="kept", every_n_epochs=1, monitor="test", mode="min")
    strategy = gossamer.lightning.GossipStrategy({"metrics": folder / "metrics"})
    fit(model, EPOCHS, keep, strategy=strategy)
    lines = (folder / "metrics" / f"metrics.rank{dist.get_rank()}.jsonl").read_text().splitlines()
    found["one"]["samples"] = [json.loads(line).get("samples") for line in lines]
    kept = folder / "kept.ckpt"
    found["one"]["kept in validation"] = away_from(kept, model.average)
    found["one"]["away from the last average"] = float(
        (flat(model.state_dict()) - model.average).abs().max()
    )

    again = Net(found["resumed"], folder)
    fit(again, EPOCHS + 1, resume=kept)
    found["resumed"]["updates"] = int(next(iter(again.optimizers().state.values()))["step"])
    found["resumed"]["moved"] = float((flat(again.state_dict()) - model.average).abs().max())

    fit(Two(found["two"], folder), 1)
    found["fabric"] = with_fabric()
    if dist.get_rank() == 0:
        notes_file.write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    assert gossamer.lightning.GossipStrategy
    main(*map(Path, sys.argv[1:]))
