"""A worker alone: what is saved and loaded is all there is, and torch's own."""

import copy
import io
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from gossip_support import Make, difference, mlp, pair, same_state, train
from torch import nn
from torch.optim import SGD, Adam, AdamW, RMSprop

from gossamer import AccumAdamW, Gossip

NEAR = 1e-6
KINDS: dict[str, Make] = {
    "sgd": partial(SGD, lr=0.1),
    "momentum": partial(SGD, lr=0.05, momentum=0.9, dampening=0.5),
    "adam": partial(Adam, lr=0.01),
    "adamw": partial(AdamW, lr=0.01),
    # No pause falls on the end of a period, after which the accumulated gradient means nothing.
    "accum_adamw": partial(AccumAdamW, lr=0.01, accumulate=6),
    "own_step": partial(RMSprop, lr=0.01),
}


def through_a_file(thing: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(thing, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("loads", ["before", "after"])
@pytest.mark.parametrize("kind", KINDS)
def test_resume_equals_a_run_without_pause(kind: str, loads: str) -> None:
    model, plain = pair()
    optimizer, reference = KINDS[kind](model.parameters()), KINDS[kind](plain.parameters())
    Gossip(model, optimizer)
    train(model, optimizer, range(7))
    saved = through_a_file({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    train(model, optimizer, range(7, 9))  # must not reach what was saved

    second = mlp(seed=9)
    second_optimizer = KINDS[kind](second.parameters())
    if loads == "after":
        Gossip(second, second_optimizer)
        train(second, second_optimizer, range(20, 23))
    second.load_state_dict(saved["model"])
    second_optimizer.load_state_dict(saved["optimizer"])
    if loads == "before":
        Gossip(second, second_optimizer)
    train(second, second_optimizer, range(7, 20))
    train(plain, reference, range(20))
    assert difference(second, plain) < NEAR
    assert same_state(second_optimizer, reference, within=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_torch_and_gossip_read_each_others_state(kind: str) -> None:
    model, plain = pair()
    optimizer, reference = KINDS[kind](model.parameters()), KINDS[kind](plain.parameters())
    Gossip(model, optimizer)
    train(plain, reference, range(5))
    model.load_state_dict(plain.state_dict())
    optimizer.load_state_dict(copy.deepcopy(reference.state_dict()))
    train(model, optimizer, range(5, 10))
    plain.load_state_dict(model.state_dict())
    reference.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    train(plain, reference, range(10, 15))

    straight = mlp()
    straight_optimizer = KINDS[kind](straight.parameters())
    train(straight, straight_optimizer, range(15))
    assert difference(plain, straight) < NEAR
    assert same_state(reference, straight_optimizer, within=1e-5)


def test_an_own_state_dict_loaded_back() -> None:
    model, plain = pair()
    optimizer, reference = Adam(model.parameters(), lr=0.01), Adam(plain.parameters(), lr=0.01)
    Gossip(model, optimizer)
    train(model, optimizer, range(5))
    optimizer.load_state_dict(optimizer.state_dict())
    train(model, optimizer, range(5, 10))
    train(plain, reference, range(10))
    assert difference(model, plain) < NEAR


def test_a_part_of_the_model_loaded() -> None:
    model, plain = pair()
    optimizer, reference = SGD(model.parameters(), lr=0.1), SGD(plain.parameters(), lr=0.1)
    Gossip(model, optimizer)
    for of, its in ((model, optimizer), (plain, reference)):
        train(of, its, range(3))
        of[0].load_state_dict(mlp(seed=4)[0].state_dict())
        train(of, its, range(3, 6))
    assert difference(model, plain) < NEAR


def test_the_state_is_shown_where_the_engine_keeps_it() -> None:
    model = mlp()
    optimizer = Adam(model.parameters(), lr=0.01)
    Gossip(model, optimizer)
    train(model, optimizer, range(3))
    entry = optimizer.state[model[0].weight]
    before = entry["exp_avg"].clone()
    train(model, optimizer, [3])
    assert optimizer.state[model[0].weight] is entry
    assert int(entry["step"]) == 4
    assert not torch.equal(entry["exp_avg"], before)
    entry["exp_avg"].zero_()
    entry["exp_avg_sq"].zero_()
    weight = model[0].weight.clone()
    optimizer.zero_grad(set_to_none=False)
    optimizer.step()
    assert torch.equal(model[0].weight, weight)


def test_a_whole_model_pickles() -> None:
    model = mlp()
    optimizer = Adam(model.parameters(), lr=0.01)
    Gossip(model, optimizer)
    train(model, optimizer, range(2))
    twin = pickle.loads(pickle.dumps(model))
    assert difference(twin, model) == 0
    twin_optimizer = pickle.loads(pickle.dumps(optimizer))
    assert same_state(twin_optimizer, optimizer, within=0)


def test_safetensors(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    model = nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5))
    Gossip(model, Adam(model.parameters()))
    safetensors.save_file(model.state_dict(), tmp_path / "model.safetensors")
    loaded = safetensors.load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(loaded[key], value) for key, value in model.state_dict().items())
