"""All patterns of the engine's table from Python, beside the published recursions.

The oracle here is plain matrices over all workers, rows are workers, in double precision; what a
local optimizer does is torch's own. It shares no code with the engine.
"""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gossip_ranks
import pytest
import torch
from gossip_scenarios_patterns import (
    CASES,
    EVERY,
    HOSTS,
    KEEPING,
    SAVED_AT,
    STEPS,
    Case,
    has_gradient,
    loss,
    small,
    stays,
    train,
)
from gossip_support import flat, mlp
from torch.nn.utils import vector_to_parameters
from torch.optim import SGD, RMSprop

from gossamer import Gossip, _core
from gossamer.session import patterns

WORKERS = sum(HOSTS)
SCENARIOS = ["trained", "skipped", "unequal", "in_the_backward", "restarted", "saved_and_loaded"]
SCENARIOS += ["forgotten", "loaded_by_two", "with_another_pattern", "refused"]
Has = Callable[[int, int], bool]
Ranks = list[gossip_ranks.Rank]


class Oracle:
    """All workers at once."""

    def __init__(self, case: Case, missing: str = "backward") -> None:
        """``missing``: what a worker misses where it ``has`` nothing."""
        self.pattern = case.pattern
        self.missing = missing
        self.averages_first = (case.pattern, case.optimizer) == ("gradient_gossip", "rmsprop")
        self.options = case.pattern_options
        self.schedule = case.schedule()
        self.models = [small() for _ in range(WORKERS)]
        self.optimizers = [case.make(model) for model in self.models]
        self.steps = 0
        self.last: dict[str, torch.Tensor] = {}

    def restart(self) -> None:
        """Forgets all but parameters and the optimizers' states, of which m is one."""
        self.last = {name: value for name, value in self.last.items() if name in ("m", "v")}

    def parameters(self) -> torch.Tensor:
        return torch.stack([flat(model) for model in self.models])

    def put(self, x: torch.Tensor) -> None:
        for row, model in zip(x, self.models, strict=True):
            vector_to_parameters(row, model.parameters())

    def gradients(self, has: Has) -> torch.Tensor:
        """Zero where there is none."""
        rows = []
        for rank, model in enumerate(self.models):
            model.zero_grad()
            if has(self.steps, rank):
                loss(model, self.steps, rank).backward()
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
            rows.append(torch.cat([g.flatten() for g in grads]))
        return torch.stack(rows)

    def moves(self, gradients: torch.Tensor, has: Has) -> torch.Tensor:
        """d(g) of torch's optimizers, which it does not leave in the parameters."""
        before = self.parameters()
        for rank, model in enumerate(self.models):
            at = 0
            for p in model.parameters():
                p.grad = gradients[rank, at : at + p.numel()].view_as(p).clone()
                at += p.numel()
            if has(self.steps, rank):
                self.optimizers[rank].step()
        after = self.parameters()
        self.put(before)
        return after - before

    def first_moment(self) -> str:
        return "momentum_buffer" if isinstance(self.optimizers[0], SGD) else "exp_avg"

    def momenta(self, key: str) -> list[torch.Tensor]:
        """One row per worker and parameter; those that there are not yet become zero."""
        found = []
        for optimizer in self.optimizers:
            for p in optimizer.param_groups[0]["params"]:
                state = optimizer.state[p]
                if not state and key != "momentum_buffer":
                    state.update(step=torch.zeros(()), exp_avg=torch.zeros_like(p))
                    state.update(exp_avg_sq=torch.zeros_like(p))
                if state.get(key) is None:
                    state[key] = torch.zeros_like(p)
                found.append(state[key])
        return found

    def mix_momenta(self, w: torch.Tensor, key: str) -> None:
        momenta = self.momenta(key)
        count = len(momenta) // WORKERS
        for i in range(count):
            rows = torch.stack([momenta[rank * count + i].flatten() for rank in range(WORKERS)])
            for rank, row in enumerate(w @ rows):
                momenta[rank * count + i].copy_(row.view_as(momenta[rank * count + i]))

    # The recursions: from x, with the mixing matrix w of the step, to the next x.

    def cwa(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        return w @ x + self.moves(self.gradients(has), has)

    def atc(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        return w @ (x + self.moves(self.gradients(has), has))

    def gradient_gossip(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        """Where gradients are averaged before the step, a worker without a backward steps with the
        others', and a GradScaler skips a gradient that has been sent."""
        sends = stays if self.averages_first and self.missing == "scaler" else has
        steps = stays if self.averages_first and self.missing == "backward" else has
        g = w @ self.gradients(sends)
        self.put(w @ x)
        return w @ x + self.moves(g, steps)

    def exact_diffusion(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        psi = x + self.moves(self.gradients(has), has)
        before = self.last.get("psi", x)
        self.last = {"psi": psi}
        return w @ (psi + x - before)

    def extra(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        d = self.moves(self.gradients(has), has)
        last, self.last = self.last, {"x": x, "d": d}
        if not last:
            return w @ x + d
        both = torch.eye(WORKERS, dtype=torch.float64) + w
        return both @ x - both @ last["x"] / 2 + d - last["d"]

    def gradient_tracking(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        g = self.gradients(has)
        zero = torch.zeros_like(g)
        y = w @ self.last.get("y", zero) + g - self.last.get("g", zero)
        self.last = {"y": y, "g": g}
        return w @ x + self.moves(y, has)

    def gradient_tracking_atc(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        g = self.gradients(has)
        zero = torch.zeros_like(g)
        y = w @ (self.last.get("y", zero) + g - self.last.get("g", zero))
        self.last = {"y": y, "g": g}
        return w @ (x + self.moves(y, has))

    def push_sum(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        v = self.last.get("v", torch.ones(WORKERS, 1, dtype=torch.float64))
        u = w @ (v * x + self.moves(self.gradients(has), has))
        self.last = {"v": w @ v}
        return u / self.last["v"]

    def slowmo(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        return self.outer_step(self.last.get("anchor", x), self.atc(x, w, has))

    def noloco(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        return self.outer_step(w @ self.last.get("anchor", x), self.atc(x, w, has))

    def outer_step(self, anchor: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        velocity = self.last.get("velocity", torch.zeros_like(x))
        if (self.steps + 1) % self.options["outer_every"] == 0:
            velocity = self.options["outer_momentum"] * velocity
            velocity = velocity + self.options["outer_lr"] * (x - anchor)
            anchor = anchor + velocity
            x = anchor.clone()  # the models become views of it
        self.last = {"anchor": anchor, "velocity": velocity}
        return x

    def dsgd_ac(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        return x + self.options["consensus"] * (w @ x - x) + self.moves(self.gradients(has), has)

    def cwa_moments(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        gamma = self.options["consensus"]
        part = (1 - gamma) * torch.eye(WORKERS, dtype=torch.float64) + gamma * w
        for key in ("exp_avg", "exp_avg_sq"):
            self.mix_momenta(part, key)
        return part @ x + self.moves(self.gradients(has), has)

    def dmsgd(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        d = self.moves(self.gradients(has), has)
        self.mix_momenta(w, self.first_moment())
        return w @ (x + d)

    def qg_dmsgd(self, x: torch.Tensor, w: torch.Tensor, has: Has) -> torch.Tensor:
        settings = self.optimizers[0].param_groups[0]
        lr, beta = settings["lr"], settings["momentum"]
        steps = torch.tensor([[has(self.steps, rank)] for rank in range(WORKERS)]).double()
        g = self.gradients(has) + settings["weight_decay"] * x
        m = self.last.get("m", torch.zeros_like(x))
        u = beta * m + (1 - settings["dampening"]) * g
        after = w @ (x - lr * steps * (g + beta * u if settings["nesterov"] else u))
        self.last = {"m": torch.where(steps > 0, 0.9 * m + 0.1 * (x - after) / lr, m)}
        return after

    def run(self, steps: int, has: Has = stays) -> torch.Tensor:
        for _ in range(steps):
            w = torch.tensor(self.schedule.matrix(self.steps), dtype=torch.float64)
            self.put(getattr(self, self.pattern)(self.parameters(), w, has))
            self.steps += 1
        return self.parameters()


@pytest.fixture(scope="module")
def four(folder: Path) -> Ranks:
    return gossip_ranks.run([f"patterns_{name}" for name in SCENARIOS], HOSTS)


def results(four: Ranks, scenario: str) -> list[Any]:
    return gossip_ranks.results(four, f"patterns_{scenario}")


def check_near(found: list[list[float]], expected: torch.Tensor) -> None:
    gap = (torch.tensor(found, dtype=torch.float64) - expected).abs().max()
    assert float(gap / expected.abs().max()) < 1e-12


each = pytest.mark.parametrize("number", range(len(CASES)), ids=["-".join(c[:3]) for c in CASES])


@each
@pytest.mark.parametrize("misses", [False, True], ids=["", "without some gradients"])
def test_is_the_published_recursion(four: Ranks, number: int, misses: bool) -> None:
    found = [rank[int(misses)][number] for rank in results(four, "trained")]
    check_near(found, Oracle(CASES[number]).run(STEPS, has_gradient if misses else stays))


@each
def test_a_skipped_update_counts_as_none(four: Ranks, number: int) -> None:
    found = [rank[number] for rank in results(four, "skipped")]
    check_near(found, Oracle(CASES[number], "scaler").run(STEPS, has_gradient))


@each
def test_workers_without_a_batch_only_mix(four: Ranks, number: int) -> None:
    found = [rank[number] for rank in results(four, "unequal")]
    steps = found[0]["steps"]
    oracle = Oracle(CASES[number], "batch")
    oracle.run(steps, lambda step, rank: step < 2 + rank)
    check_near([rank["end"] for rank in found], oracle.run(3))


def test_in_the_backward_the_bits_are_the_same(four: Ranks) -> None:
    for rank in results(four, "in_the_backward"):
        assert rank == [True] * len(rank)


@each
def test_what_is_kept_starts_afresh_where_values_were_loaded(four: Ranks, number: int) -> None:
    found = [rank[number] for rank in results(four, "restarted")]
    oracle = Oracle(CASES[number])
    oracle.run(SAVED_AT)
    oracle.restart()
    check_near(found, oracle.run(STEPS - SAVED_AT))


# Checkpoints.


@pytest.mark.parametrize("number", range(len(EVERY)), ids=["-".join(c[:3]) for c in EVERY])
def test_as_many_workers_go_on_with_the_same_bits(four: Ranks, number: int) -> None:
    for rank in results(four, "saved_and_loaded"):
        straight, resumed = rank[number]
        assert straight == resumed


@each
def test_a_resumed_run_is_the_published_recursion(four: Ranks, number: int) -> None:
    found = [rank[number][1][0] for rank in results(four, "saved_and_loaded")]
    check_near(found, Oracle(CASES[number]).run(STEPS, has_gradient))


def test_would_notice_a_save_that_forgets(four: Ranks) -> None:
    for straight, resumed in results(four, "forgotten"):
        assert straight[0] != resumed[0]


@pytest.mark.parametrize("number", range(len(KEEPING)), ids=["-".join(c[:2]) for c in KEEPING])
def test_another_number_of_workers_starts_afresh(four: Ranks, number: int) -> None:
    found = [rank[number] for rank in results(four, "loaded_by_two")[:2]]
    for rank in found:
        start = {name: vector for name, vector in rank["start"].items() if name != "anchor"}
        assert not any(map(any, start.values()))
    for name in found[0]["end"]:
        sums = torch.tensor([rank["end"][name] for rank in found], dtype=torch.float64).sum(0)
        gradients = torch.tensor([rank["gradient"] for rank in found], dtype=torch.float64).sum(0)
        assert any(found[0]["end"][name])
        if name not in ("before", "anchor", "velocity"):  # those follow the parameters
            follows = name in ("tracker", "gradient")
            assert torch.allclose(sums, gradients * follows, rtol=0, atol=1e-13)


def test_what_another_pattern_has_saved_is_left_alone(four: Ranks) -> None:
    for rank in results(four, "with_another_pattern"):
        assert list(rank) == ["correction"]
        assert not any(rank["correction"])


# What does not go together.


def test_schedules_are_refused_in_words_of_python(four: Ranks) -> None:
    for rank, found in enumerate(results(four, "refused")):
        for name in ("changing", "directed", "averaged"):
            assert found[name]["type"] == "ValueError"
            assert "needs the same symmetric W in every step" in found[name]["message"]
            assert 'pattern="gradient_tracking"' in found[name]["message"]
        assert 'use pattern="push_sum"' in found["weights"]["message"]
        assert 'pattern_options={"outer_every": 8}' in found["no_outer_steps"]["message"]
        text = found["no_global_averages"]["message"]
        assert 'make_schedule("ring", [2, 2], global_average_every=3)' in text
        text = found["border"]["message"]
        assert f"[Gossip] rank {rank}: pattern 'exact_diffusion'" in text
        assert 'gossamer.make_schedule("ring", [2, 2], lazy=True)' in text


def test_momentum_that_goes_away_is_refused_until_it_is_back(four: Ranks) -> None:
    for found in results(four, "refused"):
        assert "got SGD without momentum" in found["momentum"]["message"]
        assert all(value == value for value in found["end"])


def test_every_row_fits_what_python_has() -> None:
    for row in _core.patterns():
        assert set(row.optimizers) <= set(patterns.TITLES)
        assert all(hasattr(_core.Hyper(), option) for option in row.options)
        assert not (row.own_step and row.optimizers)


def test_options_reach_every_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a row that has some: eps is one that SGD does not read."""
    row = SimpleNamespace(options=["eps", "accumulate"], optimizers=[], own_step=False)
    monkeypatch.setattr(patterns, "row_of", lambda name: row)
    patterns.check_options("any", {"eps": 0.5, "accumulate": 2})
    wrongs: list[Any] = [{"lr": 1.0}, {"eps": "x"}, {"eps": 0.0}, {"accumulate": 2.5}]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            patterns.check_options("any", wrong)
    monkeypatch.undo()
    monkeypatch.setattr(patterns, "check_options", lambda *_: None)
    model = mlp()
    optimizer = SGD([{"params": [p]} for p in model.parameters()], lr=0.1)
    with Gossip(model, optimizer, update="backward", pattern_options={"eps": 0.5}) as gossip:
        groups = [*gossip._run._stepping_groups(), *gossip._run._resting_groups()]
        assert [hyper.eps for hyper in groups] == [0.5] * 8


@pytest.mark.parametrize("case", CASES, ids=["-".join(c[:3]) for c in CASES])
def test_alone_the_mean_is_that_of_the_optimizer(case: Case) -> None:
    """A worker alone: all patterns are it, but those whose momentum follows the parameters."""
    if case.pattern in ("qg_dmsgd", "slowmo", "noloco"):
        pytest.skip("another momentum")
    model, plain = small(), small()
    optimizer, reference = case.make(model), case.make(plain)
    with Gossip(
        model,
        optimizer,
        topology="complete",
        pattern=case.pattern,
        pattern_options=case.pattern_options,
    ):
        train(model, optimizer, range(STEPS), 0)
    train(plain, reference, range(STEPS), 0)
    assert float((flat(model) - flat(plain)).abs().max()) < 1e-13


def test_half_precision_is_corrected_too() -> None:
    """exact_diffusion through wider copies: alone it is the optimizer's own step."""
    models = [mlp().bfloat16() for _ in range(2)]
    for model in models:
        optimizer = RMSprop(model.parameters(), lr=0.1)
        if model is models[0]:
            Gossip(model, optimizer, topology="complete", pattern="exact_diffusion")
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        optimizer.step()
    assert torch.equal(flat(models[0]), flat(models[1]))
