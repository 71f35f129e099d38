"""Optimizers of Gossamer for torch: AccumAdam and AccumAdamW."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch


class AccumAdam(torch.optim.Optimizer):
    """Adam whose momenta move every ``accumulate``-th update, by the mean gradient since.

    In between they are used with the current gradient folded in, so that every update still takes
    a step. For decentralized training it keeps the quality of Adam on large global batches:
    averaging gradients over time stands in for averaging them over workers (*From Promise to
    Practice*, ICLR 2025). With ``accumulate=1`` it is Adam.

    With g the gradient of update t ≥ 1, s = ``accumulate`` and t̂ = ⌈t/s⌉::

        at the beginning of a period (t - 1 divisible by s): b ← 0
        m = β₁ m̂ + (1 - β₁) g        v = β₂ v̂ + (1 - β₂) g²        b ← b + g/s
        x ← x - lr · m/(1 - β₁^t̂) / (√(v/(1 - β₂^t̂)) + ε)
        at the end of a period (t divisible by s):
        m̂ ← β₁ m̂ + (1 - β₁) b       v̂ ← β₂ v̂ + (1 - β₂) b²

    Raises ValueError for a value out of its range.

    Example::

        optimizer = gossamer.AccumAdam(model.parameters(), lr=4e-3, betas=(0.66, 0.92))
        gossip = gossamer.Gossip(model, optimizer)
    """

    _decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        accumulate: int = 4,
        *,
        maximize: bool = False,
    ) -> None:
        for name, value, valid, wanted in (
            ("lr", lr, lr >= 0, "at least 0"),
            ("betas", betas, all(0 <= beta < 1 for beta in betas), "at least 0 and below 1"),
            ("eps", eps, eps > 0, "above 0"),
            ("weight_decay", weight_decay, weight_decay >= 0, "at least 0"),
            (
                "accumulate",
                accumulate,
                accumulate >= 1 and int(accumulate) == accumulate,
                "a whole number, at least 1",
            ),
        ):
            if not valid:
                raise ValueError(f"[{type(self).__name__}] {name} must be {wanted}, got {value}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "accumulate": int(accumulate),
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient; returns what ``closure`` returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    def _update(self, x: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[x]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device="cpu")
            for key in ("exp_avg", "exp_avg_sq", "accumulated"):
                state[key] = torch.zeros_like(x, memory_format=torch.preserve_format)
        state["step"] += 1
        t, period = int(state["step"]), group["accumulate"]
        (beta1, beta2), lr = group["betas"], float(group["lr"])
        g = -x.grad if group["maximize"] else x.grad
        if self._decoupled:
            x.mul_(1 - lr * group["weight_decay"])
        elif group["weight_decay"] != 0:
            g = g.add(x, alpha=group["weight_decay"])
        m_hat, v_hat, b = state["exp_avg"], state["exp_avg_sq"], state["accumulated"]
        m = m_hat.mul(beta1).add_(g, alpha=1 - beta1)
        v = v_hat.mul(beta2).addcmul_(g, g, value=1 - beta2)
        if (t - 1) % period == 0:
            b.zero_()
        b.add_(g, alpha=1 / period)
        t_hat = (t + period - 1) // period
        root = v.sqrt_().div_((1 - beta2**t_hat) ** 0.5).add_(group["eps"])
        x.addcdiv_(m, root, value=-lr / (1 - beta1**t_hat))
        if t % period == 0:
            m_hat.mul_(beta1).add_(b, alpha=1 - beta1)
            v_hat.mul_(beta2).addcmul_(b, b, value=1 - beta2)


class AccumAdamW(AccumAdam):
    """AccumAdam with decoupled weight decay: x ← (1 - lr · weight_decay) x before the update.

    Example::

        optimizer = gossamer.AccumAdamW(model.parameters(), lr=4e-3, accumulate=2)
        gossip = gossamer.Gossip(model, optimizer)
    """

    _decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        accumulate: int = 4,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, accumulate, maximize=maximize)
