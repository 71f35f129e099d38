"""Mistakes that decentralized training has been seen to make: a check of ours excludes each.

Each check also runs with the mistake made on purpose, and must notice it.
"""

import copy
from collections.abc import Callable, Iterable
from functools import partial
from types import SimpleNamespace

import gossip_ranks
import pytest
import torch
from gossip_scenarios_basic import Normed, buffers
from gossip_support import FUSED, batch, difference, flat, loss_of, mlp, pair, train
from torch import nn
from torch.optim import SGD, Adam

from gossamer import Gossip
from gossamer.step.run import Run
from gossamer.tensors.fused import FusedState
from gossamer.tensors.parameters import LoadMark
from gossamer.workers import world

NEAR = 1e-6
Breaks = Callable[[pytest.MonkeyPatch], None]


def swapped_groups(patch: pytest.MonkeyPatch) -> None:
    mix = Run._mix
    patch.setattr(Run, "_mix", lambda self, groups, *, skip: mix(self, groups[::-1], skip=skip))


def weight_decay_is_for_weights(_: pytest.MonkeyPatch) -> None:
    model = mlp()
    weights = [p for p in model.parameters() if p.ndim > 1]
    biases = [p for p in model.parameters() if p.ndim == 1]
    start = [p.detach().clone() for p in [*weights, *biases]]
    groups = [{"params": weights, "weight_decay": 0.5}, {"params": biases, "weight_decay": 0.0}]
    optimizer = SGD(groups, lr=0.1)
    Gossip(model, optimizer, **FUSED)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    for before, after in zip(start, [*weights, *biases], strict=True):
        factor = 1 - 0.1 * 0.5 if after.ndim > 1 else 1.0
        torch.testing.assert_close(after.detach(), before * factor)


def clipping_per_bucket(patch: pytest.MonkeyPatch) -> None:
    clip = nn.utils.clip_grad_norm_

    def each(parameters: Iterable[nn.Parameter], norm: float) -> None:
        for p in parameters:
            clip([p], norm)

    patch.setattr(nn.utils, "clip_grad_norm_", each)


def clipping_is_global(_: pytest.MonkeyPatch) -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=1.0)
    gossip = Gossip(model, optimizer, **FUSED, bucket_bytes=64)
    before = flat(model)
    (1000 * loss_of(model, batch(0))).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    assert gossip.last_step is not None
    assert gossip.last_step.grad_norm == pytest.approx(1.0, rel=1e-4)
    assert float((flat(model) - before).norm()) == pytest.approx(1.0, rel=1e-4)


def a_first_update_that_is_lost(patch: pytest.MonkeyPatch) -> None:
    mix = Run._mix
    patch.setattr(
        Run,
        "_mix",
        lambda self, groups, *, skip: mix(
            self, groups, skip=skip or self.team.engine.steps_done == 0
        ),
    )


def zero_grad_first_loses_nothing(_: pytest.MonkeyPatch) -> None:
    model, plain = pair()
    optimizer, reference = SGD(model.parameters(), lr=0.1), SGD(plain.parameters(), lr=0.1)
    Gossip(model, optimizer, **FUSED)
    for of, its in ((model, optimizer), (plain, reference)):
        its.zero_grad()
        loss_of(of, batch(0)).backward()
        its.step()
    assert difference(model, plain) < NEAR


def only_what_the_first_step_used(patch: pytest.MonkeyPatch) -> None:
    step = Run._fused_step

    def fused_step(self: Run, closure: object = None) -> object:
        if self.team.engine.steps_done == 0:
            self.used = [p.grad is not None for p in self.trained.tensors]
        for p, used in zip(self.trained.tensors, self.used, strict=True):
            p.grad = p.grad if used else None
        return step(self, closure)

    patch.setattr(Run, "_fused_step", fused_step)


def a_parameter_unused_at_first_trains_later(_: pytest.MonkeyPatch) -> None:
    model = mlp()
    optimizer = Adam(model.parameters(), lr=0.1)
    Gossip(model, optimizer, **FUSED)
    model[:2](batch(0)).sum().backward()
    optimizer.step()
    before = model[2].weight.detach().clone()
    model(batch(1)).sum().backward()
    optimizer.step()
    moved = (model[2].weight - before).abs()  # Adam's first update is lr everywhere
    torch.testing.assert_close(moved.detach(), torch.full_like(before, 0.1), rtol=1e-4, atol=0)


