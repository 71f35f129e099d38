"""gossamer.theory against the formulas of poster and lecture, typed again, and the command."""

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import theory

PROGRAM = Path(__file__).parents[2] / "build" / "bin" / "gossamer"


def command(line: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(PROGRAM), "theory", *line.split(), "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rho_of(schedule: gossamer.Schedule) -> float:
    """Effective, from the dense product of a period."""
    n = schedule.workers
    product = np.eye(n)
    for t in range(schedule.period):
        product = np.array(schedule.matrix(t)) @ product
    left = np.linalg.norm(product - np.full((n, n), 1 / n), 2)
    return float(1 - (1 - left) / schedule.period)


@pytest.mark.parametrize("name", ["ring", "star", "grid", "aer", "one_peer_ring", "hypercube"])
def test_mixing_is_that_of_the_dense_product(name: str) -> None:
    schedule = gossamer.make_schedule(name, [2, 2, 2, 2])
    found = theory.mixing(schedule)
    assert found.workers == 8
    assert found.rho == pytest.approx(rho_of(schedule), abs=1e-12)
    assert command(f"transient {name} --hosts 4 --per-host 2")["rho"] == found.rho


def test_the_bound_is_the_theorem() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        b2 = rng.uniform(0.5, 0.9999)
        b1 = rng.uniform(0.01, 0.99) * b2
        alpha, eps = 10 ** rng.uniform(-5, -1), 10 ** rng.uniform(-8, 0)
        steps, count = 10 ** rng.uniform(4, 8), float(rng.integers(1, 10**8))
        r, smooth, excess = rng.uniform(0.1, 10, 3)
        lam = rng.uniform(0, 0.99)
        late, ratio = steps - b1 / (1 - b1), 1 - b1 / b2
        per_step = math.log(1 + r / (eps * (1 - b2))) / late - steps / late * math.log(b2)
        terms = {
            "optimization": 4 * r * excess / (alpha * late),
            "noise": 24 * count * r**2 * (1 - b1) ** 0.5 / ((1 - b2) ** 0.5 * ratio**1.5),
            "curvature": 2 * alpha * count * smooth * r * (1 - b1) / ((1 - b2) * ratio),
            "momentum": 4 * alpha**2 * smooth**2 * count * b1 / (ratio * (1 - b2) ** 1.5),
            "disagreement": 8 * alpha**2 * (1 + lam**2) * r * smooth**2 * count * (1 - b1) ** 0.5
            / ((1 - lam**2) ** 2 * (1 - b2) * ratio * eps**0.5),
        }  # fmt: skip
        found = theory.bound(
            theory.Mixing(8, lam),
            steps=steps,
            parameters=count,
            step_size=alpha,
            beta1=b1,
            beta2=b2,
            epsilon=eps,
            gradient_bound=r,
            smoothness=smooth,
            excess_loss=excess,
        )
        assert {term.term: term.value for term in found.terms} == pytest.approx(terms, rel=1e-11)
        rest = sum(value for name, value in terms.items() if name != "optimization")
        total = terms["optimization"] + rest * per_step
        assert found.per_step == pytest.approx(per_step, rel=1e-11)
        assert found.bound == pytest.approx(total, rel=1e-11)
        assert sum(term.in_bound for term in found.terms) == pytest.approx(total, rel=1e-11)
        known = min(count * r**2, 2 * smooth * excess)
        assert found.known_at_start == pytest.approx(known)
        assert found.verdict == ("informative" if total < known else "vacuous")


def test_the_bound_is_infinite_where_nothing_mixes() -> None:
    found = theory.bound(theory.Mixing(4, 1.0), steps=1000, parameters=10)
    assert (found.bound, found.verdict) == (math.inf, "infinite")


def test_rates_are_those_of_the_lecture() -> None:
    n, rho, t, s, b, h = 16, 0.8, 5000.0, 0.7, 1.9, 8
    third = lambda value, power: value ** (power / 3)  # noqa: E731
    sampling, strong = s / (n * t) ** 0.5, s**2 / (n * t)
    slow = third(rho, 2) * third(s, 2) / (third(t, 2) * third(1 - rho, 1))
    unequal = third(rho, 2) * third(b, 2) / (third(t, 2) * third(1 - rho, 2))
    strong_slow = rho**2 * s**2 / ((1 - rho) * t**2)
    strong_unequal = rho**2 * b**2 / ((1 - rho) ** 2 * t**2)
    averaged = third(rho, 2) / third(t, 2)
    expected = {
        ("p_sgd", "strongly_convex"): [strong],
        ("p_sgd", "generally_convex"): [sampling],
        ("p_sgd", "non_convex"): [sampling],
        ("d_sgd", "strongly_convex"): [strong, strong_slow, strong_unequal],
        ("d_sgd", "generally_convex"): [sampling, slow, unequal],
        ("d_sgd", "non_convex"): [sampling, slow, unequal],
        ("exact_diffusion", "strongly_convex"): [strong, strong_slow],
        ("exact_diffusion", "generally_convex"): [sampling, slow],
        ("one_peer_exponential", "non_convex"): [
            sampling,
            third(s, 2) * third(math.log2(n), 2) / third(t, 2),
        ],
        ("global_average", "non_convex"): [
            sampling,
            averaged * third(s, 2) * third(h, 1),
            averaged * third(b, 2) * third(h, 2),
        ],
    }
    found = theory.rates(theory.Mixing(n, rho), steps=t, sigma=s, b=b, global_average_every=h)
    assert len(found) == len(expected)
    for rate in found:
        terms = expected[rate.method, rate.loss]
        assert [term.value for term in rate.terms] == pytest.approx(terms, rel=1e-12)
        assert rate.sum == pytest.approx(sum(terms), rel=1e-12)
        for term in rate.terms[1:]:  # the power of T is that of the first term, but for -1/6 or -1
            faster = 1 if rate.loss == "strongly_convex" else 1 / 6
            even = t * (term.value / rate.terms[0].value) ** (1 / faster)
            assert term.even_from == pytest.approx(even, rel=1e-9)
    one_peer = theory.rates(theory.Mixing(12, rho), steps=t)[8]
    assert one_peer.method == "one_peer_exponential" and math.isnan(one_peer.sum)


def test_transient_iterations_are_the_lectures_ten_rows_and_two_that_follow() -> None:
    n, rho, h = 30, 0.95, 6
    gap = 1 - rho
    strong, general = n * rho**2, n**3 * rho**4
    expected = [
        ("d_sgd", "strongly_convex", "iid", strong / gap),
        ("d_sgd", "strongly_convex", "non_iid", strong / gap**2),
        ("d_sgd", "generally_convex", "iid", general / gap**2),
        ("d_sgd", "generally_convex", "non_iid", general / gap**4),
        ("d_sgd", "non_convex", "iid", general / gap**2),
        ("d_sgd", "non_convex", "non_iid", general / gap**4),
        ("exact_diffusion", "strongly_convex", "iid", strong / gap),
        ("exact_diffusion", "strongly_convex", "non_iid", strong / gap),
        ("exact_diffusion", "generally_convex", "iid", general / gap**2),
        ("exact_diffusion", "generally_convex", "non_iid", general / gap**2),
        ("global_average", "non_convex", "iid", general * h**2),
        ("global_average", "non_convex", "non_iid", general * h**4),
    ]
    found = theory.transient(theory.Mixing(n, rho), global_average_every=h)
    assert [(row.method, row.loss, row.data) for row in found] == [row[:3] for row in expected]
    values = [row[3] for row in expected]
    assert [row.iterations for row in found] == pytest.approx(values, rel=1e-12)
    assert found[5].order == "n^3 rho^4/(1 - rho)^4"


def test_topologies_are_the_lectures() -> None:
    n, log = 32, 5
    expected = {
        "ring": ("2", n**7),
        "star": ("n", n**7),
        "grid": ("4", n**5 * log**2),
        "torus": ("4", n**5),
        "random": ("n/2", n**3),
        "exponential": ("~1", n**3 * log**2),
        "one_peer_exponential": ("1", n**3 * log**2),
    }
    rows = theory.topologies([1] * n)
    assert [row.topology for row in rows] == list(expected)
    for row in rows:
        communication, iterations = expected[row.topology]
        assert row.communication == communication
        assert row.printed_iterations == pytest.approx(iterations, rel=1e-12)
        schedule = gossamer.make_schedule(row.topology, [1] * n)
        if schedule.period:
            assert row.rho == pytest.approx(rho_of(schedule), abs=1e-9)
            heard = [np.count_nonzero(schedule.matrix(t), axis=1) for t in range(schedule.period)]
            assert row.neighbours == np.max(heard) - 1
        value = n**3 * row.rho**4 / (1 - row.rho) ** 2
        assert row.iterations == pytest.approx(value, rel=1e-9)


def test_speed_ups_are_the_closed_forms() -> None:
    ring = gossamer.make_schedule("ring", [1] * 8)
    for gamma, omega, buckets, phi in [(0.1, 1, 1, 0.5), (0.9, 0.5, 4, 1 / 3), (3, 0.8, 10, 0.2)]:
        found = theory.speedup(ring, gamma=gamma, omega=omega, buckets=buckets, forward_share=phi)
        all_reduce = max(1 + gamma / buckets, phi + (1 - phi) / buckets + gamma)
        for times in (found.closed_form, found.recursion):
            assert times.allreduce == pytest.approx(all_reduce, rel=1e-9)
            assert times.decentralized == pytest.approx(max(1, omega * gamma), rel=1e-9)
            assert times.speed_up == pytest.approx(1 - max(1, omega * gamma) / all_reduce)
    kappa = 1.423600306  # of 8 normals
    late = theory.speedup(ring, gamma=0.1, omega=0.5, sigma=0.2).closed_form
    assert late.allreduce == pytest.approx(1.02 + 0.2 * kappa, rel=1e-8)


def test_the_command_says_the_same() -> None:
    schedule = gossamer.make_schedule("aer", [2] * 4)
    hosts = "aer --hosts 4 --per-host 2"
    bound = theory.bound(schedule, steps=1e5, parameters=1000)
    said = command(f"bound {hosts} --parameters 1000")
    assert (said["bound"], said["verdict"]) == (bound.bound, bound.verdict)
    rates = command(f"rates {hosts} --steps 500 --sigma 2")["rates"]
    assert [rate["sum"] for rate in rates] == [
        rate.sum for rate in theory.rates(schedule, steps=500, sigma=2)
    ]
    rows = command(f"transient {hosts}")
    assert [row["iterations"] for row in rows["rows"]] == [
        row.iterations for row in theory.transient(schedule)
    ]
    assert [row["iterations"] for row in rows["topologies"]] == [
        row.iterations for row in theory.topologies([2] * 4)
    ]
    (row,) = command(f"speedup {hosts} --gamma 2 --omega 0.5 --sigma 0.1")["rows"]
    found = theory.speedup(schedule, gamma=2, omega=0.5, sigma=0.1)
    assert row["recursion"]["speed_up"] == found.recursion.speed_up
    assert row["closed_form"]["allreduce"] == found.closed_form.allreduce


def test_mistakes_are_value_errors() -> None:
    ring = gossamer.make_schedule("ring", [1] * 4)
    with pytest.raises(ValueError, match=r"\[DAdam bound\] beta1 must lie between 0 and beta2"):
        theory.bound(ring, steps=1000, parameters=10, beta1=1.0)
    with pytest.raises(ValueError, match=r"\[rates\] there must be at least 1 step"):
        theory.rates(ring, steps=0)
    with pytest.raises(ValueError, match="rho must lie between 0 and 1"):
        theory.transient(theory.Mixing(4, 1.5))
    with pytest.raises(ValueError, match="rows and columns of W must sum to 1"):
        theory.mixing(gossamer.make_schedule("random_directed", [1] * 4))
    with pytest.raises(ValueError, match="at least 2"):
        theory.speedup(gossamer.make_schedule("ring", [4]), gamma=1, omega=1)
