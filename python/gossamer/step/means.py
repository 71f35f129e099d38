"""Means over the workers of tensors that nobody trains."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from gossamer.session.team import UNEVEN, Team
from gossamer.tensors import plain


def mean(
    team: Team, tensors: torch.Tensor | Iterable[torch.Tensor]
) -> torch.Tensor | list[torch.Tensor]:
    """See Gossip.mean."""
    if team.block == UNEVEN:
        team.refuse_inside("mean()")
    is_one = isinstance(tensors, torch.Tensor)
    given = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    copies: list[torch.Tensor] = []

    def describe() -> list[str]:
        copies.extend(_dense(i, tensor) for i, tensor in enumerate(given))
        return [f"tensor {i} {list(t.shape)} {t.dtype}" for i, t in enumerate(copies)]

    team.agree("mean()", describe)
    with team.within("mean()"):
        team.engine.average(copies)
    found = [copy.to(tensor.device) for copy, tensor in zip(copies, given, strict=True)]
    return found[0] if is_one else found


def _dense(number: int, tensor: torch.Tensor) -> torch.Tensor:
    """A copy in CPU memory."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"[Gossip] mean() is of tensors, got {type(tensor).__name__} at place {number}; wrap "
            "a number in torch.tensor(...)"
        )
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise TypeError(
            "[Gossip] mean() is of floating-point tensors, because a mean of whole numbers is none,"
            f" got {tensor.dtype} at place {number}; convert it with .double()"
        )
    values = tensor.detach()
    values = values.to_dense() if values.layout != torch.strided else values
    ((_, values),) = plain.pieces(f"tensor {number}", values.resolve_conj().resolve_neg().clone())
    return values.cpu().contiguous()
