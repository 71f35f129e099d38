"""Wrapped models and optimizers: the wrapper's step gossips, once, on what is inside."""

from collections.abc import Callable

import pytest
import torch
from gossip_support import FUSED, batch, difference, loss_of, mlp, pair, train
from gossip_wrappers import LightningOptimizer, accelerated
from torch import nn
from torch.optim import SGD, Adam

from gossamer import Gossip

NEAR = 1e-6
Wrap = Callable[[torch.optim.Optimizer], torch.optim.Optimizer]


@pytest.mark.parametrize("wrap", [accelerated, LightningOptimizer])
def test_gossip_reaches_the_optimizer_inside(wrap: Wrap) -> None:
    model, plain = pair()
    optimizer, reference = (Adam(m.parameters(), lr=0.01) for m in (model, plain))
    wrapped = wrap(optimizer)
    gossip = Gossip(model, wrapped, **FUSED)
    train(model, wrapped, range(4))
    train(plain, reference, range(4))
    assert gossip.is_fused
    assert gossip.stats()["steps"] == 4
    assert difference(model, plain) < NEAR
    gossip.close()
    train(model, wrapped, [4])
    train(plain, reference, [4])
    assert difference(model, plain) < NEAR


def test_a_wrapper_that_accumulates_does_not_mix_in_between() -> None:
    model = mlp()
    wrapped = accelerated(SGD(model.parameters(), lr=0.1))
    gossip = Gossip(model, wrapped)
    for part in range(8):
        wrapped.sync_gradients = part % 4 == 3
        loss_of(model, batch(part)).backward()
        wrapped.step()
        wrapped.zero_grad()
    assert gossip.stats()["steps"] == 2


def test_an_optimizer_with_an_optimizer_of_its_own_is_no_wrapper() -> None:
    class Lookahead(SGD):
        pass

    model = mlp()
    optimizer = Lookahead(model.parameters(), lr=0.1)
    optimizer.optimizer = SGD(model.parameters(), lr=0.1)
    gossip = Gossip(model, optimizer)
    train(model, optimizer, range(2))
    assert gossip.stats()["steps"] == 2
    assert not gossip.is_fused


@pytest.mark.parametrize("first", ["compile", "gossip"])
def test_a_compiled_model_trains_as_the_plain_one(first: str) -> None:
    model, plain = pair()
    compiled = torch.compile(model, backend="eager")
    optimizer, reference = (SGD(m.parameters(), lr=0.1) for m in (model, plain))
    gossip = Gossip(compiled if first == "compile" else model, optimizer)
    train(compiled, optimizer, range(3))
    train(plain, reference, range(3))
    assert difference(model, plain) < NEAR
    with gossip.averaged() as average:
        assert average is (compiled if first == "compile" else model)
        assert torch.equal(average(batch(7)), model(batch(7)))


def test_an_own_step_knows_nothing_of_the_scaler() -> None:
    model, plain = pair()
    optimizer, reference = (Adam(m.parameters(), lr=0.01, amsgrad=True) for m in (model, plain))
    gossip = Gossip(model, optimizer)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for step in range(4):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, batch(step))).backward()
        if step == 2:
            model[0].bias.grad[0] = float("inf")  # skipped, and mixed
        scaler.step(optimizer)
        scaler.update()
    train(plain, reference, [0, 1, 3])
    assert not gossip.is_fused
    assert gossip.stats()["steps"] == 4
    assert difference(model, plain) < NEAR
    assert not {"found_inf", "grad_scale"} & set(vars(optimizer))


def test_a_parallel_model_of_one_process_is_a_model() -> None:
    model, plain = pair()
    parallel = nn.DataParallel(model)
    optimizer, reference = (SGD(m.parameters(), lr=0.1) for m in (model, plain))
    Gossip(parallel, optimizer)
    train(parallel, optimizer, range(2))
    train(plain, reference, range(2))
    assert difference(model, plain) < NEAR
