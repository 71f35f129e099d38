"""The Trainer of Hugging Face's ``transformers`` with gossip in place of DDP.

``from gossamer.transformers import GossipTrainer`` in place of ``transformers.Trainer``; for
another trainer, ``class MyTrainer(GossipMixin, Seq2SeqTrainer): ...``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from gossamer.gossip import Gossip
from gossamer.step.runs import run_of
from gossamer.transformers import evaluation, options, states
from gossamer.workers import lasting_group, members
from gossamer.workers.returns import Returns

_transformers: Any = importlib.import_module("transformers")
_utils: Any = importlib.import_module("transformers.trainer_pt_utils")
_WORKERS = "gossip"  # folder in a checkpoint


class GossipMixin:
    """Stands before a Trainer class, and lets it train by gossip.

    The model is not wrapped; the optimizer gets a ``gossamer.Gossip`` when ``train`` begins.
    ``evaluate`` and ``predict`` during training, checkpoints and ``save_model`` see the mean over
    all workers, and every worker has that mean after ``train``. The optimizer state in a checkpoint
    is rank 0's, so a resumed run starts all workers from one model, unless ``save_workers``.

    With ``{"lost": "go_on"}`` the workers that are left finish ``train``, and may ``evaluate``
    after it. Call ``gossamer.init()`` before TrainingArguments is made: then what the Trainer asks
    of all workers goes on, too. Where rank 0 is lost, the lowest rank that is left saves and logs
    in its place. A worker that is started again comes back into ``train``, to the step that the
    others are in.

    Args:
        gossip: keyword arguments of ``gossamer.Gossip``, such as ``{"topology": "ring"}``.
        save_workers: each checkpoint also has every worker's parameters and optimizer state, in its
            folder ``gossip``, which all workers must see. Then a resumed run has the bits of one
            that was never stopped.
        trainer: those of the Trainer. ``average_tokens_across_devices`` is switched off: it would
            have every step wait for all workers.

    Raises ValueError under FSDP and DeepSpeed, which share out the parameters, and for
    ``{"lost": "go_on"}`` in a process group that does not go on.

    Example::

        class MyTrainer(gossamer.transformers.GossipMixin, transformers.Seq2SeqTrainer):
            pass
    """

    # What the Trainer has.
    accelerator: Any
    args: Any
    lr_scheduler: Any
    model: Any
    optimizer: Any
    state: Any

    def __init_subclass__(cls, **words: Any) -> None:
        options.check_order(GossipMixin, cls.__mro__)
        super().__init_subclass__(**words)

    def __init__(
        self,
        *args: Any,
        gossip: Mapping[str, Any] | None = None,
        save_workers: bool = False,
        **trainer: Any,
    ) -> None:
        options.check(gossip or {}, trainer, type(self).__mro__)
        self._gossip_options = dict(gossip or {})
        self._gossip: Gossip | None = None
        self._company: Gossip | None = None  # by whom the process group goes on, after train, too
        self._trains = self._is_averaged = False
        self._progress = _Progress(self)
        self._returns = Returns()
        self._saves_workers = save_workers
        self._resumed: Path | None = None  # the checkpoint that train goes on from
        self._now: Path | None = None  # of a worker that comes back: the place of its TrainerState
        super().__init__(*args, **trainer)
        own: Any = self
        for name in ("is_fsdp_enabled", "is_deepspeed_enabled"):
            if getattr(own, name, False):
                raise ValueError(
                    "[GossipTrainer] FSDP and DeepSpeed share out the parameters, got "
                    f"{name}=True; leave them out of the arguments, or use them without Gossip"
                )
        if self._goes_on() and not lasting_group.is_in_use():
            raise ValueError(
                "[GossipTrainer] the Trainer's own collective calls wait for lost workers, got "
                "lost='go_on' in a process group that does not go on; call gossamer.init() before "
                "TrainingArguments is made, and start the script with `gossamer launch`"
            )
        self._rank = self.args.process_index
        self.args.average_tokens_across_devices = False
        own.callback_handler.callbacks.insert(0, _AtTheEnd(self))

    @property
    def gossip(self) -> Gossip | None:
        """While ``train`` runs, and in ``on_train_end``, such as for ``averaged(also=ema)``."""
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
            if not (self._goes_on() and members.is_coming_back() and self._company is None):
                return own.train(*args, **kwargs)
            with self._where_the_others_are() as folder:
                kwargs.pop("resume_from_checkpoint", None)
                return own.train(str(folder), *args[1:], **kwargs)
        finally:
            self._trains = False
            self._close()

    def create_scheduler(self, *args: Any, **kwargs: Any) -> Any:
        """Also makes the Gossip: now the model is where it stays, and the optimizer is made."""
        own: Any = super()
        scheduler = own.create_scheduler(*args, **kwargs)
        if self._trains and self._now is None:
            self._make()
        return scheduler

    def _make(self) -> None:
        self._close()
        if self._company is not None:
            self._company.close()
        self._gossip = Gossip(self.model, self.optimizer, **self._gossip_options)
        if self._goes_on():
            self._company = self._gossip
            self._company.hand_over(trainer=self._progress)

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        """The backwards before the last of a step travel nowhere."""
        own: Any = super()
        self._count(args[1] if len(args) > 1 else kwargs.get("inputs"))
        accumulates = self._gossip is not None and not self.accelerator.sync_gradients
        with self._gossip.no_sync() if accumulates and self._gossip else contextlib.nullcontext():
            return own.training_step(*args, **kwargs)

    def _count(self, inputs: Any) -> None:
        """For the metrics, where anybody follows them."""
        if self._gossip is None:
            return
        metrics = run_of(self._gossip, type(self).__name__).metrics
        if metrics.is_on:
            metrics.count(_utils.find_batch_size(inputs) or 0)

    def _maybe_log_save_evaluate(self, tr_loss: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        own: Any = super()
        if self._company is None:
            return own._maybe_log_save_evaluate(tr_loss, *args, **kwargs)
        with self._progress.loss.within(tr_loss):
            return own._maybe_log_save_evaluate(tr_loss, *args, **kwargs)

    # The consensus model.

    @contextlib.contextmanager
    def _averaged(self) -> Iterator[None]:
        if self._gossip is None or self._is_averaged:
            yield
            return
        with self._gossip.averaged():
            if self._company is not None:
                self._take_rank_0s_place(sorted(self._company.gather(None)))
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

    def evaluation_loop(self, dataloader: Any, *args: Any, **kwargs: Any) -> Any:
        """By the workers that are left. Once more where one is lost meanwhile."""
        own: Any = super()
        company = self._company
        if company is None:
            return own.evaluation_loop(dataloader, *args, **kwargs)
        there = sorted(company.gather(None))
        while True:
            self._take_rank_0s_place(there)
            with evaluation.among(there, self._rank, self, dataloader):
                outcome = own.evaluation_loop(dataloader, *args, **kwargs)
            left = sorted(company.gather(None))
            if left == there:
                return outcome
            there = left

    def save_model(self, *args: Any, **kwargs: Any) -> None:
        """The mean over all workers. Collective while ``train`` runs."""
        own: Any = super()
        with self._averaged():
            own.save_model(*args, **kwargs)

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        own: Any = super()
        with self._averaged():
            own._save_checkpoint(*args, **kwargs)
        if self._saves_workers and self._gossip is not None:
            trial = args[1] if len(args) > 1 else kwargs.get("trial")
            folder = Path(own._get_output_dir(trial)) / f"checkpoint-{self.state.global_step}"
            self._gossip.save(folder / _WORKERS)

    def _go_on_as_saved(self) -> None:
        """Each worker from its own state, where the checkpoint has it."""
        saved, self._resumed = self._resumed, None
        if saved is not None and self._gossip is not None and (saved / _WORKERS).is_dir():
            self._gossip.load(saved / _WORKERS)

    # Workers that are lost.

    def _goes_on(self) -> bool:
        return self._gossip_options.get("lost") == "go_on"

    def _take_rank_0s_place(self, there: list[int]) -> None:
        """Where it is lost, on the lowest rank that is left; until it has come back."""
        is_first = self._rank == there[0]
        if self.args.process_index == (0 if is_first else self._rank):
            return
        for state in (self.args.distributed_state, self.accelerator.state):
            state.process_index = 0 if is_first else self._rank
        self.state.is_world_process_zero = is_first
        model = self.accelerator.unwrap_model(self.model)
        if hasattr(model, "should_save_on_this_rank"):  # since transformers 5: asks torch's rank
            vars(model).pop("should_save_on_this_rank", None)
            if is_first:
                model.should_save_on_this_rank = bool

    @contextlib.contextmanager
    def _where_the_others_are(self) -> Iterator[Path]:
        """A checkpoint for ``train`` to go on from that has no more than the TrainerState: the rest
        is a neighbour's, and here already."""
        own: Any = self
        if own.model_init is not None:
            raise RuntimeError(
                "[GossipTrainer] a worker that comes back takes the state of another one before "
                "train begins, got model_init, which makes a model in train; give it a model"
            )
        own.create_optimizer()
        self._make()
        assert self._company is not None
        self._returns = Returns(self._company.steps_done)
        with tempfile.TemporaryDirectory(prefix="gossamer-") as folder:
            self._now = Path(folder)
            state = self._progress.at(self._company.steps_done)
            (self._now / "trainer_state.json").write_text(json.dumps(state))
            try:
                yield self._now
            finally:
                self._now = None

    def _load_from_checkpoint(self, place: str, *args: Any, **kwargs: Any) -> None:
        own: Any = super()
        if self._now is None or Path(place) != self._now:
            own._load_from_checkpoint(place, *args, **kwargs)
            self._resumed = Path(place)

    # The end.

    def _finish(self) -> None:
        """Every worker goes on with the mean over all of them. Collective."""
        if self._gossip is None:
            return
        with self._gossip.averaged() as model:
            mean = {name: tensor.detach().clone() for name, tensor in _tensors(model)}
        self._is_averaged = True  # from now on, so that one may save alone
        with torch.no_grad():
            for name, tensor in _tensors(self.model):
                if tensor.is_floating_point() and type(tensor.detach()) is torch.Tensor:
                    tensor.copy_(mean[name])

    def _close(self) -> None:
        self._is_averaged = False
        if self._gossip is not None and self._gossip is not self._company:
            self._gossip.close()
        self._gossip = None


