"""What must hold before anything is timed."""

from __future__ import annotations

from collections.abc import Sequence

import contenders
import torch
from contenders import Contender, Shared
from native import Kernels

SIZES = [*range(1, 70), 1000, 1003, 4097, 70001]
QUICK_SIZES = [1, 31, 33, 1003]


def _require_bits(name: str, n: int, got: torch.Tensor, expected: torch.Tensor) -> None:
    different = int((got.view(torch.int32) != expected.view(torch.int32)).sum())
    if different:
        raise SystemExit(f"[check] {name}, n {n}: {different} elements differ from torch in bits")


def sgd_has_the_bits_of_torch(kernels: Kernels, sizes: Sequence[int]) -> None:
    """Plain SGD and momentum, three steps each, at sizes with and without vector tails."""
    options = [
        dict(momentum=momentum, dampening=dampening, weight_decay=decay, nesterov=nesterov)
        for momentum, dampening, nesterov in
        [(0, 0, False), (0.9, 0, False), (0.9, 0.2, False), (0.9, 0, True)]
        for decay in (0, 1e-3)
    ]  # fmt: skip
    for n in sizes:
        for option in options:
            _check_sgd(kernels, n, option)


def _check_sgd(kernels: Kernels, n: int, option: dict) -> None:
    torch.manual_seed(n)
    parameter = torch.nn.Parameter(torch.randn(n))
    x, buf = parameter.detach().clone(), torch.full((n,), float("nan"))
    optimizer = torch.optim.SGD([parameter], lr=0.013, foreach=False, **option)
    for t in range(3):
        parameter.grad = torch.randn(n)
        if option["momentum"]:
            step = kernels.step("momentum", lr=0.013, first_step=t == 0, **option)
            kernels.momentum(x, parameter.grad, buf, step)
        else:
            kernels.sgd(x, parameter.grad, 0.013, option["weight_decay"])
        optimizer.step()
        _require_bits(f"SGD {option}", n, x, parameter.data)


def adam_has_the_answer_of_torch(kernels: Kernels) -> None:
    """Without decay, which torch's sequence applies to the mixed x and ours to the unmixed."""
    shared = Shared.make(100_003)
    _same_answer(
        contenders.ours_adamw(kernels, shared, decay=0),
        contenders.torch_adamw(shared, mix=True, decay=0, foreach=True),
    )
    _same_answer(
        contenders.ours_accum_adamw(kernels, shared, decay=0),
        contenders.torch_accum_adamw(shared, decay=0),
    )


def _same_answer(one: Contender, other: Contender) -> None:
    """Steps both from the same start. Rounding differs by a few units in the last place."""
    for _ in range(3):
        one.step()
        other.step()
    torch.testing.assert_close(one.x, other.x, rtol=1e-5, atol=1e-6)
