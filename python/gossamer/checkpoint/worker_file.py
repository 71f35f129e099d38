"""One worker's file of a checkpoint: tensors by the names of what they belong to, and a document of
what is no tensor. docs/checkpoint.md has the format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import nn

from gossamer import _core
from gossamer._core import IoError
from gossamer.base import files
from gossamer.step.carried import Carried
from gossamer.tensors import plain, shards
from gossamer.tensors.names import own_name
from gossamer.tensors.optimizers import Optimizers
from gossamer.tensors.trained import Trained

Document = dict[str, Any]

_DOCUMENT = "document"
_BROKEN = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError),
    *(OverflowError, RecursionError, RuntimeError),
)
"""What comes of a document that does not hold what it should."""


# What a manifest says of it.


def optimizer_word(trained: Trained) -> str:
    """The row of the engine's table that does what the optimizer does, else its class's name; of
    several optimizers their classes' names in order."""
    kind = trained.optimizers.kind
    return trained.optimizers.word if kind is None else kind.name


def model_lines(trained: Trained) -> list[str]:
    """A line for each tensor of the model, in the model's order."""
    return [
        f"{kind} {line}"
        for kind, name, tensor in _of_model(trained.model)
        for line in plain.describe(name, tensor)
    ]


def _of_model(model: nn.Module) -> Iterator[tuple[str, str, torch.Tensor]]:
    """Kind, name and tensor of each parameter and buffer, also buffers that state_dict leaves
    out."""
    for name, parameter in model.named_parameters():
        yield "parameter", own_name(name), parameter
    for name, buffer in model.named_buffers():
        yield "buffer", own_name(name), buffer