def _tensors(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    named = [*model.named_parameters(), *model.named_buffers()]
    return [(name.replace("_orig_mod.", ""), tensor) for name, tensor in named]


class _Progress:
    """What a worker that comes back is told about ``train``: the others' TrainerState, and by how
    many steps it is ahead of their Gossip, since they may have begun from a checkpoint."""

    def __init__(self, trainer: GossipMixin) -> None:
        self._trainer = trainer
        self._ahead = 0
        self._state: dict[str, Any] = {}
        self.loss = states.RunningLoss()

    def begin(self) -> None:
        company = self._trainer._company
        if company is not None:
            self._ahead = self._trainer.state.global_step - company.steps_done
            company.hand_over(scheduler=self._trainer.lr_scheduler)

    def tell(self) -> None:
        """Of what has changed since, once one that came back has done its first step: see Note
        [First steps]."""
        company = self._trainer._company
        if company is None:
            return
        told = self._trainer._returns.told(company, self._known)
        if told is not None:
            states.put(self._trainer, told)
            self.loss.put(told["loss"])

    def _known(self) -> dict[str, Any]:
        return {**states.known(self._trainer), "loss": self.loss.known()}

    def at(self, steps_done: int) -> dict[str, Any]:
        """The TrainerState after so many steps of the Gossip."""
        return {**self._state, "global_step": self._ahead + steps_done}

    def state_dict(self) -> dict[str, Any]:
        return {"ahead": self._ahead, "state": json.dumps(dataclasses.asdict(self._trainer.state))}

    def load_state_dict(self, given: Mapping[str, Any]) -> None:
        self._ahead, self._state = given["ahead"], json.loads(given["state"])


class _AtTheEnd(_transformers.TrainerCallback):
    """The first of the callbacks, so that all others see what is kept."""

    def __init__(self, trainer: GossipMixin) -> None:
        self._trainer = trainer

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._trainer._go_on_as_saved()  # the rest of a checkpoint is loaded by now
        self._trainer._progress.begin()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self._trainer._progress.tell()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self._trainer._finish()


class GossipTrainer(GossipMixin, _transformers.Trainer):
    """``transformers.Trainer`` that trains by gossip: see ``GossipMixin``.

    Example::

        trainer = gossamer.transformers.GossipTrainer(model, arguments, gossip={"topology": "ring"})
        trainer.train()
    """
