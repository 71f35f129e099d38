"""Published formulas of decentralized training, worked out: ``from gossamer import theory``.

The same as the command ``gossamer theory``, with its words (docs/theory.md). Rates and transient
iterations are orders of growth from the lecture "Decentralized SGD and its variants", without
constants; the bound is Theorem 4.1 of the poster "Efficient Decentralized Training of DNNs". What
is infinite is ``math.inf``. All functions raise ValueError for numbers out of range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gossamer import _core

__all__ = [
    "Bound",
    "BoundTerm",
    "Mixing",
    "Rate",
    "RateTerm",
    "SpeedUp",
    "StepTimes",
    "TopologyRow",
    "Transient",
    "bound",
    "mixing",
    "rates",
    "speedup",
    "topologies",
    "transient",
]


@dataclass(frozen=True)
class Mixing:
    """How strongly workers mix, in place of a schedule.

    Args:
        workers: n.
        rho: from 0 (a global average in every step) to 1 (nothing is mixed).

    Example::

        from gossamer.theory import Mixing, transient

        print(transient(Mixing(workers=64, rho=0.9), global_average_every=8)[0].iterations)
    """

    workers: int
    rho: float


@dataclass(frozen=True)
class BoundTerm:
    """A summand of the bound: ``in_bound`` is ``value``, times ``per_step`` but for the first.

    Example::

        from gossamer.theory import Mixing, bound

        print(bound(Mixing(workers=64, rho=0.9), steps=1e5, parameters=65e6).terms[0].formula)
    """

    term: str
    formula: str
    value: float
    in_bound: float


@dataclass(frozen=True)
class Bound:
    """The bound on E‖∇F‖² and its terms, in the units of ‖∇F‖².

    ``known_at_start`` is the smaller of D R² and 2 L (F(x⁰) - F*), which ‖∇F‖² at the start cannot
    exceed. ``verdict`` is ``"informative"`` where the bound is below it, else ``"vacuous"``, or
    ``"infinite"`` where rho = 1. Only the term ``disagreement`` depends on the topology.

    Example::

        from gossamer.theory import Mixing, bound

        print(bound(Mixing(workers=64, rho=0.9), steps=1e5, parameters=65e6).verdict)
    """

    terms: tuple[BoundTerm, ...]
    per_step: float
    bound: float
    known_at_start: float
    verdict: str


@dataclass(frozen=True)
class RateTerm:
    """A summand of a rate: its order in symbols and its value. ``even_from`` is the T from which on
    the term is no larger than the first, ``sampling``.

    Example::

        from gossamer.theory import Mixing, rates

        print(rates(Mixing(workers=64, rho=0.9), steps=1e5)[0].terms[0].order)
    """

    term: str
    order: str
    value: float
    even_from: float


@dataclass(frozen=True)
class Rate:
    """How far a method is after T steps: O of the sum of the terms, constants left out.

    ``loss`` ``"non_convex"``: of the mean of ‖∇f‖² over T steps; ``"generally_convex"`` and
    ``"strongly_convex"``: of f - f*, weighted over the steps. Values are NaN where the rate is not
    proved for this number of workers; ``note`` names the condition.

    Example::

        from gossamer.theory import Mixing, rates

        print(rates(Mixing(workers=64, rho=0.9), steps=1e5)[0].sum)
    """

    method: str
    loss: str
    terms: tuple[RateTerm, ...]
    sum: float
    note: str


@dataclass(frozen=True)
class Transient:
    """From which step on a method keeps up with parallel SGD: the order and its value.

    Example::

        from gossamer.theory import Mixing, transient

        print(transient(Mixing(workers=64, rho=0.9), global_average_every=8)[0].order)
    """

    method: str
    loss: str
    data: str
    order: str
    iterations: float


@dataclass(frozen=True)
class TopologyRow:
    """A topology in the lecture's comparison: D-SGD, iid data.

    ``communication`` and ``order`` are as printed (``~`` leaves logarithms out), and
    ``printed_iterations`` is the order's value. ``neighbours`` (the most that a worker hears in a
    step), ``rho`` and ``iterations`` are worked out from the topology itself with
    n³ rho⁴/(1 - rho)²; for more than 1024 workers they are 0, NaN and NaN.

    Example::

        from gossamer.theory import topologies

        print(topologies([1] * 16)[0].rho)
    """

    topology: str
    communication: str
    order: str
    printed_iterations: float
    neighbours: int
    rho: float
    iterations: float


@dataclass(frozen=True)
class StepTimes:
    """Times of a step in units of the mean compute time.

    Example::

        from gossamer.theory import StepTimes

        print(StepTimes(allreduce=3.0, decentralized=2.0).speed_up)  # a third
    """

    allreduce: float
    decentralized: float

    @property
    def speed_up(self) -> float:
        """1 - decentralized/allreduce, the convention of all published figures."""
        return 1 - self.decentralized / self.allreduce


@dataclass(frozen=True)
class SpeedUp:
    """Step times in closed form, and by the recursion that follows the workers step by step.

    Example::

        from gossamer.theory import speedup

        print(speedup(gossamer.make_schedule("aer", [4, 4]), gamma=2.0, omega=0.5).closed_form)
    """

    closed_form: StepTimes
    recursion: StepTimes


def mixing(schedule: _core.Schedule) -> Mixing:
    """Workers and effective rho of a schedule of ``gossamer.make_schedule``.

    rho is ‖W - J‖₂ of a static graph; a schedule of τ rounds (4 where they never repeat) that
    leave c of a disagreement counts as 1 - (1 - c)/τ. ValueError unless rows and columns of W sum
    to 1.

    Example::

        from gossamer import theory

        ring = gossamer.make_schedule("ring", [1] * 16)
        print(theory.mixing(ring).rho)
    """
    return Mixing(*_core.theory_mixing(schedule))


def _mixing(given: _core.Schedule | Mixing) -> Mixing:
    return given if isinstance(given, Mixing) else mixing(given)


def bound(
    schedule: _core.Schedule | Mixing,
    *,
    steps: float,
    parameters: float,
    step_size: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    gradient_bound: float = 1.0,
    smoothness: float = 1.0,
    excess_loss: float = 1.0,
) -> Bound:
    """Theorem 4.1: what bounds E‖∇F‖² of decentralized Adam at a random one of its steps.

    Args:
        schedule: whose effective rho is the theorem's λ.
        steps: T, more than β₁/(1 - β₁).
        parameters: D.
        step_size: alpha.
        beta1: of Adam, 0 < β₁ < β₂.
        beta2: of Adam, below 1.
        epsilon: of Adam.
        gradient_bound: R, above every entry of a gradient.
        smoothness: L, the Lipschitz constant of ∇F.
        excess_loss: F(x⁰) - F*.

    Example::

        from gossamer import theory

        ring = gossamer.make_schedule("ring", [1] * 16)
        found = theory.bound(ring, steps=1e5, parameters=65e6)
        print(found.verdict)
    """
    found = _core.theory_bound(
        lambda_=_mixing(schedule).rho,
        steps=steps,
        parameters=parameters,
        step_size=step_size,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        gradient_bound=gradient_bound,
        smoothness=smoothness,
        excess_loss=excess_loss,
    )
    found["terms"] = tuple(BoundTerm(**term) for term in found["terms"])
    return Bound(**found)


def rates(
    schedule: _core.Schedule | Mixing,
    *,
    steps: float,
    sigma: float = 1.0,
    b: float = 1.0,
    global_average_every: int = 16,
) -> list[Rate]:
    """Convergence rates of parallel SGD, D-SGD, Exact-Diffusion and D-SGD with global averages.

    Args:
        schedule: its workers and effective rho.
        steps: T.
        sigma: σ² bounds the variance of a worker's stochastic gradient.
        b: b² bounds the mean of ‖∇f_i - ∇f‖² over the workers; 0 for iid data.
        global_average_every: H, of ``global_average`` only.

    Example::

        from gossamer import theory

        mixing = theory.Mixing(workers=64, rho=0.9)
        for rate in theory.rates(mixing, steps=1e5):
            print(rate.method, rate.loss, rate.sum)
    """
    given = _mixing(schedule)
    found = _core.theory_rates(
        workers=given.workers,
        rho=given.rho,
        steps=steps,
        sigma=sigma,
        b=b,
        global_average_every=global_average_every,
    )
    for rate in found:
        rate["terms"] = tuple(RateTerm(**term) for term in rate["terms"])
    return [Rate(**rate) for rate in found]


def transient(
    schedule: _core.Schedule | Mixing, *, global_average_every: int = 16
) -> list[Transient]:
    """Transient iterations: the lecture's rows for D-SGD, Exact-Diffusion and global averages.

    Orders, good for ratios between topologies, sizes and methods, not for numbers of steps.
    ``global_average_every`` is H, of the rows ``global_average`` only.

    Example::

        from gossamer import theory

        ring = gossamer.make_schedule("ring", [1] * 16)
        for row in theory.transient(ring, global_average_every=8):
            print(row.method, row.loss, row.iterations)
    """
    given = _mixing(schedule)
    found = _core.theory_transient(
        workers=given.workers, rho=given.rho, global_average_every=global_average_every
    )
    return [Transient(**row) for row in found]


def topologies(workers_per_host: Sequence[int]) -> list[TopologyRow]:
    """The lecture's table of topologies, as printed and worked out for these workers.

    Example::

        from gossamer import theory

        for row in theory.topologies([1] * 16):
            print(row.topology, row.iterations)
    """
    return [TopologyRow(**row) for row in _core.theory_topologies(workers_per_host)]


def speedup(
    schedule: _core.Schedule,
    *,
    gamma: float,
    omega: float,
    sigma: float = 0.0,
    buckets: int = 5,
    forward_share: float = 1 / 3,
    steps: int = 200,
    seed: int = 1,
) -> SpeedUp:
    """Step times of all-reduce and of a decentralized method, and the speed-up.

    Args:
        schedule: who waits for whom, on two hosts or more.
        gamma: communication time of an all-reduce / compute time of a step.
        omega: communication time of an exchange / that of the all-reduce.
        sigma: standard deviation of a worker's compute time over its mean.
        buckets: B, equal pieces that are communicated one after another.
        forward_share: the part of the compute time before the first gradient.
        steps: of the recursion.
        seed: of its compute times.

    Example::

        from gossamer import theory

        aer = gossamer.make_schedule("aer", [4, 4])
        found = theory.speedup(aer, gamma=2.0, omega=0.5, sigma=0.1)
        print(found.recursion.speed_up)
    """
    closed, recursion = _core.theory_step_times(
        schedule,
        gamma=gamma,
        omega=omega,
        sigma=sigma,
        buckets=buckets,
        forward_share=forward_share,
        steps=steps,
        seed=seed,
    )
    return SpeedUp(StepTimes(*closed), StepTimes(*recursion))
