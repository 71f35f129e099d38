"""Parameters in the memory of a device, such as a GPU: what is served there, and how their
gradients are checked without waiting for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import nn

from gossamer.tensors import shards
from gossamer.tensors.names import Named, own_name


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
                f"[Gossip] the model must be on one device, got {kind} '{own_name(name)}' on "
                f"{tensor.device} and '{first}' on {found or 'cpu'}; move all of it before the "
                "optimizer is made, as model.to(device) does"
            )
        first, found = first or own_name(name), here
    return found


def name_of_gpu(model: nn.Module) -> str:
    """What tells the GPU that the model is on from all others; empty where it is on none."""
    device = device_of(model)
    if device is None or device.type != "cuda":
        return ""
    return str(torch.cuda.get_device_properties(device).uuid)


def refuse_capture(named: Sequence[Named]) -> None:
    """Raises RuntimeError while a CUDA graph is captured: what a step sends to other workers is
    not part of one."""
    is_on_gpu = bool(named) and named[0][1].device.type == "cuda"
    if is_on_gpu and torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            "[Gossip] optimizer.step() cannot be captured in a CUDA graph, because it exchanges "
            "with other workers; capture forward and backward, and call step() after the replay"
        )


def check(named: Sequence[Named]) -> None:
    """Raises ValueError for what is not served where parameters are on a device."""
    there = [each for each in named if each[1].device.type not in ("cpu", "meta")]
    if not there:
        return
    for name, parameter, _ in there:
        if parameter.dtype not in _SERVED:
            raise ValueError(
                f"[Gossip] parameter '{name}' on {parameter.device} must be float32, float64, "
                f"bfloat16 or float16, got {parameter.dtype}; keep it in float32"
            )


_SERVED = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def _norms(gradients: Sequence[torch.Tensor]) -> torch.Tensor:
    """Of each. In half precision it would be rounded, or too large."""
    is_double = any(gradient.dtype == torch.float64 for gradient in gradients)
    dtype = torch.float64 if is_double else torch.float32
    return torch.stack(torch._foreach_norm(gradients, dtype=dtype))


class _Noted(NamedTuple):
    """Norms of a step's gradients on their way to the host."""

    step: int
    names: list[str]
    norms: torch.Tensor
    over: torch.Event


class LateCheck:
    """Whether gradients on a device are finite, known a step or two later: nobody waits for it.

    Ranks with shards of one model must raise in the same step, or they wait for each other in the
    next one. So they look at a step when they have noted the next one, as soon as the device has
    come to it.
    """

    _MOST = 4  # steps that are looked at later; the host waits before there are more

    def __init__(self, named: Iterable[Named], rank: int) -> None:
        self._rank = rank
        self._noted: deque[_Noted] = deque()
        self._is_agreed = any(shards.is_sharded(parameter) for _, parameter, _ in named)

    def note(self, named: Sequence[Named], step: int) -> None:
        """The gradients that are there are those of ``step``."""
        if len(self._noted) == (1 if self._is_agreed else self._MOST):
            self._noted[0].over.synchronize()
        self.look()
        there = [(name, p.grad) for name, p, _ in named if p.grad is not None]
        dense = [(name, shards.local_of(g)) for name, g in there if g.layout == torch.strided]
        if not dense:
            return
        names = [name for name, _ in dense]
        with torch.no_grad():
            norms = _norms([gradient for _, gradient in dense])
            total = shards.sum_over_ranks(norms.sum(), (parameter for _, parameter, _ in named))
            if total is not None:
                norms, names = torch.cat([norms, total.reshape(1)]), [*names, ""]
            here = torch.empty(norms.shape, dtype=norms.dtype, pin_memory=True)
            here.copy_(norms, non_blocking=True)
        over = torch.Event(norms.device)
        over.record()
        self._noted.append(_Noted(step, names, here, over))

    def look(self) -> None:
        """Raises RuntimeError for the first of the gradients that the device has come to, and that
        is not finite."""
        while self._noted and self._noted[0].over.query():
            noted = self._noted.popleft()
            for name, norm in zip(noted.names, noted.norms.tolist(), strict=True):
                if norm - norm != 0:
                    of = f"of parameter '{name}' " if name else ""
                    got = (
                        f"a norm of {norm}" if name else "another number in a shard of another rank"
                    )
                    raise RuntimeError(
                        f"[Gossip] the gradient {of}on worker {self._rank} in step {noted.step} "
                        f"must be finite, got {got}; on a device that is known a step or two "
                        "later, and the optimizer has stepped with it: go back to what was saved, "
                        "and lower the learning rate, clip, or use a GradScaler"
                    )
