"""One worker's file of a checkpoint: safetensors, with JSON in its header for what is no tensor."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from gossamer._core import IoError
from gossamer.base import files
from gossamer.tensors import plain
from gossamer.tensors.parameters import Named

_CHUNK_BYTES = 1 << 20
PATTERN = "pattern/"
BROKEN = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError),
    *(OverflowError, RecursionError, RuntimeError, SafetensorError),
)
"""What comes of a file that does not hold what it should."""


@dataclass
class Content:
    """What a file holds: tensors by key, and a JSON document that refers to them.

    Keys: ``parameter/NAME`` and ``buffer/NAME``, ``state/I/...`` for the optimizer's state of its
    parameter number I, ``group/I/...`` for its parameter group I, ``sent/I`` for what travels of a
    parameter that is mixed in a wider dtype than its own, ``pattern/NAME/VECTOR/I`` for a state
    vector of the pattern. Complex tensors are kept as real
    views with a last dimension of 2; the document lists them under ``complex``.
    """

    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    _addresses: set[int] = field(default_factory=set)

    def put(self, key: str, tensor: torch.Tensor) -> None:
        """Takes a tensor by reference where that is possible."""
        if tensor.layout != torch.strided or type(tensor) not in (torch.Tensor, nn.Parameter):
            raise ValueError(
                f"[Gossip] save() keeps dense plain tensors, got {key} of {type(tensor).__name__} "
                f"with layout {tensor.layout}; save this model with torch.distributed.checkpoint"
            )
        tensor = tensor.detach()
        if tensor.is_complex():
            self.document["complex"].append(key)
            tensor = torch.view_as_real(tensor.resolve_conj())
        tensor = tensor.resolve_neg().cpu().contiguous()
        if tensor.data_ptr() in self._addresses:  # the format has each byte once
            tensor = tensor.clone()
        self._addresses.add(tensor.data_ptr())
        self.tensors[key] = tensor


def pattern_key(pattern: str, vector: str, number: int) -> str:
    """Of a state vector of a pattern, for parameter ``number``."""
    return f"{PATTERN}{pattern}/{vector}/{number}"


# Values of any nesting.


def pack(value: Any, key: str, content: Content) -> Any:
    """A value as JSON; tensors go into the content. ValueError for what has no such form."""
    if isinstance(value, torch.Tensor):
        content.put(key, value)
        return {"tensor": key, "on_cpu": value.device.type == "cpu"}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        items = [pack(each, f"{key}/{i}", content) for i, each in enumerate(value)]
        return {"tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, dict) and all(isinstance(name, str | int) for name in value):
        return {"dict": [[n, pack(each, f"{key}/{n}", content)] for n, each in value.items()]}
    raise ValueError(
        "[Gossip] save() keeps tensors, numbers, texts, lists, tuples and dicts of the optimizer, "
        f"got {type(value).__name__} at {key}; remove it before, or save it beside"
    )


def unpack(packed: Any, read: Callable[[str], torch.Tensor], device: torch.device) -> Any:
    """What ``pack`` was given; tensors that were not on the CPU go to ``device``."""
    if isinstance(packed, list):
        return [unpack(each, read, device) for each in packed]
    if not isinstance(packed, dict):
        return packed
    if "tensor" in packed:
        tensor = read(packed["tensor"])
        return tensor if packed["on_cpu"] else tensor.to(device)
    if "tuple" in packed:
        return tuple(unpack(each, read, device) for each in packed["tuple"])
    return {name: unpack(each, read, device) for name, each in packed["dict"]}


# A model and its optimizer.


def model_tensors(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Key and tensor for each parameter and buffer, also buffers that state_dict leaves out."""
    for kind, named in (
        ("parameter", model.named_parameters()),
        ("buffer", model.named_buffers()),
    ):
        for name, tensor in named:
            for key, piece in plain.pieces(name.replace("_orig_mod.", ""), tensor):
                yield f"{kind}/{key}", piece


def collect(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    named: Sequence[Named],
    sent: Mapping[int, torch.Tensor],
) -> Content:
    """All that a worker has; tensors by reference. ValueError for what cannot be kept."""
    content = Content(document={"complex": [], "state": {}, "groups": []})
    for key, tensor in model_tensors(model):
        content.put(key, tensor)
    for number, tensor in sent.items():
        content.put(f"sent/{number}", tensor)
    numbers = {id(parameter): i for i, (_, parameter, _) in enumerate(named)}
    for owner, entry in optimizer.state.items():
        i = numbers.get(id(owner))
        if i is None:
            raise ValueError(
                "[Gossip] save() keeps the optimizer's state of its parameters, got an entry for "
                f"{type(owner).__name__}; save this optimizer's state_dict beside"
            )
        content.document["state"][str(i)] = pack(dict(entry), f"state/{i}", content)
    for i, group in enumerate(optimizer.param_groups):
        settings = {name: value for name, value in group.items() if name != "params"}
        content.document["groups"].append(pack(settings, f"group/{i}", content))
    return content


def restore(
    document: dict[str, Any],
    read: Callable[[str], torch.Tensor],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    named: Sequence[Named],
) -> None:
    """Puts it all back: the model's values in place, the optimizer's state as new tensors."""
    complex_keys = set(document["complex"])

    def read_number(key: str) -> torch.Tensor:
        tensor = read(key)
        return torch.view_as_complex(tensor) if key in complex_keys else tensor

    with torch.no_grad():
        for key, tensor in model_tensors(model):
            tensor.copy_(read_number(key))
    optimizer.state.clear()
    for i, entry in document["state"].items():
        parameter = named[int(i)][1]
        optimizer.state[parameter] = unpack(entry, read_number, parameter.device)
    for group, settings in zip(optimizer.param_groups, document["groups"], strict=True):
        device = next((p.device for p in group["params"]), torch.device("cpu"))
        values = unpack(settings, read_number, device)
        if "params" in values:
            raise ValueError("a group's settings have its parameters, which no file may replace")
        group.update(values)


# Files.


def write(path: Path, content: Content) -> None:
    """The file, on the disk when this returns, beside its name first."""
    aside = path.with_suffix(".tmp")
    try:
        save_file(content.tensors, aside, metadata={"document": json.dumps(content.document)})
        files.sync(aside)
        aside.replace(path)
    except SafetensorError as error:  # what it makes of a full disk
        raise OSError(str(error)) from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
    files.sync(path.parent)


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with files.opened(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def opened(path: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    """The document, and a reader with ``keys()`` and ``get_tensor(key)``. A file that is none of
    ours, or lacks what is asked for, is an IoError."""
    try:
        with safe_open(path, framework="pt") as file:
            yield files.parse_json(file.metadata()["document"]), file
    except BROKEN as error:
        raise IoError(
            f"[Gossip] {path} does not hold what a worker has, got {type(error).__name__} "
            f"{files.printable(error)}; take another checkpoint"
        ) from error
