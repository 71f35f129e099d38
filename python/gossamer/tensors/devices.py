"""Parameters in the memory of a device, such as a GPU: what is served there, and how their
gradients are checked without waiting for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import nn

from gossamer.tensors import shards

Named = tuple[str, torch.Tensor, int]

PATTERNS = ("cwa", "atc")
"""Those that are served on a device."""


def device_of(model: nn.Module) -> torch.device | None:
    """The device that the model's parameters are on; None for CPU memory.

    Raises ValueError for a model on several, or with parameters in CPU memory beside it.
    """
    places = [("parameter", *named) for named in model.named_parameters()]
    places += [("buffer", *named) for named in model.named_buffers()]
    first = ""
    found: torch.device | None = None
    for kind, name, tensor in places:
        here = None if tensor.device.type in ("cpu", "meta") else tensor.device
        if kind == "buffer" and here is None:
            continue
        if first and here != found:
            raise ValueError(
                f"[Gossip] the model must be on one device, got {kind} '{_own(name)}' on "
                f"{tensor.device} and '{first}' on {found or 'cpu'}; move all of it before the "
                "optimizer is made, as model.to(device) does"
            )
        first, found = first or _own(name), here
    return found


def check(named: Sequence[Named], pattern: str, late: str) -> None:
    """Raises ValueError for what is not served where parameters are on a device."""
    there = [each for each in named if each[1].device.type not in ("cpu", "meta")]
    if not there:
        return
    name, parameter, _ = there[0]
    where = f"parameter '{name}' on {parameter.device}"
    if pattern not in PATTERNS:
        raise ValueError(
            f'[Gossip] pattern must be one of {PATTERNS} for a model on a device, got "{pattern}" '
            f"and {where}; take one of these, or for all-reduce DistributedDataParallel there"
        )
    if late != "wait":
        raise ValueError(
            f'[Gossip] late must be "wait" for a model on a device, got "{late}" and {where}'
        )
    for name, parameter, _ in there:
        if shards.is_sharded(parameter):
            raise ValueError(
                f"[Gossip] parameter '{name}' on {parameter.device} is a shard; shards are served "
                "in CPU memory only: keep the parameters whole, one worker per device"
            )
        if parameter.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"[Gossip] parameter '{name}' on {parameter.device} must be float32 or float64, "
                f"got {parameter.dtype}; keep parameters in float32 and compute under "
                "torch.autocast(dtype=torch.bfloat16)"
            )


class LateCheck:
    """Whether gradients on a device are finite, known a step later: nobody waits for the device."""

    def __init__(self, named: Iterable[Named], rank: int) -> None:
        self._named = list(named)
        self._rank = rank
        self._step = 0
        self._norms: torch.Tensor | None = None
        self._names: list[str] = []
        self._over: torch.Event | None = None

    def note(self, step: int) -> None:
        """The gradients that are there are those of ``step``."""
        self.look()
        there = [(name, p.grad) for name, p, _ in self._named if p.grad is not None]
        dense = [(name, g) for name, g in there if g.layout == torch.strided]
        if not dense:
            return
        with torch.no_grad():
            norms = torch.stack(torch._foreach_norm([gradient for _, gradient in dense]))
            self._norms = torch.empty(norms.shape, dtype=norms.dtype, pin_memory=True)
            self._norms.copy_(norms, non_blocking=True)
        self._names = [name for name, _ in dense]
        self._step = step
        self._over = torch.Event(norms.device)
        self._over.record()

    def look(self) -> None:
        """Raises RuntimeError for the gradients that were noted last, if the device has come to
        them and one is not finite."""
        if self._norms is None or self._over is None or not self._over.query():
            return
        norms, self._norms = self._norms, None
        for name, norm in zip(self._names, norms.tolist(), strict=True):
            if norm - norm != 0:
                raise RuntimeError(
                    f"[Gossip] the gradient of parameter '{name}' on worker {self._rank} in step "
                    f"{self._step} must be finite, got a norm of {norm}; on a device that is known "
                    "a step later, and the optimizer has stepped with it: go back to what was "
                    "saved, and lower the learning rate, clip, or use a GradScaler"
                )


def _own(name: str) -> str:
    return name.replace("_orig_mod.", "")