def model_tensors(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Key and tensor for all of them."""
    keys = {"parameter": _core.parameter_key, "buffer": _core.buffer_key}
    for kind, name, tensor in _of_model(model):
        for piece, values in plain.pieces(name, tensor):
            yield keys[kind](piece), values


def beside_tensors(trained: Trained) -> Iterator[tuple[str, torch.Tensor]]:
    """Key and tensor of what is given to be mixed beside the parameters."""
    for name, tensor, _ in trained.wanted.given:
        yield _core.beside_key(name), tensor


def _tensors(trained: Trained) -> Iterator[tuple[str, torch.Tensor]]:
    yield from model_tensors(trained.model)
    yield from beside_tensors(trained)


# Writing.


@dataclass
class Content:
    """What a file holds: tensors by key, and a JSON document that refers to them.

    Complex tensors are kept as real views with a last dimension of 2; the document lists them under
    ``complex``. ``optimizer`` has the entries of the optimizer's state by the parameter's name,
    ``groups`` the settings of each group with the names of its parameters.
    """

    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    document: Document = field(
        default_factory=lambda: {"complex": [], "optimizer": {}, "groups": []}
    )

    def put(self, key: str, tensor: torch.Tensor) -> None:
        """Takes a tensor by reference where that is possible."""
        is_plain = type(tensor) in (torch.Tensor, nn.Parameter) or shards.is_sharded(tensor)
        if tensor.layout != torch.strided or not is_plain:
            raise ValueError(
                f"[Gossip] save() keeps dense plain tensors, got {key} of {type(tensor).__name__} "
                f"with layout {tensor.layout}; save this model with torch.distributed.checkpoint"
            )
        tensor = shards.local_of(tensor).detach()
        if tensor.is_complex():
            self.document["complex"].append(key)
            tensor = torch.view_as_real(tensor.resolve_conj())
        self.tensors[key] = tensor.resolve_neg().cpu().contiguous()

    @property
    def nbytes(self) -> int:
        """Of the file, but for some hundred per tensor."""
        return sum(tensor.nbytes for tensor in self.tensors.values()) + len(
            json.dumps(self.document)
        )

    def write(self, temporary: str, rank: int) -> tuple[int, int]:
        """Length and checksum of the file, which is on the disk then."""
        metadata = {_DOCUMENT: json.dumps(self.document)}
        return _core.write_worker_file(temporary, rank, list(self.tensors.items()), metadata)


def pack(value: Any, key: str, content: Content) -> Any:
    """A value as JSON; tensors go into the content. ValueError for what has no such form."""
    if isinstance(value, torch.Tensor):
        content.put(key, value)
        packed = {"tensor": key, "on_cpu": value.device.type == "cpu"}
        return {**packed, "is_shard": True} if shards.is_sharded(value) else packed
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


def collect(trained: Trained, carried: Carried, pattern: str) -> Content:
    """All that a worker has; tensors by reference. ValueError for what cannot be kept."""
    content = Content()
    for key, tensor in _tensors(trained):
        content.put(key, tensor)
    for name, tensor in carried.mixed.items():
        content.put(_core.mixed_key(name), tensor)
    for (vector, name), tensor in carried.state.items():
        content.put(_core.pattern_key(pattern, vector, name), tensor)
    names = {id(parameter): name for name, parameter, _ in trained.everything()}
    for owner, entry in trained.optimizers.states():
        if id(owner) not in names:
            raise ValueError(
                "[Gossip] save() keeps the optimizer's state of its parameters, got an entry for "
                f"{type(owner).__name__}; save this optimizer's state_dict beside"
            )
        name = names[id(owner)]
        key = _core.optimizer_key(name).removesuffix("/")
        content.document["optimizer"][name] = pack(dict(entry), key, content)
    for i, group in enumerate(trained.optimizers.param_groups):
        settings = {name: value for name, value in group.items() if name != "params"}
        content.document["groups"].append(
            {
                "parameters": [names[id(parameter)] for parameter in group["params"]],
                "settings": pack(settings, _core.group_key(i), content),
            }
        )
    return content


# Reading.


class Source(Protocol):
    """A file that is read, or several as one."""

    document: Document

    def keys(self) -> list[str]:
        """Of the tensors."""

    def tensor(self, key: str) -> torch.Tensor:
        """Which nobody must write into. IoError where there is none."""


class WorkerFile:
    """A worker's file in memory."""

    def __init__(self, file: _core.TensorFile) -> None:
        self.document: Document = files.parse_json(file.metadata.get(_DOCUMENT, "{}"))
        self.keys = file.keys
        self.tensor = file.tensor


@contextmanager
def understood(path: str) -> Iterator[None]:
    """What a file holds that no worker has written is an IoError."""
    try:
        yield
    except _BROKEN as error:
        raise IoError(
            f"[{path}] does not hold what a worker has, got {type(error).__name__} "
            f"{files.printable(error)}; take another checkpoint"
        ) from error


@dataclass(frozen=True)
class Restored:
    """What a source has for a model and its optimizers, which are as they were until ``put``."""

    values: list[tuple[str, torch.Tensor]]
    state: list[tuple[torch.Tensor, Document]]
    settings: list[tuple[dict[str, Any], Document]]
    read: Callable[[str], torch.Tensor]

    def put(self, optimizers: Optimizers) -> None:
        """The values in place, the optimizers' state as new tensors."""
        with torch.no_grad():
            for key, tensor in self.values:
                tensor.copy_(self.read(key))
        optimizers.replace_states(self.state)
        for group, settings in self.settings:
            group.update(settings)


def restored(source: Source, trained: Trained) -> Restored:
    """Raises one of the errors of ``understood``, or IoError, for what does not fit."""
    complex_keys = set(source.document.get("complex", []))

    def read(key: str) -> torch.Tensor:
        tensor = source.tensor(key)
        return torch.view_as_complex(tensor) if key in complex_keys else tensor

    values = list(_tensors(trained))
    for key, tensor in values:
        found = read(key)
        if (found.shape, found.dtype) != (tensor.shape, tensor.dtype):
            raise ValueError(
                f"{key} of {list(found.shape)} {found.dtype} for {list(tensor.shape)} "
                f"{tensor.dtype}"
            )
    return Restored(
        values, list(_states(source, trained, read)), list(_settings(source, trained, read)), read
    )


def _states(
    source: Source, trained: Trained, read: Callable[[str], torch.Tensor]
) -> Iterator[tuple[torch.Tensor, Document]]:
    """Where the document does not say what an entry is, it is the tensors of the parameter."""
    parameters = {name: parameter for name, parameter, _ in trained.everything()}
    written = source.document.get("optimizer", {})
    for name, entry in written.items():
        parameter = parameters[name]
        yield parameter, _as_entry(unpack(entry, read, parameter))
    keys = source.keys()
    for name in parameters.keys() - written.keys():
        prefix = _core.optimizer_key(name)
        of_it = [key for key in keys if key.startswith(prefix)]
        vectors = {key.removeprefix(prefix): read(key).clone() for key in of_it}
        plain_entry = {vector: value for vector, value in vectors.items() if "/" not in vector}
        if plain_entry:
            yield parameters[name], plain_entry


def _as_entry(value: Any) -> Document:
    if not isinstance(value, dict):
        raise TypeError(f"a state that is {type(value).__name__}")
    return value


def _settings(
    source: Source, trained: Trained, read: Callable[[str], torch.Tensor]
) -> Iterator[tuple[dict[str, Any], Document]]:
    """A group has the settings of the one with the same parameters; without any, its own."""
    saved = list(source.document.get("groups", []))
    names = {id(parameter): name for name, parameter, _ in trained.everything()}
    for group in trained.optimizers.param_groups if saved else ():
        own = {names[id(parameter)] for parameter in group["params"]}
        found = next((each for each in saved if set(each["parameters"]) == own), None)
        if found is None:
            raise ValueError(
                f"no group of the parameters {', '.join(sorted(own))}; make the optimizer's groups "
                "as they were when it was saved"
            )
        saved.remove(found)
        first = next(iter(group["params"]), torch.empty(0))
        settings = _as_entry(unpack(found["settings"], read, first))
        if "params" in settings:
            raise ValueError("a group's settings have its parameters, which no file may replace")
        yield group, settings


def unpack(packed: Any, read: Callable[[str], torch.Tensor], parameter: torch.Tensor) -> Any:
    """What ``pack`` was given, as new tensors; those that were not on the CPU go to the device of
    ``parameter``, and shards are spread as it is."""
    if isinstance(packed, list):
        return [unpack(each, read, parameter) for each in packed]
    if not isinstance(packed, dict):
        return packed
    if "tensor" in packed:
        tensor = read(packed["tensor"]).clone()
        if not packed["on_cpu"]:
            tensor = tensor.to(parameter.device)
        return shards.like(parameter, tensor) if packed.get("is_shard") else tensor
    if "tuple" in packed:
        return tuple(unpack(each, read, parameter) for each in packed["tuple"])
    return {name: unpack(each, read, parameter) for name, each in packed["dict"]}
