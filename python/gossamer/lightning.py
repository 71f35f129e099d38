"""A strategy for Lightning: ``import gossamer.lightning``, then ``Trainer(strategy="gossamer")``.

Works with the package ``lightning`` and with ``pytorch_lightning``, 2.x: with the one that the
script has imported.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from gossamer.gossip import Gossip

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _lightning() -> ModuleType:
    """The package that is imported already, else the first that is installed."""
    for name in _PACKAGES:
        if name in sys.modules:
            return sys.modules[name]
    for name in _PACKAGES:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    raise ModuleNotFoundError(
        "[gossamer.lightning] neither lightning nor pytorch_lightning is installed; "
        "run `pip install lightning`"
    )


_strategies: Any = importlib.import_module(_lightning().__name__ + ".strategies")


class GossipStrategy(_strategies.DDPStrategy):
    """Lightning's DDP strategy with gossip in place of the gradients' average.

    Processes start and samplers are dealt as with ``strategy="ddp"``. The model is not wrapped;
    every optimizer gets a ``gossamer.Gossip``. Validation during ``fit``, checkpoints and the
    model after ``fit`` are the mean over all workers; optimizer states in a checkpoint are rank
    0's, so a resumed run starts all workers from one model.

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
        self._gossip_options = dict(gossip or {})
        self._gossips: list[Gossip] = []
        self._averaged = contextlib.ExitStack()
        self._is_averaged = False

    @property
    def gossips(self) -> list[Gossip]:
        """One for each optimizer, while ``fit`` runs."""
        return self._gossips

    def configure_ddp(self) -> None:
        """Leaves the model as it is."""

    def setup_optimizers(self, trainer: Any) -> None:
        """Makes the optimizers, and a Gossip for each. Collective."""
        super().setup_optimizers(trainer)
        self._gossips = [
            Gossip(self.lightning_module, optimizer, **self._gossip_options)
            for optimizer in self.optimizers
        ]

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

    # The end.

    def on_train_end(self) -> None:
        """Every worker goes on with the mean over all of them. Collective."""
        super().on_train_end()
        if self._gossips:
            mean = self.lightning_module_state_dict()
            self._close()
            self.lightning_module.load_state_dict(mean)

    def teardown(self) -> None:
        """After an error, too: ends gossiping, the parameters stay this worker's."""
        self._close()
        super().teardown()

    def _close(self) -> None:
        self._leave_average()
        for gossip in self._gossips:
            gossip.close()
        self._gossips = []

    @classmethod
    def register_strategies(cls, strategy_registry: Any) -> None:
        """Puts "gossamer" among the names that a Trainer knows."""
        strategy_registry.register(
            "gossamer", cls, description="gossip with a few neighbours instead of an all-reduce"
        )


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


GossipStrategy.register_strategies(_strategies.StrategyRegistry)