def an_overflow_that_skips_one_tensor_only(patch: pytest.MonkeyPatch) -> None:
    step = Run._fused_step

    def fused_step(self: Run, closure: object = None) -> object:
        for p in self.trained.tensors:
            if not bool(torch.isfinite(p.grad).all()):
                p.grad = None
        self.trained.fused.found_inf.zero_()
        return step(self, closure)

    patch.setattr(Run, "_fused_step", fused_step)


def an_overflow_skips_everything(_: pytest.MonkeyPatch) -> None:
    model = mlp()
    optimizer = Adam(model.parameters(), lr=0.1)
    Gossip(model, optimizer, **FUSED, bucket_bytes=64)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    before = flat(model)
    scaler.scale(loss_of(model, batch(0))).backward()
    model[2].bias.grad[0] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(flat(model), before)
    assert scaler.get_scale() == 2.0


def a_load_that_nobody_hears_of(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gossip, "_adopt", lambda self, _: None)
    patch.setattr(LoadMark, "__call__", lambda *_: None)
    patch.setattr(FusedState, "check", lambda self: None)


def what_is_loaded_stays(_: pytest.MonkeyPatch) -> None:
    model, plain = pair()
    optimizer, reference = Adam(model.parameters(), lr=0.1), Adam(plain.parameters(), lr=0.1)
    train(plain, reference, range(5))
    Gossip(model, optimizer, **FUSED)
    train(model, optimizer, range(10, 12))
    model.load_state_dict(plain.state_dict())
    optimizer.load_state_dict(copy.deepcopy(reference.state_dict()))
    train(model, optimizer, [5])
    train(plain, reference, [5])
    assert difference(model, plain) < NEAR


def a_state_that_is_hidden(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FusedState, "show", lambda self: None)


def a_checkpoint_has_the_optimizer_state(_: pytest.MonkeyPatch) -> None:
    model, plain = pair()
    optimizer, reference = Adam(model.parameters(), lr=0.1), Adam(plain.parameters(), lr=0.1)
    Gossip(model, optimizer, **FUSED)
    train(model, optimizer, range(3))
    train(plain, reference, range(3))
    found, expected = optimizer.state_dict()["state"], reference.state_dict()["state"]
    assert found.keys() == expected.keys()
    for key in expected:
        torch.testing.assert_close(found[key], expected[key])


def a_step_only_after_a_single_backward(patch: pytest.MonkeyPatch) -> None:
    step = Run._fused_step
    passes = {"backward": 0}
    backward = torch.Tensor.backward

    def counted(self: torch.Tensor, *args: object, **kwargs: object) -> None:
        passes["backward"] += 1
        backward(self, *args, **kwargs)

    def fused_step(self: Run, closure: object = None) -> object:
        if passes.pop("backward") != 1:
            self.trained.fused.zero_grad()
        passes["backward"] = 0
        return step(self, closure)

    patch.setattr(torch.Tensor, "backward", counted)
    patch.setattr(Run, "_fused_step", fused_step)


def gradients_accumulate(_: pytest.MonkeyPatch) -> None:
    model, plain = pair()
    optimizer, reference = SGD(model.parameters(), lr=0.1), SGD(plain.parameters(), lr=0.1)
    Gossip(model, optimizer, **FUSED)
    for part in range(8):
        (loss_of(model, batch(part)) / 4).backward()
        (loss_of(plain, batch(part)) / 4).backward()
        if part % 4 == 3:
            for its in (optimizer, reference):
                its.step()
                its.zero_grad()
    assert difference(plain, mlp()) > 1e-3
    assert difference(model, plain) < NEAR


def a_mean_over_the_others(patch: pytest.MonkeyPatch) -> None:
    mix = Run._mix

    def divided(self: Run, groups: list[object], *, skip: bool) -> None:
        mix(self, groups, skip=skip)
        with torch.no_grad():
            for p in self.trained.tensors:
                p.div_(self.session.world.size - 1)

    patch.setattr(Run, "_mix", divided)


def a_worker_alone_trains(_: pytest.MonkeyPatch) -> None:
    for make in (partial(SGD, lr=0.1), partial(Adam, lr=0.01)):
        model, plain = pair()
        optimizer, reference = make(model.parameters()), make(plain.parameters())
        for name in ("ring", "complete", "alternating_exponential_ring"):
            with Gossip(model, optimizer, topology=name, check_gradients=False):
                train(model, optimizer, range(3))
            train(plain, reference, range(3))
        assert difference(model, plain) < NEAR


