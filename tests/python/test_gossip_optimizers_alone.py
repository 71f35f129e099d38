"""Several optimizers over one model in one process: what is refused, and what is as without."""

import copy
import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from gossip_scenarios_optimizers import DOUBLE, LR, gan, halves, play, players, train_halves
from gossip_support import batch, difference, loss_of, mlp, pair, same_state
from torch import nn
from torch.optim import LBFGS, SGD, AdamW

import gossamer
from gossamer import Gossip

OWN = [row.name for row in gossamer._core.patterns() if row.own_step or row.averages_first]
FUSED_ONLY = [row.name for row in gossamer._core.patterns() if row.name not in OWN]

# Refusals.


def one_in_two(model: nn.Module) -> list[torch.optim.Optimizer]:
    return [SGD(model.parameters(), lr=LR), AdamW([model[2].bias])]


def twice(model: nn.Module) -> list[torch.optim.Optimizer]:
    return [SGD(model.parameters(), lr=LR)] * 2


def taken_already(model: nn.Module) -> list[torch.optim.Optimizer]:
    first, second = halves(model)
    Gossip(model, second)
    return [first, second]


def foreign(model: nn.Module) -> list[torch.optim.Optimizer]:
    return [halves(model)[0], SGD([model[0].bias, nn.Parameter(torch.ones(2))], lr=LR)]


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (
            one_in_two,
            {},
            "[Gossip] parameter '2.bias' must belong to one optimizer, got optimizer 0 (SGD) and "
            "optimizer 1 (AdamW), which would both step it; leave it out of one of them",
        ),
        (twice, {}, "[Gossip] optimizer 1 (SGD) stands twice in the list of optimizers"),
        (taken_already, {}, "[Gossip] optimizer 1 (AdamW) already gossips; close() the first"),
        (lambda _: [], {}, "[Gossip] the list of optimizers must have one at least, got none"),
        (foreign, {}, "of optimizer 1 (SGD) (shape (2,)) is not a parameter of the model"),
        (
            halves,
            {"update": "backward"},
            '[Gossip] update="backward" is for one optimizer, got SGD + AdamW, which take their '
            'own steps; use update="step"',
        ),
        *(
            (
                halves,
                {"pattern": pattern},
                f"[Gossip] pattern '{pattern}' steps the optimizer itself, got SGD + AdamW, which "
                "take their own steps here; use one of pattern cwa, ",
            )
            for pattern in FUSED_ONLY
        ),
    ],
)
def test_what_cannot_be_is_refused(
    make: Callable[[nn.Module], list[torch.optim.Optimizer]], options: Any, said: str
) -> None:
    model = mlp()
    optimizers = make(model)
    with pytest.raises(ValueError) as caught:
        Gossip(model, optimizers, **options)
    assert said in str(caught.value)
    assert not any(hasattr(each, "_gossip") for each in optimizers[:1])


def test_what_is_no_optimizer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"must be a torch\.optim\.Optimizer, got Linear; call"):
        Gossip(mlp(), [SGD(mlp().parameters(), lr=LR), nn.Linear(1, 1)])


# In one process.


@pytest.mark.parametrize("pattern", OWN)
def test_alone_it_is_plain_training(pattern: str) -> None:
    model, plain = pair()
    ours, theirs = halves(model, "muon"), halves(plain, "muon")
    train_halves(plain, theirs, range(8), 0)
    with Gossip(model, tuple(ours), topology="ring", pattern=pattern) as gossip:
        assert not gossip.is_fused
        assert "Sequential with Muon + AdamW" in repr(gossip)
        train_halves(model, ours, range(8), 0)
    assert difference(model, plain) == 0
    assert all(same_state(*both, 0) for both in zip(ours, theirs, strict=True))


def test_a_list_of_one_is_that_one() -> None:
    model = mlp()
    with Gossip(model, [AdamW(model.parameters(), lr=LR)], update="backward") as gossip:
        assert gossip.is_fused
        assert "Sequential with AdamW," in repr(gossip)


