"""A residual network in a LightningModule; the strategy is another word."""

from typing import Any

import torch
from job import Job
from parts import images, residual_network
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

NEEDS = ("lightning",)
LR, STEPS, BATCH = 3e-3, 60, 16


def train(job: Job) -> dict[str, Any]:
    import lightning

    from gossamer.lightning import GossipStrategy

    class Classifier(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layers = residual_network()

        def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
            return cross_entropy(self.layers(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), LR * job.rate)

    steps = len(job.step_numbers(STEPS))
    model = Classifier()
    strategy: Any = "ddp" if job.is_ddp else GossipStrategy(gossip=job.options)  # changed
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        num_nodes=job.size,
        strategy=strategy,
        max_epochs=1,
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = TensorDataset(*images(steps * BATCH, job.own_batches()))
    trainer.fit(model, DataLoader(data, BATCH, shuffle=True))
    nn.Module.eval(model)
    with torch.no_grad():
        pictures, classes = images(250, job.test_batches())
        scores = model.layers(pictures)
    right = (scores.argmax(1) == classes).double().mean()
    return {"loss": job.mean(cross_entropy(scores, classes)), "accuracy": job.mean(right)}
