"""Whoever trains in CPU memory starts nothing on a device, be one there or not."""

import os
import subprocess
import sys

PROGRAM = """
import torch

touched = []
for place, name in [
    (torch.cuda, "_lazy_init"),
    (torch.cuda, "current_stream"),
    (torch.cuda, "synchronize"),
    (torch.accelerator, "synchronize"),
    (torch.accelerator, "current_stream"),
    (torch.Tensor, "pin_memory"),
]:
    setattr(place, name, lambda *_, name=name, **__: touched.append(name))

import gossamer

for optimizer_class in (torch.optim.AdamW, torch.optim.Adagrad):  # fused, and its own step
    for pattern in ("cwa", "allreduce"):
        model = torch.nn.Linear(3, 2)
        optimizer = optimizer_class(model.parameters())
        with gossamer.Gossip(model, optimizer, pattern=pattern) as gossip:
            for _ in range(3):
                optimizer.zero_grad()
                model(torch.ones(4, 3)).sum().backward()
                optimizer.step()
            gossip.disagreement()
assert not touched, touched
assert not torch.cuda.is_initialized()
"""


def test_training_in_cpu_memory_touches_no_accelerator() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