def powers_of_two_only(patch: pytest.MonkeyPatch) -> None:
    make = world._core.make_schedule

    def refusing(name: str, hosts: list[int], **options: int) -> object:
        if len(hosts) & (len(hosts) - 1) or sum(hosts) == 3 or set(hosts) == {1}:
            raise ValueError("[topology] no such number of workers")
        return make(name, hosts, **options)

    patch.setattr(world, "_core", SimpleNamespace(make_schedule=refusing))


def every_number_of_workers_is_served(_: pytest.MonkeyPatch) -> None:
    refused = []
    for hosts in ((1,), (1, 1), (3,), (1, 1, 1), (2, 2, 1), (1,) * 6, (2,) * 5, (8,), (4, 4, 4)):
        for name in ("ring", "alternating_exponential_ring"):
            try:
                world.schedule_for(world.World(0, sum(hosts), None, hosts, 0), name, "cwa", 0)
            except ValueError:
                refused.append((name, hosts))
    assert refused == []


CHECKS: dict[str, tuple[Breaks, Breaks]] = {
    check.__name__: (check, broken)
    for check, broken in (
        (weight_decay_is_for_weights, swapped_groups),
        (clipping_is_global, clipping_per_bucket),
        (zero_grad_first_loses_nothing, a_first_update_that_is_lost),
        (a_parameter_unused_at_first_trains_later, only_what_the_first_step_used),
        (an_overflow_skips_everything, an_overflow_that_skips_one_tensor_only),
        (what_is_loaded_stays, a_load_that_nobody_hears_of),
        (a_checkpoint_has_the_optimizer_state, a_state_that_is_hidden),
        (gradients_accumulate, a_step_only_after_a_single_backward),
        (a_worker_alone_trains, a_mean_over_the_others),
        (every_number_of_workers_is_served, powers_of_two_only),
    )
}


@pytest.mark.parametrize("name", CHECKS)
def test_excludes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    CHECKS[name][0](monkeypatch)


@pytest.mark.parametrize("name", CHECKS)
def test_would_notice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, broken = CHECKS[name]
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        check(monkeypatch)


# What takes several workers. The mistakes are scenarios of their own.


@pytest.fixture(scope="module")
def five() -> list[gossip_ranks.Rank]:
    scenarios = "two_forwards mixing_in_every_forward start_values only_parameters_are_sent"
    scenarios += " straggler straggler_among_all"
    return gossip_ranks.run(scenarios.split(), [2, 2, 1])


def test_two_forwards_mix_once(five: list[gossip_ranks.Rank]) -> None:
    once = [float((rank + (rank - 1) % 5 + (rank + 1) % 5) / 3) for rank in range(5)]

    def check(scenario: str) -> None:
        found = gossip_ranks.results(five, scenario)
        for values, expected in zip(found, once, strict=True):
            assert values == pytest.approx([expected] * len(values), rel=1e-6)

    check("two_forwards")
    with pytest.raises(AssertionError):
        check("mixing_in_every_forward")


def test_buffers_and_frozen_parameters_are_sent(five: list[gossip_ranks.Rank]) -> None:
    first = Normed(seed=0)

    def check(found: list[dict[str, object]]) -> None:
        assert [rank["buffers"] for rank in found] == [buffers(first)] * 5

    check(gossip_ranks.results(five, "start_values"))
    with pytest.raises(AssertionError):
        check(gossip_ranks.results(five, "only_parameters_are_sent"))


def test_a_killed_rank_does_not_end_the_others() -> None:
    def check(scenario: str) -> None:
        ranks = gossip_ranks.run([scenario], [1, 2])
        assert [rank.code for rank in ranks] == [0, -9, 0]
        told = [rank.said[scenario]["result"]["a rank is killed"] for rank in ranks[::2]]
        assert "with worker 1 failed" in told[0]
        assert told[1] == "nothing"

    check("dead")
    with pytest.raises(AssertionError):
        check("dead_and_all_with_it")


def test_a_straggler_does_not_stop_who_does_not_hear_it(five: list[gossip_ranks.Rank]) -> None:
    def check(scenario: str) -> None:
        assert gossip_ranks.results(five, scenario) == [False] * 5

    check("straggler")
    with pytest.raises(AssertionError):
        check("straggler_among_all")
