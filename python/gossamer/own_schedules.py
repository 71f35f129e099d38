"""Schedules of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from gossamer import _core


def schedule_from_matrices(
    matrices: Iterable[Any],
    workers_per_host: Sequence[int] | None = None,
    *,
    lazy: bool = False,
    rounds_per_step: int = 1,
    local_steps: int = 1,
    global_average_every: int = 0,
    adaptive_average: int = 0,
) -> _core.Schedule:
    """The schedule whose rounds are these mixing matrices W, in turn.

    Each is (n, n): a nested list, a numpy array or a tensor. ``W[i][j]`` is the weight with which i
    takes what j sent; rows and columns sum to 1, or columns alone, for pattern ``"push_sum"``. Sums
    that miss 1 by less than 1e-5 are made exact. Without ``workers_per_host`` it serves whatever
    hosts the workers are on. The modifiers are those of ``make_schedule``. ValueError that names
    the round for weights that are negative, not finite or of other sums.

    Example::

        pair, apart = [[0.5, 0.5], [0.5, 0.5]], [[1, 0], [0, 1]]
        schedule = gossamer.schedule_from_matrices([pair, apart])
        assert schedule.period == 2
    """
    if not isinstance(matrices, Iterable):
        raise ValueError(
            f"[topology] matrices must be a list of them, one per round, got "
            f"{type(matrices).__name__}; give [W] for the same in every step"
        )
    rounds = [_rows(t, matrix) for t, matrix in enumerate(matrices)]
    hosts = list(workers_per_host) if workers_per_host is not None else [len(r) for r in rounds[:1]]
    return _core.modified_schedule(
        _core.schedule_from_matrices(rounds, hosts),
        lazy=lazy,
        rounds_per_step=rounds_per_step,
        local_steps=local_steps,
        global_average_every=global_average_every,
        adaptive_average=adaptive_average,
    )


def _rows(t: int, matrix: Any) -> list[list[float]]:
    try:
        values = torch.as_tensor(matrix, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"[topology] matrices, round {t}: W must be a square of numbers, got "
            f"{type(matrix).__name__}: {error}"
        ) from None
    if values.ndim != 2:
        raise ValueError(
            f"[topology] matrices, round {t}: W must have rows and columns, got shape "
            f"{tuple(values.shape)}; give a list of matrices, as [W] for the same in every step"
        )
    return values.tolist()
