"""gossamer.VirtualWorkers against the published rules, typed again with dense numpy."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gossamer

N, D, LR = 6, 3, 0.05
Array = np.ndarray[Any, np.dtype[np.float64]]


def problem() -> tuple[Array, Array]:
    """f_i(x) = 1/2 (x - b_i) A_i (x - b_i) with a diagonal A_i of its own: rows are workers."""
    draw = np.random.default_rng(5)
    return draw.uniform(0.5, 2.0, (N, D)), draw.normal(size=(N, D))


def ring() -> Array:
    return np.array(gossamer.make_schedule("ring", [N]).matrix(0))


def atc(x: Array, g: Array, w: Array, state: dict[str, Array]) -> Array:
    return np.asarray(w @ (x - LR * g))


def cwa(x: Array, g: Array, w: Array, state: dict[str, Array]) -> Array:
    return np.asarray(w @ x - LR * g)


def dmsgd(x: Array, g: Array, w: Array, state: dict[str, Array]) -> Array:
    m = 0.9 * state.get("m", np.zeros_like(x)) + g
    state["m"] = w @ m
    return np.asarray(w @ (x - LR * m))


def gradient_tracking(x: Array, g: Array, w: Array, state: dict[str, Array]) -> Array:
    """x <- W x - lr y, with y <- W y + g - the g before, as FACTS of Di Lorenzo and Scutari."""
    y = state.get("y")
    state["y"] = g.copy() if y is None else w @ y + g - state["before"]
    state["before"] = g.copy()
    return np.asarray(w @ x - LR * state["y"])


RULES: dict[str, tuple[Callable[..., Array], dict[str, Any]]] = {
    "atc": (atc, {}),
    "cwa": (cwa, {}),
    "dmsgd": (dmsgd, {"optimizer": "momentum", "momentum": 0.9}),
    "gradient_tracking": (gradient_tracking, {}),
}


@pytest.mark.parametrize("pattern", RULES)
@pytest.mark.parametrize("own", [False, True])
def test_the_rules_are_those_of_the_literature(pattern: str, own: bool) -> None:
    """Also with a W that changes from step to step and depends on where the workers are."""
    a, b = problem()
    rule, words = RULES[pattern]
    start = np.random.default_rng(6).normal(size=(N, D))
    workers = gossamer.VirtualWorkers(start, topology="ring", pattern=pattern, **words)
    x, state = start.copy(), dict[str, Array]()
    for _ in range(40):
        w = farthest_pair(x) if own else ring()
        workers.step(a * (workers.x.numpy() - b), LR, matrix=w if own else None)
        x = rule(x, a * (x - b), w, state)
        np.testing.assert_allclose(workers.x.numpy(), x, rtol=0, atol=1e-12)
    assert workers.steps_done == 40
    np.testing.assert_allclose(workers.mean().numpy(), x.mean(0), rtol=0, atol=1e-12)
    spread = ((x - x.mean(0)) ** 2).sum() / N
    assert workers.disagreement() == pytest.approx(spread, rel=1e-9)


def farthest_pair(x: Array) -> Array:
    """The two workers that differ most average."""
    distances = ((x[:, None] - x[None]) ** 2).sum(-1)
    i, j = divmod(int(distances.argmax()), N)
    w = np.eye(N)
    w[i, i] = w[j, j] = w[i, j] = w[j, i] = 0.5
    return w


def test_exact_methods_find_the_minimiser() -> None:
    a, b = problem()
    minimiser = (a * b).sum(0) / a.sum(0)
    lazy = gossamer.make_schedule("ring", [N], lazy=True)
    for pattern, topology in (("gradient_tracking", "ring"), ("exact_diffusion", lazy)):
        workers = gossamer.VirtualWorkers(np.zeros((N, D)), topology=topology, pattern=pattern)
        for _ in range(3000):
            workers.step(a * (workers.x.numpy() - b), LR)
        assert np.abs(workers.x.numpy() - minimiser).max() < 1e-10, pattern


def test_shapes_and_changes_of_ones_own() -> None:
    """Rows may have any shape, and values may be changed between steps."""
    workers = gossamer.VirtualWorkers(torch.zeros(4, 2, 3), topology="complete")
    workers.x += torch.arange(4.0).reshape(4, 1, 1)
    workers.step(torch.zeros(4, 2, 3), lr=1.0)
    assert torch.equal(workers.x, torch.full((4, 2, 3), 1.5, dtype=torch.float64))
    workers.x = torch.ones(4, 2, 3)
    assert torch.equal(workers.mean(), torch.ones(2, 3, dtype=torch.float64))


def test_push_sum_keeps_the_weighted_mean() -> None:
    start = np.random.default_rng(7).normal(size=(5, 2))
    directed = gossamer.make_schedule("random_directed", [5], degree=2, seed=3)
    workers = gossamer.VirtualWorkers(start, topology=directed, pattern="push_sum")
    for _ in range(60):
        workers.step(np.zeros((5, 2)), LR)
        np.testing.assert_allclose(workers.mean().numpy(), start.mean(0), rtol=0, atol=1e-12)
    assert workers.disagreement() < 1e-20


def test_averages_by_the_loss_ask_for_it() -> None:
    schedule = gossamer.make_schedule("ring", [4], adaptive_average=2)
    workers = gossamer.VirtualWorkers(np.eye(4), topology=schedule)
    with pytest.raises(ValueError, match=r"follows the loss.*step\(gradients, lr, loss=loss\)"):
        workers.step(workers.x, LR)
    for _ in range(8):
        workers.step(workers.x, LR, loss=float(workers.x.square().mean()))
    assert workers.steps_done == 8


W = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("words", "step", "said"),
    [
        ({"patern": "atc"}, {}, "no argument 'patern'; did you mean 'pattern'"),
        ({"momentun": 0.9}, {}, "did you mean 'momentum'"),
        ({"momentum": "high"}, {}, "momentum must be of type float, got 'high'"),
        ({"lr": 0.1}, {}, "no argument 'lr'"),
        ({"optimizer": "none"}, {}, "makes no step"),
        ({"topology": "rng"}, {}, "did you mean 'ring'"),
        ({"topology": gossamer.make_schedule("ring", [3])}, {}, "is for 3 workers, got x with 2"),
        (
            {"pattern": "exact_diffusion", "topology": "complete"},
            {"matrix": W},
            "needs all its rounds to be those",
        ),
        ({"pattern": "allreduce"}, {"matrix": W}, "needs all its rounds to be those"),
        ({}, {"matrix": [[1, 0], [0.5, 0.5]]}, "column 0 of W must sum to 1"),
        ({}, {"matrix": np.eye(3)}, "2 workers"),
        ({}, {"gradients": [1.0, 2.0]}, "must have the shape (2, 1) of x, got (2,)"),
        ({}, {"lr": -1.0}, "lr must be finite and not negative"),
    ],
)
def test_mistakes_are_named(words: dict[str, Any], step: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(said)):
        workers = gossamer.VirtualWorkers([[0.0], [1.0]], **words)
        workers.step(**{"gradients": [[0.0], [0.0]], "lr": 0.1, **step})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gossamer.make_schedule("ring", 8), "a list of whole numbers, got 8; give [8]"),
        (lambda: gossamer.make_schedule("ring"), "workers_per_host is missing"),
        (lambda: gossamer.make_schedule("ring", [8], 3), "name the others: seed"),
        (lambda: gossamer.make_schedule("ring", [8], sed=3), "did you mean 'seed'"),
        (lambda: gossamer.make_schedule("ring", [2.5]), "got [2.5]"),
        (lambda: gossamer.make_schedule("ring", [8], lazy="x"), "lazy must be True or False"),
        (lambda: gossamer.topology_names(3), "takes no arguments, got 1"),
    ],
)
def test_functions_of_the_core_say_which_argument_is_wrong(
    call: Callable[[], object], said: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(said)) as caught:
        call()
    assert "\n" not in str(caught.value)
