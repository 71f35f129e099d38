"""Small models and training loops for the tests of gossamer.Gossip; import it before gossamer."""

import copy
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, os.environ.get("GOSSAMER_PYTHON_PATH", str(ROOT / "build" / "python")))

import torch  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from torch import nn  # noqa: E402

Make = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
FUSED: dict[str, Any] = {"pattern": "push_sum"}
"""With it the engine steps for a worker alone, too, see Note [A worker alone]."""


def mlp(seed: int = 0, inputs: int = 5, hidden: int = 7, outputs: int = 3) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


def pair(make_model: Callable[[], nn.Module] = mlp) -> tuple[nn.Module, nn.Module]:
    """The same model twice."""
    model = make_model()
    return model, copy.deepcopy(model)


def batch(step: int, rank: int = 0, rows: int = 4, inputs: int = 5) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * rank + step + 1)
    return torch.randn(rows, inputs, generator=generator)


def loss_of(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x).square().mean() + model(x).sin().mean()


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, steps: Iterable[int], rank: int = 0
) -> None:
    """The plain loop, with a batch of its own for each step and rank."""
    for step in steps:
        optimizer.zero_grad()
        loss_of(model, batch(step, rank)).backward()
        optimizer.step()


def flat(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().double().flatten() for p in model.parameters()])


def difference(one: nn.Module, other: nn.Module) -> float:
    """max |x - y| / max |y| over all parameters."""
    x, y = flat(one), flat(other)
    return float((x - y).abs().max() / y.abs().max())


def gap(found: Any, expected: Any) -> float:
    """max |x - y| of two tensors, or lists of numbers, of one shape."""
    x, y = (torch.as_tensor(each, dtype=torch.float64) for each in (found, expected))
    assert x.shape == y.shape, (x.shape, y.shape)
    return float((x - y).abs().max())


def flat_numbers(tensors: Iterable[torch.Tensor]) -> list[float]:
    return torch.cat([each.detach().double().flatten() for each in tensors]).tolist()


def same_state(one: torch.optim.Optimizer, other: torch.optim.Optimizer, within: float) -> bool:
    """Whether two optimizers' state_dicts hold the same entries, with values that near."""
    left, right = one.state_dict()["state"], other.state_dict()["state"]
    if left.keys() != right.keys():
        return False
    for key, entry in right.items():
        if left[key].keys() != entry.keys():
            return False
        for name, value in entry.items():
            scale = float(value.double().abs().max()) + 1e-12
            gap = float((left[key][name].double() - value.double()).abs().max())
            if left[key][name].shape != value.shape or gap > within * scale:
                return False
    return True


Content = tuple[dict[str, torch.Tensor], dict[str, Any]]


def newest(folder: Path) -> Path:
    """The checkpoint that was saved last."""
    return folder / (folder / "latest").read_text().strip()


def rewrite(
    folder: Path, rank: int, change: Callable[[dict[str, torch.Tensor], dict[str, Any]], Content]
) -> None:
    """Another content in a worker's file of a checkpoint, of which the manifest says that it is so:
    what somebody can do who gives it away. The file is read and written by the original library."""
    checkpoint = newest(folder)
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    card = manifest["files"][rank]
    path = checkpoint / card["name"]
    with safe_open(path, framework="pt") as file:
        tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118
        document = json.loads(file.metadata()["document"])
    tensors, document = change(tensors, document)
    save_file(tensors, path, metadata={"document": json.dumps(document)})
    data = path.read_bytes()
    card.update(bytes=len(data), crc32=f"{zlib.crc32(data):08x}")
    seal(checkpoint, manifest)


def seal(checkpoint: Path, manifest: dict[str, Any]) -> None:
    """Writes a manifest with the checksum that it should have."""
    kept = {key: value for key, value in manifest.items() if key != "checksum"}
    body = json.dumps(kept, indent=2)[:-2] + ",\n"
    checksum = f"{zlib.crc32(body.encode()):08x}"
    (checkpoint / "manifest.json").write_text(f'{body}  "checksum": "{checksum}"\n}}\n')


def names_in(place: Path) -> list[str]:
    """Without the lock of a job that still runs."""
    return sorted(path.name for path in place.iterdir() if path.name != ".lock")
