"""GossipStrategy: Lightning's DDP strategy with gossip in place of the gradients' average."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist

from gossamer import job
from gossamer.base import words
from gossamer.gossip import Gossip
from gossamer.lightning import callbacks, package
from gossamer.lightning.progress import Progress
from gossamer.step.runs import run_of
from gossamer.stopping import StopOnSignal
from gossamer.workers import lasting_group, members
from gossamer.workers.returns import Returns

_strategies: Any = package.module("strategies")
_exceptions: Any = package.module("utilities.exceptions")


class GossipStrategy(_strategies.DDPStrategy):
    """Lightning's DDP strategy with gossip in place of the gradients' average.

    Processes start and samplers are dealt as with ``strategy="ddp"``. The model is not wrapped;
    every optimizer gets a ``gossamer.Gossip``. Validation during ``fit``, checkpoints and the
    model after ``fit`` are the mean over all workers; optimizer states in a checkpoint are rank
    0's, so a resumed run starts all workers from one model.

    With ``{"lost": "go_on"}`` the workers that are left finish ``fit``: what callbacks and
    ``self.log(..., sync_dist=True)`` ask of all goes over the gossip's own connections, and the
    lowest rank that is left saves. Start each worker by ``gossamer launch`` or an agent of its own.
    Loggers and the progress bar are rank 0's, and end with it. A worker that is started again comes
    back into ``fit``, to the batch that the others are at. It needs one optimizer, and an epoch of
    known length.

    SIGTERM to one worker stops all of them after the same step, by Lightning's SIGTERMException.

    Args:
        gossip: keyword arguments of ``gossamer.Gossip``, such as ``{"topology": "ring"}``.
        strategy: keyword arguments of ``DDPStrategy`` that do not concern its wrapper:
            ``process_group_backend``, ``timeout``, ``start_method`` and so on.

    Raises ValueError for arguments meant for DistributedDataParallel.

    Example::

        strategy = gossamer.lightning.GossipStrategy({"topology": "ring"})
        trainer = lightning.Trainer(strategy=strategy, accelerator="cpu", devices=2)
    """

    def __init__(self, gossip: Mapping[str, Any] | None = None, **strategy: Any) -> None:
        super().__init__(**strategy)
        if self._ddp_kwargs:
            raise ValueError(
                "[GossipStrategy] nothing is wrapped in DistributedDataParallel, got arguments for "
                f"it: {', '.join(self._ddp_kwargs)}; those of gossamer.Gossip go into gossip={{}}"
            )
        words.check("Gossip", gossip or {}, words.known_words(Gossip.__init__))
        self._gossip_options = dict(gossip or {})
        self._gossips: list[Gossip] = []
        self._averaged = contextlib.ExitStack()
        self._is_averaged = False
        # With lost="go_on": by whom those that are left ask each other, also after fit.
        self._company: Gossip | None = None
        self._progress: Progress | None = None
        self._returns = Returns()
        self._stop: StopOnSignal | None = None
        self._asked_at = 0  # the step after which it was asked whether to stop

    @property
    def gossips(self) -> list[Gossip]:
        """One for each optimizer, while ``fit`` runs."""
        return self._gossips

    def setup_distributed(self) -> None:
        """With lost="go_on" the process group is one that goes on, unless another was asked for."""
        if self._goes_on():
            some_come_later = members.how_many_begin(self.world_size) < self.world_size
            if (some_come_later or members.is_coming_back()) and not dist.is_initialized():
                job.init()
            lasting_group.register()
            self._process_group_backend = self.process_group_backend or lasting_group.NAME
        super().setup_distributed()

    def configure_ddp(self) -> None:
        """Leaves the model as it is."""

    def setup_optimizers(self, trainer: Any) -> None:
        """Makes the optimizers, and a Gossip for each. Collective."""
        super().setup_optimizers(trainer)
        self._gossips = [
            Gossip(self.lightning_module, optimizer, **self._gossip_options)
            for optimizer in self.optimizers
        ]
        if self._gossips and self._goes_on():
            self._company = self._gossips[0]
            self._follow(trainer, self._company)

    def _goes_on(self) -> bool:
        return self._gossip_options.get("lost") == "go_on"

    def _follow(self, trainer: Any, company: Gossip) -> None:
        """From now on whoever comes back is told how far ``fit`` is; so is this worker."""
        self._progress = Progress(trainer, company)
        company.hand_over(trainer=self._progress)
        if self._progress.came_back:
            self._progress.go_on()
            self._returns = Returns(company.steps_done)

    def process_dataloader(self, dataloader: object) -> object:
        """Of a worker that comes back: it begins where the others are."""
        loader = super().process_dataloader(dataloader)
        if self._progress is None or not self._progress.came_back:
            return loader
        return self._progress.loader(loader)

    def optimizer_step(self, *args: Any, **named: Any) -> Any:
        """Collective in the first step of a worker that has come back."""
        output = super().optimizer_step(*args, **named)
        if self._company is not None:  # see Note [First steps]
            trainer = self.lightning_module.trainer
            told = self._returns.told(self._company, lambda: callbacks.states(trainer))
            if told is not None:
                callbacks.put(trainer, told)
        return output

    # The consensus model.

    def _enter_average(self) -> None:
        for gossip in self._gossips:
            self._averaged.enter_context(gossip.averaged())
        self._is_averaged = True

    def _leave_average(self) -> None:
        self._is_averaged = False
        self._averaged.close()

    def on_validation_start(self) -> None:
        """Validation within ``fit`` sees the mean over all workers. Collective."""
        super().on_validation_start()
        if self._gossips:
            self._enter_average()

    def on_validation_end(self) -> None:
        """The local parameters come back."""
        self._leave_average()
        super().on_validation_end()

    def lightning_module_state_dict(self) -> dict[str, Any]:
        """Of the mean over all workers. Collective while ``fit`` runs, as saving is."""
        if self._is_averaged or not self._gossips:
            return super().lightning_module_state_dict()
        self._enter_average()
        try:
            state = super().lightning_module_state_dict()
            return {name: _copy(value) for name, value in state.items()}
        finally:
            self._leave_average()

    # What Lightning asks of all workers: with lost="go_on" of those that are left.

    def _is_alone(self) -> bool:
        """Whether this worker has come back, and the others do not count on it yet: they do once it
        has done a step."""
        if self._company is None:
            return self._goes_on() and members.is_coming_back()
        return self._returns.is_own(self._company.steps_done + 1)

    @property
    def is_global_zero(self) -> bool:
        """Whether this worker saves: it has the lowest rank of those that are left."""
        if self._company is None or self.global_rank == 0:
            return bool(super().is_global_zero)
        lost = self._company.stats()["lost"]
        return all(rank in lost for rank in range(self.global_rank))

    def barrier(self, *names: Any, **options: Any) -> None:
        """Collective."""
        if self._is_alone():
            return
        if self._company is None:
            super().barrier(*names, **options)
        else:
            self._company.gather(None)

    def broadcast(self, obj: Any, src: int = 0) -> Any:
        """What ``src`` says, or where it is lost the lowest rank that is left. Collective."""
        if self._is_alone():
            return obj
        if self._company is None:
            return super().broadcast(obj, src)
        said = self._company.gather(obj)
        return said.get(src, said[min(said)])

    def all_gather(self, tensor: torch.Tensor, group: Any = None, sync_grads: bool = False) -> Any:
        """Of those that are left, one after the other. Collective."""
        if self._is_alone():
            return tensor.unsqueeze(0)
        if self._company is None or sync_grads:
            return super().all_gather(tensor, group, sync_grads)
        said = self._company.gather(tensor.tolist()).values()
        like = {"dtype": tensor.dtype, "device": tensor.device}
        return torch.stack([torch.tensor(each, **like) for each in said])

    def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
        """The mean or the sum. Collective."""
        if self._is_alone():
            return tensor
        if self._company is None or not isinstance(tensor, torch.Tensor):
            return super().reduce(tensor, group, reduce_op)
        name = str(reduce_op).lower().rpartition(".")[2]
        if name not in ("mean", "avg", "sum"):
            raise ValueError(
                "[GossipStrategy] workers that are left form means and sums, got reduce_op "
                f"{reduce_op!r}; use one of these, or gossips[0].gather()"
            )
        every = self.all_gather(tensor.double())
        result = every.sum(0) if name == "sum" else every.mean(0)
        return result.to(tensor.dtype) if tensor.is_floating_point() or name == "sum" else result

    def reduce_boolean_decision(self, decision: bool, all: bool = True) -> bool:
        """Whether all say yes, or any of them. Collective."""
        if self._is_alone():
            return bool(decision)
        if self._company is None:
            return bool(super().reduce_boolean_decision(decision, all))
        said = self._company.gather(bool(decision)).values()
        return sum(said) == len(said) if all else any(said)

    # Signals.

    def on_train_start(self) -> None:
        """In place of what Lightning does, which has every batch wait for rank 0. Collective."""
        super().on_train_start()
        trainer = self.lightning_module.trainer
        loop = trainer.fit_loop.epoch_loop
        requeues = getattr(self.cluster_environment, "auto_requeue", False)  # Slurm's
        is_main = threading.current_thread() is threading.main_thread()
        if not self._gossips or requeues or not is_main:
            return
        self._stop = StopOnSignal(self._gossips[0], grace_s=math.inf, signals=[signal.SIGTERM])
        self._asked_at = self._gossips[0].steps_done
        if hasattr(loop, "_broadcast_sigterm_tensor"):  # since Lightning 2.6
            loop._broadcast_sigterm_tensor = lambda: None

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """Raises SIGTERMException on all workers where one was told to stop."""
        super().on_train_batch_start(batch, batch_idx)
        self._count(batch)
        if self._stop is None or self._gossips[0].steps_done == self._asked_at:
            return
        self._asked_at = self._gossips[0].steps_done
        if self._stop.is_due():
            raise _exceptions.SIGTERMException(128 + signal.SIGTERM)

    def _count(self, batch: Any) -> None:
        """For the metrics, where anybody follows them and Lightning knows the size of the batch."""
        followed = [run_of(each, type(self).__name__).metrics for each in self._gossips]
        if not any(metrics.is_on for metrics in followed):
            return
        with contextlib.suppress(_exceptions.MisconfigurationException, RecursionError):
            size = package.module("utilities.data").extract_batch_size(batch)
            for metrics in followed:
                metrics.count(size)

    def _hear_no_more(self) -> None:
        if self._stop is not None:
            self._stop.close()
        self._stop = None

    # The end.

    def on_train_end(self) -> None:
        """Every worker goes on with the mean over all of them. Collective."""
        super().on_train_end()
        self._hear_no_more()
        if self._gossips:
            mean = self.lightning_module_state_dict()
            self._close(but=self._company)
            self.lightning_module.load_state_dict(mean)

    def teardown(self) -> None:
        """After an error, too: ends gossiping, the parameters stay this worker's."""
        self._hear_no_more()
        if self._gossips:
            self._close()
        super().teardown()

    def _close(self, but: Gossip | None = None) -> None:
        self._leave_average()
        for gossip in self._gossips:
            if gossip is not but:
                gossip.close()
        self._gossips = []
        self._company = but

    @classmethod
    def register_strategies(cls, strategy_registry: Any) -> None:
        """Puts "gossamer" among the names that a Trainer knows."""
        strategy_registry.register(
            "gossamer", cls, description="gossip with a few neighbours instead of an all-reduce"
        )


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


GossipStrategy.register_strategies(_strategies.StrategyRegistry)
