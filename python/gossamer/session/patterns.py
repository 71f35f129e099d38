"""The patterns that Gossip offers: the rows of the engine's table, and what each of them needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer import _core
from gossamer.tensors.fused import TITLES, Group, Rule
from gossamer.tensors.optimizers import Optimizers

Options = Mapping[str, float]


def names() -> list[str]:
    """What ``pattern`` may be."""
    return [row.name for row in _core.patterns()]


def row_of(name: str) -> _core.Pattern:
    """The row of that name, which there is."""
    return next(row for row in _core.patterns() if row.name == name)


def engine_row(name: str, rule: Rule | None) -> _core.Pattern:
    """The row that the engine runs for a pattern.

    Where gradients have been averaged in the backward it has parameters left, or nothing.
    """
    return row_of("cwa" if averages_gradients(name, rule) else name)


def averages_gradients(name: str, rule: Rule | None) -> bool:
    """Whether every backward averages the gradients, before an optimizer's step: under "allreduce",
    and under "gradient_gossip" for an optimizer that takes its own."""
    return name == "allreduce" or (rule is None and row_of(name).averages_first)


def is_plain_alone(name: str) -> bool:
    """Whether the pattern leaves one worker nothing to do but its optimizer's step."""
    row = row_of(name)
    return (row.own_step or row.averages_first) and not row.kept_state


# Options.


def check_options(name: str, options: Options | None) -> None:
    """Raises ValueError for ``pattern_options`` that the pattern does not have, or their values."""
    valid = row_of(name).options
    for key, value in (options or {}).items():
        if key not in valid:
            takes = f"it takes {', '.join(valid)}" if valid else "it takes none, leave them out"
            raise ValueError(
                f"[Gossip] unknown option {key!r} in pattern_options of pattern {name!r}; {takes}"
            )
        try:
            setattr(_core.Hyper(), key, value)
        except TypeError:
            kind = type(getattr(_core.Hyper(), key)).__name__
            raise ValueError(
                f"[Gossip] {key!r} in pattern_options must be of type {kind}, got {value!r}"
            ) from None
    _core.check_hyper(with_options(_core.Hyper(), options))


def with_options(hyper: _core.Hyper, options: Options | None) -> _core.Hyper:
    """The same object, with the options in it."""
    for key, value in (options or {}).items():
        setattr(hyper, key, value)
    return hyper


def stepping_groups(
    rule: Rule, groups: Sequence[Group], options: Options | None, scale: float = 1.0
) -> list[_core.Hyper]:
    """The groups of a fused optimizer as they are now; ``scale`` of the gradients."""
    hypers = [rule.hyper(group) for group in groups]
    for hyper in hypers:
        hyper.grad_scale *= scale
        with_options(hyper, options)
    return hypers


# Conditions.


def check_optimizers(name: str, rule: Rule | None, optimizers: Optimizers) -> None:
    """Raises ValueError for optimizers that the pattern does not go with."""
    row = row_of(name)
    kind = rule.title if rule is not None else optimizers.word
    if rule is None and not (row.own_step or row.averages_first):
        others = [each.name for each in _core.patterns() if each.own_step or each.averages_first]
        raise ValueError(
            f"[Gossip] pattern {name!r} steps the optimizer itself, got {kind}, which "
            f"{_takes_own(optimizers)} here; use one of pattern {', '.join(others)}, or a fused "
            f"optimizer{'' if optimizers.single else ' for all parameters'}: {_titles(row)}, on "
            "dense real parameters in CPU memory"
        )
    if rule is not None and rule.name not in (row.optimizers or [rule.name]):
        raise ValueError(
            f"[Gossip] pattern {name!r} works on the momentum of the optimizer, got {kind}; use "
            f"one of: {_titles(row)}"
        )


def _takes_own(optimizers: Optimizers) -> str:
    return "takes its own step" if optimizers.single else "take their own steps"


def _titles(row: _core.Pattern) -> str:
    """The optimizers that it goes with."""
    if row.optimizers:
        return ", ".join(TITLES[name] for name in row.optimizers)
    return ", ".join(dict.fromkeys(title.partition(" ")[0] for title in TITLES.values()))


def check_schedule(
    name: str, rule: Rule | None, schedule: _core.Schedule, options: Options | None = None
) -> None:
    """Raises ValueError for a schedule with which the pattern would not converge."""
    if averages_gradients(name, rule) and schedule.loss_driven:
        raise ValueError(
            f"[Gossip] pattern {name!r} averages gradients before the step of an optimizer that "
            f"takes its own, got topology {schedule.name!r}, whose rounds follow the loss of that "
            "step; use another topology, or global_average_every"
        )
    row = engine_row(name, rule)
    hyper = with_options(_core.Hyper(), options)
    unmet = row.unmet_condition(rule.name if rule else "none", schedule, hyper)
    hosts = list(schedule.workers_per_host)
    topology = schedule.name.partition(" + ")[0]  # without modifiers
    if unmet == "doubly_stochastic" and name == "push_sum":
        raise ValueError(
            f"[Gossip] pattern {name!r} needs W whose columns sum to 1, got topology "
            f"{schedule.name!r}; where its rows do, give the transposed matrices"
        )
    if unmet == "doubly_stochastic":
        raise ValueError(
            f"[Gossip] pattern {name!r} needs doubly stochastic W, got topology "
            f'{schedule.name!r}; use pattern="push_sum", or another topology'
        )
    if unmet == "outer_steps":
        raise ValueError(
            f"[Gossip] pattern {name!r} makes an outer step in every outer_every-th round, got "
            f'outer_every = {hyper.outer_every}; use pattern_options={{"outer_every": 8}}, or '
            f"another number from 1 up"
        )
    if unmet == "global_averages":
        every = hyper.outer_every
        raise ValueError(
            f"[Gossip] pattern {name!r} needs a global average in every outer_every-th round, got "
            f"topology {schedule.name!r} with outer_every = {every}; use topology="
            f'gossamer.make_schedule("{topology}", {hosts}, global_average_every={every}), or '
            f'pattern="noloco"'
        )
    if unmet == "static_symmetric":
        other = "" if rule is None else ', or pattern="gradient_tracking", which follows any'
        raise ValueError(
            f"[Gossip] pattern {name!r} needs the same symmetric W in every step, got topology "
            f'{schedule.name!r}; use topology="ring", "grid", "torus" or "complete", without '
            f"local steps and global averages{other}"
        )
    if unmet == "eigenvalues":
        raise ValueError(
            f"[Gossip] pattern {name!r} needs all eigenvalues of W above {row.above:.3g}, got "
            f"some of topology {schedule.name!r} that are not; make it lazy, (I + W)/2: "
            f'topology=gossamer.make_schedule("{topology}", {hosts}, lazy=True)'
        )
