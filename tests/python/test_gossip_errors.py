"""What Gossip says when it is used wrongly; the messages stand in tests/golden/python_errors.txt.

GOSSAMER_GOLDEN=renew writes them instead of comparing.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from gossip_support import ROOT, batch, loss_of, mlp, train
from torch import nn
from torch.optim import SGD, Adam

import gossamer
from gossamer import AccumAdam, Gossip

GOLDEN = ROOT / "tests" / "golden" / "python_errors.txt"


def sgd(model: nn.Module) -> SGD:
    return SGD(model.parameters(), lr=0.1)


def parameter(tensor: torch.Tensor) -> nn.Module:
    model = nn.Module()
    model.register_parameter("odd", nn.Parameter(tensor, requires_grad=False))
    return model


def ddp() -> None:
    wrapped = nn.parallel.DistributedDataParallel.__new__(nn.parallel.DistributedDataParallel)
    nn.Module.__init__(wrapped)
    wrapped.module = mlp()
    Gossip(wrapped, sgd(wrapped))


def twice() -> None:
    model = mlp()
    optimizer = sgd(model)
    Gossip(model, optimizer)
    Gossip(model, optimizer)


def moved_since() -> None:
    model = mlp()
    optimizer = sgd(model)
    Gossip(model, optimizer)
    model.double()
    optimizer.step()


def averaging(act: Callable[[Gossip, torch.optim.Optimizer], object]) -> None:
    model = mlp()
    optimizer = sgd(model)
    gossip = Gossip(model, optimizer)
    with gossip.averaged():
        act(gossip, optimizer)


def closed(act: Callable[[Gossip], object]) -> None:
    model = mlp()
    gossip = Gossip(model, sgd(model))
    gossip.close()
    act(gossip)


def under_a_launcher() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORLD_SIZE", "4")
        Gossip(mlp(), sgd(mlp()))


def not_finite(make: Callable[..., torch.optim.Optimizer], value: float) -> None:
    model = mlp()
    optimizer = make(model.parameters(), lr=0.01)
    Gossip(model, optimizer)
    train(model, optimizer, range(2))
    loss_of(model, batch(2)).backward()
    model[2].weight.grad[1, 2] = value
    before = [p.detach().clone() for p in model.parameters()]
    try:
        optimizer.step()
    finally:
        assert all(map(torch.equal, before, model.parameters()))


def sparse() -> None:
    model = nn.Embedding(5, 3, sparse=True)
    optimizer = sgd(model)
    Gossip(model, optimizer)
    model(torch.tensor([1, 2])).sum().backward()
    optimizer.step()


def frozen() -> None:
    model = mlp()
    optimizer = SGD([{"params": []}], lr=0.1)
    Gossip(model, optimizer)


def shared() -> None:
    model = mlp(inputs=7)
    model[2].bias.data = model[0].bias.data[:3]
    Gossip(model, sgd(model))


CASES: dict[str, Callable[[], object]] = {
    "another model's optimizer": lambda: Gossip(mlp(), sgd(mlp())),
    "wrapped in DDP": ddp,
    "a second Gossip": twice,
    "topology": lambda: Gossip((m := mlp()), sgd(m), topology="alternating_exponential_rin"),
    "pattern": lambda: Gossip((m := mlp()), sgd(m), pattern="cta"),
    "buffers": lambda: Gossip((m := mlp()), sgd(m), buffers="average"),
    "bucket_bytes": lambda: Gossip((m := mlp()), sgd(m), bucket_bytes=0),
    "schedule for others": lambda: Gossip(
        (m := mlp()), sgd(m), topology=gossamer.make_schedule("ring", [4])
    ),
    "hypercube of 6": lambda: gossamer.make_schedule("hypercube", [3, 3]),
    "step inside averaged": lambda: averaging(lambda _, optimizer: optimizer.step()),
    "averaged inside averaged": lambda: averaging(lambda gossip, _: gossip.averaged().__enter__()),
    "disagreement inside averaged": lambda: averaging(lambda gossip, _: gossip.disagreement()),
    "averaged after close": lambda: closed(lambda gossip: gossip.averaged().__enter__()),
    "disagreement after close": lambda: closed(Gossip.disagreement),
    "stats after close": lambda: closed(Gossip.stats),
    "no process group": under_a_launcher,
    "nan": lambda: not_finite(Adam, float("nan")),
    "inf": lambda: not_finite(SGD, float("-inf")),
    "nan with an own step": lambda: not_finite(torch.optim.RMSprop, float("nan")),
    "sparse gradient": sparse,
    "sparse parameter": lambda: Gossip((m := parameter(torch.eye(2).to_sparse())), sgd(m)),
    "integer parameter": lambda: Gossip((m := parameter(torch.arange(3))), sgd(m)),
    "no parameters": frozen,
    "shared memory": shared,
    "moved": moved_since,
    "accumulate": lambda: AccumAdam(mlp().parameters(), accumulate=0),
    "betas": lambda: AccumAdam(mlp().parameters(), betas=(0.9, 1.0)),
}


def message_of(act: Callable[[], object]) -> str:
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def recorded() -> dict[str, str]:
    text = GOLDEN.read_text(encoding="utf-8") if GOLDEN.exists() else ""
    return dict(part.strip().split("\n", 1) for part in text.split("== ")[1:])


@pytest.mark.skipif(os.environ.get("GOSSAMER_GOLDEN") != "renew", reason="only renews")
def test_renew() -> None:
    parts = [f"== {name}\n{message_of(act)}\n" for name, act in CASES.items()]
    Path(GOLDEN).write_text("\n".join(parts), encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_says(name: str) -> None:
    found = message_of(CASES[name])
    assert found == recorded()[name]
    assert found != "no error"


def test_nothing_else_is_recorded() -> None:
    assert recorded().keys() == CASES.keys()


def test_complex_parameters_take_their_own_step() -> None:
    model = nn.Module()
    model.register_parameter("z", nn.Parameter(torch.ones(3, dtype=torch.complex64)))
    optimizer = Adam(model.parameters(), lr=0.1)
    gossip = Gossip(model, optimizer)
    model.z.abs().sum().backward()
    optimizer.step()
    assert not gossip.is_fused
    assert bool((model.z.real < 1).all())


def test_a_gossip_that_failed_leaves_the_optimizer_alone() -> None:
    model = mlp()
    optimizer = sgd(model)
    before = set(vars(optimizer))
    assert "pattern" in message_of(lambda: Gossip(model, optimizer, pattern="no"))
    assert set(vars(optimizer)) == before
    Gossip(model, optimizer)
