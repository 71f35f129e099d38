"""A worker alone: whatever a training loop does between steps, Gossip does as torch does."""

import copy
import gc
import weakref
from collections.abc import Callable
from functools import partial

import pytest
import torch
from gossip_support import Make, batch, difference, loss_of, mlp, pair, same_state, train
from torch import nn
from torch.optim import SGD, Adam, AdamW, RMSprop

from gossamer import AccumAdamW, Gossip

NEAR = 1e-6
Both = tuple[tuple[nn.Module, torch.optim.Optimizer], tuple[nn.Module, torch.optim.Optimizer]]
KINDS = {
    "adam": partial(Adam, lr=0.01),
    "momentum": partial(SGD, lr=0.05, momentum=0.9),
    "own_step": partial(RMSprop, lr=0.01),
}


def both(make: Make, make_model: Callable[[], nn.Module] = mlp) -> Both:
    """A model that gossips alone, and the same under torch."""
    model, plain = pair(make_model)
    optimizer = make(model.parameters())
    Gossip(model, optimizer)
    return (model, optimizer), (plain, make(plain.parameters()))


class Branches(nn.Module):
    """Two layers; each can be left out."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first = nn.Linear(5, 3)
        self.second = nn.Linear(5, 3)
        self.use = "first"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = x.sum() * 0
        if self.use in ("first", "both"):
            out = out + self.first(x)
        if self.use in ("second", "both"):
            out = out + self.second(x)
        return out


@pytest.mark.parametrize("kind", KINDS)
def test_unused_at_first(kind: str) -> None:
    sides = both(KINDS[kind], Branches)
    for model, optimizer in sides:
        train(model, optimizer, range(3))
        assert model.second.weight not in optimizer.state
        model.use = "both"
        train(model, optimizer, range(3, 6))
        model.use = "second"
        train(model, optimizer, range(6, 9))
    (model, optimizer), (plain, reference) = sides
    assert difference(model, plain) < NEAR
    assert same_state(optimizer, reference, within=1e-5)
    if kind == "adam":
        steps = [int(optimizer.state[p]["step"]) for p in model.parameters()]
        assert steps == [6, 6, 6, 6]


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_then_unfrozen(kind: str) -> None:
    sides = both(KINDS[kind])
    for model, optimizer in sides:
        model[0].requires_grad_(False)
        start = model[0].weight.clone()
        train(model, optimizer, range(3))
        assert torch.equal(model[0].weight, start)
        model[0].requires_grad_(True)
        train(model, optimizer, range(3, 8))
    assert difference(sides[0][0], sides[1][0]) < NEAR


@pytest.mark.parametrize("kind", KINDS)
def test_a_parameter_group_added_later(kind: str) -> None:
    sides = []
    for gossips in (True, False):
        model = Branches()
        optimizer = KINDS[kind](model.first.parameters())
        if gossips:
            gossip = Gossip(model, optimizer)
        model.use = "both"
        model.second.requires_grad_(False)
        train(model, optimizer, range(4))
        model.second.requires_grad_(True)
        optimizer.add_param_group({"params": model.second.parameters(), "lr": 0.02})
        train(model, optimizer, range(4, 10))
        sides.append((model, optimizer))
    assert difference(sides[0][0], sides[1][0]) < NEAR
    assert same_state(sides[0][1], sides[1][1], within=1e-5)
    assert gossip.stats()["steps"] == 10


@pytest.mark.parametrize("kind", KINDS)
def test_gossip_on_what_has_begun(kind: str) -> None:
    model, plain = pair()
    optimizer, reference = KINDS[kind](model.parameters()), KINDS[kind](plain.parameters())
    train(model, optimizer, range(5))
    Gossip(model, optimizer)
    train(model, optimizer, range(5, 15))
    train(plain, reference, range(15))
    assert difference(model, plain) < NEAR
    assert same_state(optimizer, reference, within=1e-5)


@pytest.mark.parametrize("kind", [*KINDS, "accum"])
def test_the_optimizer_goes_on_alone_after_close(kind: str) -> None:
    make = KINDS.get(kind, partial(AccumAdamW, lr=0.01, accumulate=4))
    model, plain = pair()
    optimizer, reference = make(model.parameters()), make(plain.parameters())
    before = set(vars(optimizer))
    gossip = Gossip(model, optimizer)
    train(model, optimizer, range(8))
    gossip.close()
    gossip.close()
    assert set(vars(optimizer)) - before <= {"_opt_called"}
    train(model, optimizer, range(8, 20))
    train(plain, reference, range(20))
    assert difference(model, plain) < NEAR
    assert same_state(optimizer, reference, within=1e-5)
    Gossip(model, optimizer)  # and may gossip again
    train(model, optimizer, range(20, 25))
    train(plain, reference, range(20, 25))
    assert difference(model, plain) < NEAR


def test_close_under_a_scheduler_that_was_made_later() -> None:
    model, plain = pair()
    optimizer, reference = SGD(model.parameters(), lr=0.1), SGD(plain.parameters(), lr=0.1)
    with Gossip(model, optimizer):
        schedulers = [torch.optim.lr_scheduler.StepLR(its, 2) for its in (optimizer, reference)]
        train(model, optimizer, [0])
        schedulers[0].step()
    train(plain, reference, [0])
    schedulers[1].step()
    for step in range(1, 4):
        for of, its, scheduler in zip(
            (model, plain), (optimizer, reference), schedulers, strict=True
        ):
            train(of, its, [step])
            scheduler.step()
    assert difference(model, plain) < NEAR


def test_shared_parameter() -> None:
    def tied() -> nn.Module:
        model = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5))
        model[2].weight = model[0].weight
        return model

    torch.manual_seed(0)
    sides = both(partial(Adam, lr=0.01), tied)
    for model, optimizer in sides:
        train(model, optimizer, range(10))
        assert model[2].weight is model[0].weight
    assert difference(sides[0][0], sides[1][0]) < NEAR


def test_half_precision_among_single_is_fused_or_takes_its_own_step() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(2)
            self.low = nn.Linear(5, 7).bfloat16()
            self.single = nn.Linear(7, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.single(self.low(x.bfloat16()).float())

    assert both(partial(Adam, lr=0.01), Mixed)[0][1]._gossip.is_fused
    (model, optimizer), (plain, reference) = both(partial(RMSprop, lr=0.01), Mixed)
    for of, its in ((model, optimizer), (plain, reference)):
        train(of, its, range(20))
    assert not optimizer._gossip.is_fused
    assert all(map(torch.equal, model.parameters(), plain.parameters()))


def test_channels_last_keeps_its_strides() -> None:
    def convolution() -> nn.Module:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3))
        return model.to(memory_format=torch.channels_last)

    sides = both(partial(AdamW, lr=0.01), convolution)
    for model, optimizer in sides:
        for step in range(5):
            optimizer.zero_grad()
            x = batch(step, rows=2, inputs=3 * 64).view(2, 3, 8, 8)
            model(x.to(memory_format=torch.channels_last)).square().mean().backward()
            optimizer.step()
    (model, optimizer), (plain, reference) = sides
    assert [p.stride() for p in model.parameters()] == [p.stride() for p in plain.parameters()]
    assert difference(model, plain) < NEAR
    assert same_state(optimizer, reference, within=1e-5)


def test_a_gradient_with_other_strides_or_none_at_all() -> None:
    sides = both(partial(Adam, lr=0.01))
    for model, optimizer in sides:
        torch.manual_seed(5)
        for step in range(4):
            for p in model.parameters():
                p.grad = torch.randn(p.shape[::-1]).t() if p.ndim == 2 else torch.randn(p.shape)
            if step == 2:
                model[0].weight.grad = None
            optimizer.step()
    assert difference(sides[0][0], sides[1][0]) < NEAR


@pytest.mark.parametrize("before", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("to_none", [True, False], ids=["none", "zeros"])
def test_zero_grad_at_any_place(to_none: bool, before: bool) -> None:
    sides = both(partial(Adam, lr=0.01))
    for model, optimizer in sides:
        for step in range(10):
            if before:
                optimizer.zero_grad(set_to_none=to_none)
            loss = loss_of(model, batch(step))
            if not before:
                model.zero_grad(set_to_none=to_none)
            loss.backward()
            optimizer.step()
    assert difference(sides[0][0], sides[1][0]) < NEAR


def test_gradient_accumulation_and_two_forwards() -> None:
    sides = both(partial(SGD, lr=0.05, momentum=0.9))
    for model, optimizer in sides:
        for step in range(24):
            one, other = loss_of(model, batch(step)), loss_of(model, batch(step, rank=7))
            ((one + other) / 4).backward()
            if step % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
    assert difference(sides[0][0], sides[1][0]) < NEAR
    assert sides[0][1]._gossip.stats()["steps"] == 6


@pytest.mark.parametrize("kind", [*KINDS, "torch_fused"])
@pytest.mark.parametrize("unscale", [True, False])
def test_grad_scaler(kind: str, unscale: bool) -> None:
    make = KINDS.get(kind, partial(Adam, lr=0.01, amsgrad=True, fused=True))
    (model, optimizer), (plain, reference) = both(make)
    scales: list[list[float]] = []
    for of, its in ((model, optimizer), (plain, reference)):
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
        seen = []
        for step in range(12):
            its.zero_grad()
            before = [p.clone() for p in of.parameters()]
            scaler.scale(loss_of(of, batch(step))).backward()
            if step in (2, 7):
                next(of.parameters()).grad.view(-1)[1] = float("inf")
            if unscale:
                scaler.unscale_(its)
            scaler.step(its)
            scaler.update()
            if step in (2, 7):
                assert all(map(torch.equal, before, of.parameters()))
            seen.append(scaler.get_scale())
        scales.append(seen)
    assert scales[0] == scales[1]
    assert difference(model, plain) < NEAR
    assert optimizer._gossip.stats()["steps"] == 12  # it mixes where the update is skipped
    assert same_state(optimizer, reference, within=1e-5)


def test_a_disabled_grad_scaler() -> None:
    sides = both(partial(Adam, lr=0.01))
    for model, optimizer in sides:
        scaler = torch.amp.GradScaler("cpu", enabled=False)
        for step in range(3):
            optimizer.zero_grad()
            scaler.scale(loss_of(model, batch(step))).backward()
            scaler.step(optimizer)
            scaler.update()
    assert difference(sides[0][0], sides[1][0]) < NEAR


@pytest.mark.parametrize("kind", KINDS)
def test_step_hooks_run_once_each(kind: str) -> None:
    model = mlp()
    optimizer = KINDS[kind](model.parameters())
    gossip = Gossip(model, optimizer)
    seen: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    train(model, optimizer, range(2))
    assert seen == ["before", "after"] * 2
    gossip.close()
    train(model, optimizer, [2])
    assert seen == ["before", "after"] * 3


def test_parameters_changed_by_hand_between_steps() -> None:
    sides = both(partial(Adam, lr=0.05))
    for model, optimizer in sides:
        for step in range(10):
            train(model, optimizer, [step])
            with torch.no_grad():
                for p in model.parameters():
                    p.clamp_(-0.2, 0.2)
    assert difference(sides[0][0], sides[1][0]) < NEAR


def test_state_cleared_by_hand() -> None:
    sides = both(partial(Adam, lr=0.05))
    for model, optimizer in sides:
        train(model, optimizer, range(5))
        optimizer.state.clear()
        train(model, optimizer, range(5, 10))
    assert difference(sides[0][0], sides[1][0]) < NEAR
    assert same_state(sides[0][1], sides[1][1], within=1e-5)


@pytest.mark.parametrize("make", [partial(SGD, lr=0.1), partial(RMSprop, lr=0.1)])
def test_gradients_are_not_checked_if_so_wished(make: Make) -> None:
    model = mlp()
    optimizer = make(model.parameters())
    Gossip(model, optimizer, check_gradients=False)
    loss_of(model, batch(0)).backward()
    model[0].bias.grad[2] = float("nan")
    optimizer.step()
    assert model[0].bias.isnan().tolist() == [False, False, True, False, False, False, False]


def test_compiled_model() -> None:
    model, plain = pair()
    optimizer, reference = Adam(model.parameters(), lr=0.01), Adam(plain.parameters(), lr=0.01)
    compiled = torch.compile(model, backend="eager")
    Gossip(compiled, optimizer)
    train(compiled, optimizer, range(10))
    train(plain, reference, range(10))
    assert difference(model, plain) < NEAR


def test_a_module_that_is_called_module() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = nn.Linear(5, 7)
            self.head = nn.Linear(7, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.module(x))

    sides = both(partial(Adam, lr=0.01), Outer)
    for model, optimizer in sides:
        train(model, optimizer, range(5))
    assert difference(sides[0][0], sides[1][0]) < NEAR


@pytest.mark.parametrize("closes", [True, False])
def test_nothing_is_kept_alive(closes: bool) -> None:
    model = mlp()
    optimizer = Adam(model.parameters(), lr=0.01)
    gossip = Gossip(model, optimizer)
    train(model, optimizer, range(2))
    alive = [weakref.ref(thing) for thing in (gossip, optimizer, model, model[0].weight)]
    if closes:
        gossip.close()
    del gossip, optimizer, model
    gc.collect()
    assert [reference() for reference in alive] == [None] * 4


def test_it_lives_as_long_as_its_optimizer() -> None:
    model = mlp()
    optimizer = Adam(model.parameters(), lr=0.01)
    alive = weakref.ref(Gossip(model, optimizer))
    gc.collect()
    train(model, optimizer, range(2))
    gossip = alive()
    assert gossip is not None
    assert gossip.stats()["steps"] == 2


def test_a_copy_of_model_and_optimizer_is_plain_torch() -> None:
    (model, optimizer), (plain, reference) = both(partial(Adam, lr=0.01))
    for of, its in ((model, optimizer), (plain, reference)):
        train(of, its, range(5))
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    assert getattr(twin_optimizer, "_gossip", None) is None
    train(twin, twin_optimizer, range(5, 10))
    assert optimizer._gossip.stats()["steps"] == 5
    assert difference(model, plain) < NEAR
    train(plain, reference, range(5, 10))
    assert difference(twin, plain) < NEAR
