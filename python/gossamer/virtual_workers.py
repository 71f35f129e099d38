"""Many workers in one process, for methods and problems under study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from gossamer import _core
from gossamer.base import words

_OF_STEPS = ("lr", "grad_scale")
_NUMBERS = [name for name in dir(_core.Hyper) if name[0] != "_" and name not in _OF_STEPS]


class VirtualWorkers:
    """n workers in one process, on a problem of your own: you give the gradients, they step and
    mix by the rules that train networks.

    Args:
        x: where they start, (n, ...): row i is worker i's parameters. It is copied, as float64.
        topology: a name of ``gossamer topology --list``, a file of matrices (NAME.json), or a
            schedule.
        pattern: one of docs/methods.md: ``"atc"``, ``"cwa"``, ``"gradient_tracking"``, …
        optimizer: the local one, as ``gossamer train --optimizer`` has it: ``"sgd"``, ``"adam"``, …
        workers_per_host: for topologies that follow hosts; by default each worker has its own.
        seed: of topologies that draw at random.
        numbers: the optimizer's and the pattern's: ``momentum``, ``beta1``, ``outer_every``, …

    Raises ValueError for a topology that cannot serve n workers, or does not go with the pattern;
    TypeError for a number that does not exist.

    Example::

        centres = torch.arange(8.0).unsqueeze(1)
        workers = gossamer.VirtualWorkers(torch.zeros(8, 1), pattern="gradient_tracking")
        for _ in range(500):
            workers.step(workers.x - centres, lr=0.1)
        assert abs(workers.mean() - 3.5) < 1e-6
    """

    def __init__(
        self,
        x: Any,
        *,
        topology: str | _core.Schedule = "alternating_exponential_ring",
        pattern: str = "atc",
        optimizer: str = "sgd",
        workers_per_host: Sequence[int] | None = None,
        seed: int = 0,
        **numbers: float,
    ) -> None:
        own = [*words.known_words(VirtualWorkers.__init__), *_NUMBERS]
        words.check("VirtualWorkers", numbers, own)
        self.x = _float64("x", x).clone(memory_format=torch.contiguous_format)
        """(n, ...), float64: the parameters of now. Each step changes it; so may you."""
        if self.x.ndim == 0 or self.x.numel() == 0:
            raise ValueError(
                f"[VirtualWorkers] x must have a row per worker, got shape {tuple(self.x.shape)}"
            )
        self._shape = self.x.shape
        n = self.x.shape[0]
        if isinstance(topology, str):
            topology = _core.make_schedule(topology, list(workers_per_host or [1] * n), seed=seed)
        elif workers_per_host is not None:
            topology = topology.on_hosts(list(workers_per_host))
        if topology.workers != n:
            raise ValueError(
                f"[VirtualWorkers] the topology is for {topology.workers} workers, got x with {n} "
                "rows"
            )
        self._hyper = _core.Hyper()
        for name, value in numbers.items():
            try:
                setattr(self._hyper, name, value)
            except TypeError:
                kind = type(getattr(self._hyper, name)).__name__
                raise ValueError(
                    f"[VirtualWorkers] {name} must be of type {kind}, got {value!r}"
                ) from None
        self._core = _core.VirtualWorkers(
            topology, pattern, optimizer, self.x.numel() // n, self._hyper
        )
        self._core.start(self.x)

    def step(
        self, gradients: Any, lr: float, *, matrix: Any = None, loss: float = math.nan
    ) -> None:
        """One step of all workers.

        Args:
            gradients: shaped as ``x``: row i is worker i's, at its own parameters.
            lr: the learning rate of this step.
            matrix: (n, n), W of this step in place of the topology's, as a rule of yours chooses
                it. Rows and columns sum to 1. Not for patterns that need all rounds of one
                topology: ``"allreduce"``, ``"exact_diffusion"``, ``"extra"``, ``"push_sum"``,
                ``"slowmo"``.
            loss: the workers' mean loss, for a topology with ``adaptive_average``.

        Raises ValueError for other shapes, weights or numbers.

        Example::

            workers = gossamer.VirtualWorkers(torch.randn(4, 10))
            apart = torch.cdist(workers.x, workers.x)
            far = torch.zeros(4, 4)
            i, j = divmod(int(apart.argmax()), 4)  # the two that differ most average
            far[i, j] = far[j, i] = 0.5
            workers.step(workers.x, lr=0.1, matrix=far + torch.diag(1 - far.sum(1)))
        """
        g = self._like_x("gradients", gradients)
        self.x = self._like_x("x", self.x)
        if self._core.wants_loss:
            if math.isnan(float(loss)):
                raise ValueError(
                    "[VirtualWorkers] the topology follows the loss, got none; call step(gradients,"
                    " lr, loss=loss)"
                )
            self._core.agree_on(float(loss))
        self._hyper.lr = lr
        weights = None if matrix is None else _float64("matrix", matrix).tolist()
        self._core.step(self.x, g, self._hyper, weights)

    def mean(self) -> torch.Tensor:
        """The mean over the workers, float64, without their dimension; of push_sum the weighted
        one, which mixing keeps.

        Example::

            workers = gossamer.VirtualWorkers([[0.0], [1.0]])
            assert workers.mean() == 0.5
        """
        mean = self._core.mean(self._like_x("x", self.x))
        return torch.tensor(mean, dtype=torch.float64).reshape(self._shape[1:])

    def disagreement(self) -> float:
        """The mean over the workers i of the squared distance of row i to ``mean()``.

        Example::

            workers = gossamer.VirtualWorkers([[0.0], [1.0]])
            assert workers.disagreement() == 0.25
        """
        return float((self.x - self.mean()).square().sum() / self._shape[0])

    @property
    def steps_done(self) -> int:
        """How many steps they have done.

        Example::

            assert gossamer.VirtualWorkers([[0.0], [1.0]]).steps_done == 0
        """
        return self._core.steps_done

    def _like_x(self, name: str, values: Any) -> torch.Tensor:
        tensor = _float64(name, values).contiguous()
        if tensor.shape != self._shape:
            raise ValueError(
                f"[VirtualWorkers] {name} must have the shape {tuple(self._shape)} of x, got "
                f"{tuple(tensor.shape)}"
            )
        return tensor


def _float64(name: str, values: Any) -> torch.Tensor:
    try:
        return torch.as_tensor(values, dtype=torch.float64, device="cpu").detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"[VirtualWorkers] {name} must be numbers, got {type(values).__name__}: {error}"
        ) from None
