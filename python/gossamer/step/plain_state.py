"""A state_dict as JSON, and back: reading one runs nothing.

None, truth values, whole numbers, finite floats, texts and lists are JSON's own. Anything else is
an object {"kind": ..., "of": ...}.
"""

from __future__ import annotations

import base64
import collections
import ctypes
import math
from collections.abc import Callable
from typing import Any

import torch

_DICTIONARIES: dict[str, type[dict[Any, Any]]] = {
    "dict": dict,
    "OrderedDict": collections.OrderedDict,
    "Counter": collections.Counter,
}


def to_json(value: Any) -> Any:
    """TypeError for what has no such form."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else _object("float", str(value))
    if type(value) is list:
        return [to_json(each) for each in value]
    if type(value) is tuple:
        return _object("tuple", [to_json(each) for each in value])
    for kind, each in _DICTIONARIES.items():
        if type(value) is each:
            return _object(kind, [[to_json(k), to_json(v)] for k, v in value.items()])
    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        return _object("tensor", _tensor_to_json(value.detach().cpu()))
    raise TypeError(f"no plain form for {type(value).__module__}.{type(value).__qualname__}")


def is_plain(value: Any) -> bool:
    """Whether it has such a form."""
    try:
        to_json(value)
    except TypeError:
        return False
    return True


def from_json(value: Any) -> Any:
    """The inverse; ValueError for what ``to_json`` does not write."""
    try:
        return _read(value)
    except (KeyError, TypeError, AttributeError, RuntimeError, ValueError) as error:
        raise ValueError(f"no plain state: {error!r}") from error


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(each) for each in value]
    return _KINDS[value["kind"]](value["of"]) if isinstance(value, dict) else value


def _object(kind: str, of: Any) -> dict[str, Any]:
    return {"kind": kind, "of": of}


def _tensor_to_json(tensor: torch.Tensor) -> dict[str, Any]:
    whole = tensor.contiguous()
    octets = ctypes.string_at(whole.data_ptr(), whole.nbytes)
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "bytes": base64.b64encode(octets).decode(),
    }


def _read_tensor(of: dict[str, Any]) -> torch.Tensor:
    dtype = getattr(torch, of["dtype"])
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"{of['dtype']} is no type of tensors")
    octets = bytearray(base64.b64decode(of["bytes"], validate=True))
    if not octets:
        return torch.empty(of["shape"], dtype=dtype)
    return torch.frombuffer(octets, dtype=dtype).reshape(of["shape"])


def _dictionary(make: type[dict[Any, Any]]) -> Callable[[Any], Any]:
    return lambda of: make({_read(key): _read(each) for key, each in of})


_KINDS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "tuple": lambda of: tuple(_read(each) for each in of),
    "tensor": _read_tensor,
    **{kind: _dictionary(make) for kind, make in _DICTIONARIES.items()},
}
