"""How fast the device of this process copies from and to pinned memory of the host."""

from __future__ import annotations

import time

import torch

_BYTES = 64 << 20
_ROUNDS = 3


def describe() -> str:
    """A line for the table of the host: where parameters may be, and the rates of a GPU."""
    if not torch.accelerator.is_available():
        return "in CPU memory; there is no GPU here"
    device = torch.accelerator.current_accelerator()
    try:
        out, back = measure(torch.device(str(device)))
    except RuntimeError as error:
        return f"in CPU memory; {device} fails: {str(error).splitlines()[0]}"
    return f"in CPU memory, or on {device}: {out:.1f} GB/s out, {back:.1f} GB/s in"


def measure(device: torch.device, count: int = _BYTES) -> tuple[float, float]:
    """GB/s from the device to pinned memory, and to it; the best of a few copies of ``count``
    bytes."""
    there = torch.zeros(count, dtype=torch.uint8, device=device)
    here = torch.zeros(count, dtype=torch.uint8, pin_memory=True)
    return rate(here, there), rate(there, here)


def latency_s(device: torch.device) -> float:
    """Seconds of the smallest copy to pinned memory; the best of a few."""
    there = torch.zeros(1, dtype=torch.uint8, device=device)
    here = torch.zeros(1, dtype=torch.uint8, pin_memory=True)
    return 1e-9 / rate(here, there)


def rate(into: torch.Tensor, source: torch.Tensor) -> float:
    """GB/s of a copy that need not be waited for; the best of a few."""
    best = float("inf")
    for _ in range(_ROUNDS):
        torch.accelerator.synchronize()
        begin = time.perf_counter()
        into.copy_(source, non_blocking=True)
        torch.accelerator.synchronize()
        best = min(best, time.perf_counter() - begin)
    return into.nbytes / best / 1e9
