"""What other tools see of a model and an optimizer that gossip: storages, files, pickles."""

import copy
import io
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from gossip_support import FUSED, batch, loss_of, mlp, pair, train
from torch import nn
from torch.optim import SGD, Adam, AdamW

from gossamer import Gossip

SLACK_BYTES = 1000


def saved(what: Any) -> int:
    file = io.BytesIO()
    torch.save(what, file)
    return file.tell()


def both() -> list[tuple[nn.Sequential, torch.optim.Optimizer]]:
    """A model after a few steps with Gossip, and one without."""
    sides: list[Any] = []
    for gossips in (True, False):
        model = mlp(hidden=400)
        optimizer = AdamW(model.parameters())
        if gossips:
            Gossip(model, optimizer)
        train(model, optimizer, range(3))
        sides.append((model, optimizer))
    return sides


PARTS: dict[str, Callable[[nn.Sequential, torch.optim.Optimizer], Any]] = {
    "module": lambda model, _: model,
    "part": lambda model, _: model[2],
    "bias": lambda model, _: model[2].bias.detach(),
    "state of a part": lambda model, _: model[2].state_dict(),
    "state": lambda model, _: model.state_dict(),
    "optimizer": lambda _, optimizer: optimizer.state_dict(),
    "moment": lambda model, optimizer: optimizer.state[model[2].bias]["exp_avg"],
    "count": lambda model, optimizer: optimizer.state[model[2].bias]["step"],
    "copy": lambda model, _: copy.deepcopy(model),
}


@pytest.mark.parametrize("name", PARTS)
def test_files_are_as_large_as_without(name: str) -> None:
    with_gossip, without = (saved(PARTS[name](*side)) for side in both())
    assert abs(with_gossip - without) <= SLACK_BYTES


def test_every_tensor_has_a_storage_of_its_own() -> None:
    model, optimizer = both()[0]
    tensors = [*model.parameters()]
    tensors += [value for entry in optimizer.state.values() for value in entry.values()]
    for tensor in tensors:
        assert tensor.untyped_storage().nbytes() == tensor.nbytes
        assert tensor.storage_offset() == 0
        assert tensor.untyped_storage().resizable()
    assert len({tensor.untyped_storage().data_ptr() for tensor in tensors}) == len(tensors)


@pytest.fixture
def accelerator() -> Iterator[Accelerator]:
    yield Accelerator(cpu=True)
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


def test_accelerate_saves_and_loads_everything(accelerator: Accelerator, tmp_path: Path) -> None:
    model = accelerator.prepare_model(mlp(), evaluation_mode=True)
    optimizer = AdamW(model.parameters())
    gossip = Gossip(model, optimizer)
    prepared = accelerator.prepare(optimizer)
    accelerator.backward(loss_of(model, batch(0)))
    prepared.step()
    with gossip.averaged(), warnings.catch_warnings():
        warnings.simplefilter("error")
        accelerator.save_state(str(tmp_path / "state"))
        accelerator.save_model(model, str(tmp_path / "model"))
    names = set(model.state_dict())
    for folder in ("state", "model"):
        file = safetensors.torch.load_file(tmp_path / folder / "model.safetensors")
        assert set(file) == names
    before = {name: value.clone() for name, value in model.state_dict().items()}
    train(model, optimizer, range(1, 3))
    accelerator.load_state(str(tmp_path / "state"))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_safetensors_takes_the_model(tmp_path: Path) -> None:
    model, plain = pair()
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    Gossip(model, optimizer)
    train(model, optimizer, range(2))
    safetensors.torch.save_model(model, str(tmp_path / "model"))
    safetensors.torch.save_file(model.state_dict(), tmp_path / "state")
    assert (tmp_path / "model").stat().st_size == (tmp_path / "state").stat().st_size
    safetensors.torch.load_model(plain, str(tmp_path / "model"))
    assert all(map(torch.equal, model.parameters(), plain.parameters()))


READ = """
import sys, torch
model = torch.load(sys.argv[1], weights_only=False)
assert not any(name.startswith("gossamer") for name in sys.modules)
model.load_state_dict(model.state_dict())
print(float(sum(p.detach().double().sum() for p in model.parameters())))
"""


def test_a_saved_model_loads_where_the_package_is_not(tmp_path: Path) -> None:
    model, optimizer = mlp(), None
    optimizer = Adam(model.parameters())
    gossip = Gossip(model, optimizer)
    train(model, optimizer, range(2))
    for close in (False, True):
        if close:
            gossip.close()
        torch.save(model, tmp_path / "model.pt")
        done = subprocess.run(
            [sys.executable, "-c", READ, str(tmp_path / "model.pt")],
            capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) == float(
            sum(p.detach().double().sum() for p in model.parameters())
        )


READ_PRETRAINED = """
import sys
from transformers import GPT2LMHeadModel
model = GPT2LMHeadModel.from_pretrained(sys.argv[1])
assert model.lm_head.weight is model.transformer.wte.weight
assert not any(name.startswith("gossamer") for name in sys.modules)
print(float(sum(p.detach().double().sum() for p in model.parameters())))
"""


