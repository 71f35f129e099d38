"""How fast the device of this process copies from and to pinned memory of the host."""

from __future__ import annotations

import torch

from gossamer import _core
from gossamer.workers.wording import first_line


def describe() -> str:
    """A line for the table of the host: where parameters may be, and the rates of a GPU."""
    if not torch.accelerator.is_available():
        return "in CPU memory; there is no GPU here"
    device = torch.accelerator.current_accelerator()
    try:
        out, back, _ = _core.measure_device_link(str(device))
    except RuntimeError as error:
        return f"in CPU memory; {device} fails: {first_line(error)}"
    return f"in CPU memory, or on {device}: {out / 1e9:.1f} GB/s out, {back / 1e9:.1f} GB/s in"
