"""The Trainer of Hugging Face's ``transformers`` with gossip in place of DDP.

``from gossamer.transformers import GossipTrainer`` in place of ``transformers.Trainer``; for
another trainer, ``class MyTrainer(GossipMixin, Seq2SeqTrainer): ...``.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from gossamer.gossip import Gossip

_transformers: Any = importlib.import_module("transformers")


class GossipMixin:
    """Stands before a Trainer class, and lets it train by gossip.

    The model is not wrapped; the optimizer gets a ``gossamer.Gossip`` when ``train`` begins.
    ``evaluate`` and ``predict`` during training, checkpoints and ``save_model`` see the mean over
    all workers, and every worker has that mean after ``train``. The optimizer state in a checkpoint
    is rank 0's, so a resumed run starts all workers from one model.

    Args:
        gossip: keyword arguments of ``gossamer.Gossip``, such as ``{"topology": "ring"}``.
        trainer: those of the Trainer. ``average_tokens_across_devices`` is switched off: it would
            have every step wait for all workers.

    Raises ValueError under FSDP and DeepSpeed, which share out the parameters.

    Example::

        class MyTrainer(gossamer.transformers.GossipMixin, transformers.Seq2SeqTrainer):
            pass
    """

    # What the Trainer has.
    accelerator: Any
    args: Any
    model: Any
    optimizer: Any

    def __init__(self, *args: Any, gossip: Mapping[str, Any] | None = None, **trainer: Any) -> None:
        self._gossip_options = dict(gossip or {})
        self._gossip: Gossip | None = None
        self._trains = self._is_averaged = False
        super().__init__(*args, **trainer)
        own: Any = self
        for name in ("is_fsdp_enabled", "is_deepspeed_enabled"):
            if getattr(own, name, False):
                raise ValueError(
                    "[GossipTrainer] FSDP and DeepSpeed share out the parameters, got "
                    f"{name}=True; leave them out of the arguments, or use them without Gossip"
                )
        self.args.average_tokens_across_devices = False
        own.callback_handler.callbacks.insert(0, _AtTheEnd(self))

    @property
    def gossip(self) -> Gossip | None:
        """While ``train`` runs."""
        return self._gossip

    # Training.

    def create_accelerator_and_postprocess(self) -> None:
        """An accelerator that does not wrap the model."""
        own: Any = super()
        own.create_accelerator_and_postprocess()
        prepare = self.accelerator.prepare_model

        def place(model: Any, device_placement: Any = None, evaluation_mode: bool = False) -> Any:
            placed = prepare(model, device_placement=device_placement, evaluation_mode=True)
            models = self.accelerator._models
            if not evaluation_mode and not any(each is placed for each in models):
                models.append(placed)  # else every evaluation would place it anew
            return placed

        self.accelerator.prepare_model = place

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Collective."""
        own: Any = super()
        self._trains = True
        try:
            return own.train(*args, **kwargs)
        finally:
            self._trains = False
            self._close()

    def create_scheduler(self, *args: Any, **kwargs: Any) -> Any:
        """Also makes the Gossip: now the model is where it stays, and the optimizer is made."""
        own: Any = super()
        scheduler = own.create_scheduler(*args, **kwargs)
        if self._trains:
            self._close()
            self._gossip = Gossip(self.model, self.optimizer, **self._gossip_options)
        return scheduler

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        """The backwards before the last of a step travel nowhere."""
        own: Any = super()
        accumulates = self._gossip is not None and not self.accelerator.sync_gradients
        with self._gossip.no_sync() if accumulates and self._gossip else contextlib.nullcontext():
            return own.training_step(*args, **kwargs)

    # The consensus model.

    @contextlib.contextmanager
    def _averaged(self) -> Iterator[None]:
        if self._gossip is None or self._is_averaged:
            yield
            return
        with self._gossip.averaged():
            self._is_averaged = True
            try:
                yield
            finally:
                self._is_averaged = False

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Of the mean over all workers. Collective."""
        own: Any = super()
        with self._averaged():
            return own.evaluate(*args, **kwargs)

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Of the mean over all workers. Collective."""
        own: Any = super()
        with self._averaged():
            return own.predict(*args, **kwargs)

    def save_model(self, *args: Any, **kwargs: Any) -> None:
        """The mean over all workers. Collective while ``train`` runs."""
        own: Any = super()
        with self._averaged():
            own.save_model(*args, **kwargs)

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        own: Any = super()
        with self._averaged():
            own._save_checkpoint(*args, **kwargs)

    # The end.

    def _finish(self) -> None:
        """Every worker goes on with the mean over all of them. Collective."""
        if self._gossip is None:
            return
        with self._gossip.averaged() as model:
            mean = {name: tensor.detach().clone() for name, tensor in _tensors(model)}
        self._close()
        with torch.no_grad():
            for name, tensor in _tensors(self.model):
                if tensor.is_floating_point() and type(tensor.detach()) is torch.Tensor:
                    tensor.copy_(mean[name])

    def _close(self) -> None:
        if self._gossip is not None:
            self._gossip.close()
        self._gossip = None


def _tensors(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    named = [*model.named_parameters(), *model.named_buffers()]
    return [(name.replace("_orig_mod.", ""), tensor) for name, tensor in named]


class _AtTheEnd(_transformers.TrainerCallback):
    """The first of the callbacks, so that all others see what is kept."""

    def __init__(self, trainer: GossipMixin) -> None:
        self._trainer = trainer

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self._trainer._finish()


class GossipTrainer(GossipMixin, _transformers.Trainer):
    """``transformers.Trainer`` that trains by gossip: see ``GossipMixin``.

    Example::

        trainer = gossamer.transformers.GossipTrainer(model, arguments, gossip={"topology": "ring"})
        trainer.train()
    """
