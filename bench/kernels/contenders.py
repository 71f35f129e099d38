"""What is timed: our passes, what a PyTorch user runs instead, and the memory yardsticks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from native import Kernels

LR, BETA1, BETA2, EPS, DECAY, PERIOD = 1e-3, 0.9, 0.999, 1e-8, 0.01, 4
SELF_WEIGHT, WEIGHT = 0.5, 0.5


@dataclass
class Contender:
    name: str
    step: Callable[[], None]
    bytes_per_parameter: int | None  # None: many passes, no single figure
    x: torch.Tensor | None = None


@dataclass
class Shared:
    """The same received buffer, gradient and start for all."""

    start: torch.Tensor
    received: torch.Tensor
    g: torch.Tensor

    @staticmethod
    def make(n: int) -> Shared:
        torch.manual_seed(7)
        return Shared(torch.randn(n), torch.randn(n), torch.randn(n))


def _adamw(decay: float) -> dict[str, float]:
    return {
        "lr": LR, "beta1": BETA1, "beta2": BETA2, "eps": EPS,
        "weight_decay": decay, "decoupled": True,
    }  # fmt: skip


def ours_adamw(kernels: Kernels, shared: Shared, decay: float = DECAY) -> Contender:
    x = shared.start.clone()
    m, v = torch.zeros_like(x), torch.zeros_like(x)
    step = kernels.step("adam", **_adamw(decay))
    t = 0

    def run() -> None:
        nonlocal t
        t += 1
        step.set(t=t)
        kernels.adam(x, shared.g, m, v, step,
                     self_weight=SELF_WEIGHT, source=shared.received, weight=WEIGHT)  # fmt: skip

    return Contender("gossamer mix+AdamW", run, 32, x)


def ours_accum_adamw(kernels: Kernels, shared: Shared, decay: float = DECAY) -> Contender:
    x, m, v, b = shared.start.clone(), *(torch.zeros_like(shared.start) for _ in range(3))
    step = kernels.step("accum_adam", **_adamw(decay), period=PERIOD)
    t = 0

    def run() -> None:
        nonlocal t
        for _ in range(PERIOD):
            t += 1
            step.set(t=t)
            kernels.accum_adam(x, shared.g, m, v, b, step,
                               self_weight=SELF_WEIGHT, source=shared.received,
                               weight=WEIGHT)  # fmt: skip

    return Contender("gossamer mix+AccumAdamW, 4 steps", run, 28 + 32 + 32 + 36, x)


def torch_adamw(shared: Shared, mix: bool, decay: float = DECAY, **kind: bool) -> Contender:
    """mul/add + torch's AdamW + copy/mul of the send buffer; without `mix` AdamW alone."""
    parameter = torch.nn.Parameter(shared.start.clone())
    parameter.grad = shared.g
    optimizer = torch.optim.AdamW(
        [parameter], lr=LR, betas=(BETA1, BETA2), eps=EPS, weight_decay=decay, **kind
    )
    buffer = torch.empty_like(shared.start)

    @torch.no_grad()
    def run() -> None:
        if mix:
            parameter.mul_(SELF_WEIGHT).add_(shared.received, alpha=WEIGHT)
        optimizer.step()
        if mix:
            buffer.copy_(parameter)
            buffer.mul_(SELF_WEIGHT)

    word = "+".join(kind)
    name = f"torch mul/add + {word} AdamW + copy/mul" if mix else f"torch {word} AdamW alone"
    return Contender(name, run, None, parameter.data)


def torch_accum_adamw(shared: Shared, decay: float = DECAY) -> Contender:
    """AccumAdamW in torch operations, mixed and copied as above."""
    x, m, v, b = shared.start.clone(), *(torch.zeros_like(shared.start) for _ in range(3))
    buffer = torch.empty_like(x)
    t = 0

    def one_step() -> None:
        nonlocal t
        t += 1
        t_hat, g = -(-t // PERIOD), shared.g
        x.mul_(SELF_WEIGHT).add_(shared.received, alpha=WEIGHT).mul_(1 - LR * decay)
        now_m = m.mul(BETA1).add_(g, alpha=1 - BETA1)
        now_v = v.mul(BETA2).addcmul_(g, g, value=1 - BETA2)
        now_v.sqrt_().div_((1 - BETA2**t_hat) ** 0.5).add_(EPS)
        x.addcdiv_(now_m, now_v, value=-LR / (1 - BETA1**t_hat))
        b.add_(g, alpha=1 / PERIOD)
        if t % PERIOD == 0:
            m.mul_(BETA1).add_(b, alpha=1 - BETA1)
            v.mul_(BETA2).addcmul_(b, b, value=1 - BETA2)
            b.zero_()
        buffer.copy_(x)
        buffer.mul_(SELF_WEIGHT)

    def run() -> None:
        for _ in range(PERIOD):
            one_step()

    return Contender("torch operations for AccumAdamW, 4 steps", run, None, x)


def yardsticks(kernels: Kernels, shared: Shared) -> list[Contender]:
    a = torch.zeros_like(shared.g)
    b, c = shared.g, shared.received
    return [
        Contender("STREAM triad", lambda: kernels.triad(a, b, c), 12),
        Contender("triad, streaming stores", lambda: kernels.triad(a, b, c, streaming=True), 12),
        Contender("copy, streaming stores", lambda: kernels.copy(a, b), 8),
    ]