def test_close_gives_all_their_own_steps_back() -> None:
    model = mlp()
    optimizers = halves(model)
    gossip = Gossip(model, optimizers)
    train_halves(model, optimizers, range(1), 0)
    optimizers[0].step()
    gossip.close()
    gossip.step()
    for optimizer in optimizers:
        assert "step" not in vars(optimizer) and not hasattr(optimizer, "_gossip")
    train_halves(model, optimizers, range(1), 0)
    with Gossip(model, optimizers[::-1]) as again:
        train_halves(model, optimizers, range(2), 0)
        assert again.stats()["steps"] == 2


def test_copies_are_plain() -> None:
    model, plain = pair()
    optimizers, reference = halves(model), halves(plain)
    with Gossip(model, optimizers):
        train_halves(model, optimizers, range(3), 0)
        twin, twins = copy.deepcopy((model, optimizers))
        pickled = pickle.loads(pickle.dumps((model, optimizers)))
    train_halves(plain, reference, range(6), 0)
    for copied, those in ((twin, twins), pickled):
        assert not any(hasattr(each, "_gossip") for each in those)
        train_halves(copied, those, range(3, 6), 0)
        assert difference(copied, plain) == 0


@pytest.mark.parametrize("pattern", ["cwa", "allreduce"])
def test_each_may_take_a_closure(pattern: str) -> None:
    model, plain = (each.double() for each in pair())

    def train(of: nn.Module, pairs: list[torch.optim.Optimizer]) -> list[float]:
        losses = []
        for step in range(6):
            for optimizer in pairs:

                def closure(step: int = step) -> torch.Tensor:
                    of.zero_grad()
                    loss = loss_of(of, batch(step).to(DOUBLE))
                    loss.backward()
                    return loss

                losses.append(optimizer.step(closure).item())
        return losses

    def made(of: nn.Module) -> list[torch.optim.Optimizer]:
        return [LBFGS(of[0].parameters(), lr=LR), SGD(of[2].parameters(), lr=LR)]

    ours = made(model)
    with Gossip(model, ours, pattern=pattern) as gossip:
        assert train(model, ours) == train(plain, made(plain))
        assert gossip.stats()["steps"] == 6
    assert difference(model, plain) == 0


def test_a_topology_asks_for_the_loss_when_it_mixes() -> None:
    model = gan()
    d, g = players(model)
    schedule = gossamer.make_schedule("ring", [1], adaptive_average=2)
    with Gossip(model, [d, g], topology=schedule, pattern="atc") as gossip:
        play(model, [d, g], 0, "d")
        with pytest.raises(ValueError, match=r"call gossip\.observe\(loss\)"):
            gossip.step()
        with pytest.raises(ValueError, match=r"call gossip\.observe\(loss\)"):
            play(model, [d, g], 0, "g")
        gossip.observe(1.0)
        play(model, [d, g], 0, "g")
        assert gossip.stats()["steps"] == 1


def test_gradients_of_others_are_not_looked_at() -> None:
    """A gradient that is not finite is refused in the step of its own optimizer."""
    model = mlp()
    first, second = halves(model)
    with Gossip(model, [first, second]):
        loss_of(model, batch(0)).backward()
        model[0].bias.grad[0] = float("nan")
        first.step()
        with pytest.raises(RuntimeError, match=r"of parameter '0\.bias' on worker 0 in step 1"):
            second.step()


def test_a_line_of_metrics_for_each_mix(tmp_path: Path) -> None:
    model = gan()
    optimizers = players(model)
    with Gossip(model, optimizers, metrics=tmp_path, trace=tmp_path) as gossip:
        play(model, optimizers, 0, "ddg" * 2 + "d")
        gossip.step()
    lines = [json.loads(line) for line in (tmp_path / "metrics.rank0.jsonl").open()]
    assert [line["step"] for line in lines if "lr" in line] == [1, 2, 3]
    assert 'optimizer = "AdamW + SGD"' in (tmp_path / "run.toml").read_text()


def test_nothing_is_warned_of() -> None:
    model = mlp()
    optimizers = halves(model)
    with warnings.catch_warnings(), Gossip(model, optimizers) as gossip:
        warnings.simplefilter("error")
        loss_of(model, batch(0)).backward()
        optimizers[0].step()
        model.zero_grad()
        gossip.step()  # although no gradient is there any more
        train_halves(model, optimizers, range(8), 0)