def test_save_pretrained_writes_what_it_writes_without(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    size = {"vocab_size": 64, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 4}
    tokens = torch.arange(16).reshape(2, 8)
    keys: dict[str, set[str]] = {}
    sums: dict[str, float] = {}
    for name in ("with", "without"):
        torch.manual_seed(0)
        model = GPT2LMHeadModel(GPT2Config(**size, bos_token_id=0, eos_token_id=0))
        optimizer = AdamW(model.parameters())
        if name == "with":
            Gossip(model, optimizer)
        for _ in range(2):
            optimizer.zero_grad()
            model(input_ids=tokens, labels=tokens).loss.backward()
            optimizer.step()
        model.save_pretrained(tmp_path / name)
        keys[name] = set(safetensors.torch.load_file(tmp_path / name / "model.safetensors"))
        sums[name] = float(sum(p.detach().double().sum() for p in model.parameters()))
    assert keys["with"] == keys["without"]
    with_gossip, without = (
        (tmp_path / name / "model.safetensors").stat().st_size for name in ("with", "without")
    )
    assert abs(with_gossip - without) <= SLACK_BYTES
    done = subprocess.run(
        [sys.executable, "-c", READ_PRETRAINED, str(tmp_path / "with")],
        capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == sums["with"]


def test_load_in_inference_mode_leaves_a_model_that_trains(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Linear(7, 3))
    optimizer = AdamW(model.parameters())
    gossip = Gossip(model, optimizer)
    train(model, optimizer, range(2))
    gossip.save(tmp_path)
    with torch.inference_mode():
        gossip.load(tmp_path)
    train(model, optimizer, range(2, 4))
    gossip.close()
    train(model, optimizer, range(4, 5))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_any_default_dtype(dtype: torch.dtype) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        model, plain = pair(lambda: nn.Linear(5, 3, dtype=torch.float64))
        optimizer, reference = AdamW(model.parameters()), AdamW(plain.parameters())
        with Gossip(model, optimizer, **FUSED) as gossip:
            assert gossip.is_fused
            for side, steps in ((model, optimizer), (plain, reference)):
                for step in range(3):
                    steps.zero_grad()
                    loss_of(side, batch(step).double()).backward()
                    steps.step()
        assert torch.allclose(model.weight, plain.weight, rtol=1e-12)
    finally:
        torch.set_default_dtype(before)


def test_a_default_device_does_not_matter() -> None:
    model = mlp()
    optimizer = AdamW(model.parameters())
    with torch.device("meta"), Gossip(model, optimizer, **FUSED) as gossip:
        assert gossip.is_fused


def test_what_is_frozen_may_be_of_any_kind_and_leaves_the_rest_fused() -> None:
    model = mlp()
    model.register_parameter(
        "quantised", nn.Parameter(torch.ones(3, dtype=torch.int8), requires_grad=False)
    )
    model.register_parameter(
        "base", nn.Parameter(torch.ones(3, dtype=torch.bfloat16), requires_grad=False)
    )
    optimizer = AdamW(model.parameters())
    with Gossip(model, optimizer, **FUSED) as gossip:
        train(model, optimizer, range(2))
        assert gossip.is_fused
    assert any(model.base is p for p in optimizer.param_groups[0]["params"])
    assert model.base not in optimizer.state


def test_a_parameter_that_stands_twice_is_named() -> None:
    model = mlp()
    with pytest.warns(UserWarning, match="duplicate"):
        optimizer = SGD([*model.parameters(), model[0].weight], lr=0.1)
    with pytest.raises(ValueError, match=r"parameter '0\.weight' stands twice"):
        Gossip(model, optimizer)


def test_parameters_that_overlap_are_refused_and_ties_to_what_is_frozen_hold() -> None:
    whole = torch.randn(6, 5)
    model = nn.ParameterDict({"whole": nn.Parameter(whole), "part": nn.Parameter(whole[2:4])})
    with pytest.raises(ValueError, match="'whole' and 'part' share memory"):
        Gossip(model, SGD(model.parameters(), lr=0.1))
    model["part"].requires_grad_(False)
    optimizer = SGD(model.parameters(), lr=0.1)
    with Gossip(model, optimizer):
        model["whole"].square().sum().backward()
        optimizer.step()
    assert torch.equal(model["part"], model["whole"][2:4])


def test_sgd_takes_sparse_gradients() -> None:
    model, plain = pair(lambda: nn.Embedding(9, 4, sparse=True))
    for side, gossips in ((model, True), (plain, False)):
        optimizer = SGD(side.parameters(), lr=0.1)
        if gossips:
            Gossip(side, optimizer)
        for step in range(3):
            optimizer.zero_grad()
            side(torch.tensor([step, 4])).square().sum().backward()
            optimizer.step()
    assert torch.allclose(model.weight, plain.weight, rtol=1e-6)


def test_a_model_may_change_its_dtype_between_steps() -> None:
    model, plain = pair()
    for side, gossips in ((model, True), (plain, False)):
        optimizer = SGD(side.parameters(), lr=0.1)
        if gossips:
            Gossip(side, optimizer)
        train(side, optimizer, range(2))
        side.double()
        optimizer.zero_grad()
        loss_of(side, batch(2).double()).backward()
        optimizer.step()
    assert model[0].weight.dtype == torch.float64
    assert torch.allclose(model[0].weight, plain[0].weight, rtol=1e-5)
