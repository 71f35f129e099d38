"""The plain tensors of which any tensor consists: what is sent and saved of it.

Note [Pieces]: a dense tensor is one piece, a view of its own memory. An expanded one is the
elements that it has once; a sparse one its indices and its values; a wrapper subclass, such as a
quantised weight, the tensors inside of it. Whoever writes into the pieces changes the tensor.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterable
from typing import Any

import torch

from gossamer.tensors import shards

Piece = tuple[str, torch.Tensor]
"""A name and a strided tensor without Python of its own, of which no two elements are one."""

_INDICES = {
    torch.sparse_coo: ("_indices",),
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}


def pieces(name: str, tensor: Any) -> list[Piece]:
    """The pieces of one tensor; of one that is spread over ranks, of what is here.

    Raises ValueError, with the name, for one whose values cannot be reached.
    """
    tensor = shards.local_of(tensor).detach()
    inner = _inner(tensor)
    if inner:
        return [piece for key, part in inner for piece in pieces(f"{name}.{key}", part)]
    if tensor.is_meta:
        raise _refused(name, tensor, "load or initialise it before")
    if tensor.layout in _INDICES:
        parts = [
            (f"{name}.{key.strip('_')}", getattr(tensor, key)()) for key in _index_keys(tensor)
        ]
        return [*parts, (f"{name}.values", _values(tensor))]
    if tensor.layout != torch.strided:
        raise _refused(name, tensor, "convert it with to_dense(), or leave it out of the model")
    if type(tensor) is not torch.Tensor:
        if _dispatches(tensor) and not _has_memory(tensor):
            raise _refused(name, tensor, "give its class __tensor_flatten__, which names them")
        tensor = tensor.as_subclass(torch.Tensor)
    return [(name, _each_once(tensor))]


def with_mean(name: str, tensor: torch.Tensor) -> list[Piece]:
    """The pieces of which a mean over workers makes sense: all, or the values of a sparse tensor,
    where they are floating-point numbers; none of others, such as of a quantised one."""
    found = pieces(name, tensor)
    if tensor.layout in _INDICES:
        found = found[-1:]
    return found if all(piece.is_floating_point() for _, piece in found) else []


def describe(name: str, tensor: Any) -> list[str]:
    """A line per piece, that must be the same on all workers: name, shape, dtype."""
    place = shards.place_of(tensor)
    found = [(name, tensor)] if place else pieces(name, tensor)
    if len(found) == 1:
        found = [(name, tensor)]
    return [
        f"'{key}' {list(piece.shape)} {str(piece.dtype).removeprefix('torch.')}{place}"
        for key, piece in found
    ]


def describe_mean(name: str, tensor: torch.Tensor) -> list[str]:
    """As ``describe`` for ``with_mean``; also where the values of a sparse tensor are."""
    if not with_mean(name, tensor):
        return []
    where = ""
    if tensor.layout in _INDICES:
        digest = hashlib.sha256()
        for _, indices in pieces(name, tensor)[:-1]:
            digest.update(bytes_of(indices))
        where = f" at indices with the sha256 {digest.hexdigest()[:16]}"
    return [line + where for line in describe(name, tensor)]


def bytes_of(tensor: torch.Tensor) -> bytes:
    """A copy of its elements' memory; by torch alone, for numpy need not be there."""
    values = tensor.detach().cpu().contiguous()
    return ctypes.string_at(values.data_ptr(), values.nbytes)


def of_all(named: Iterable[tuple[str, torch.Tensor]]) -> list[torch.Tensor]:
    """The pieces of all, without their names."""
    return [piece for name, tensor in named for _, piece in pieces(name, tensor)]


def _dispatches(tensor: torch.Tensor) -> bool:
    """Whether its class answers for torch's operations itself."""
    own: Any = type(tensor).__torch_dispatch__
    return own is not torch.Tensor.__torch_dispatch__


def _has_memory(tensor: torch.Tensor) -> bool:
    """Whether it is not only a wrapper around what has."""
    try:
        return tensor.data_ptr() != 0
    except RuntimeError:
        return False


def _inner(tensor: torch.Tensor) -> list[Piece]:
    if not _dispatches(tensor):
        return []
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is not None:
        return [(key, getattr(tensor, key)) for key in flatten()[0]]
    return [(key, value) for key, value in vars(tensor).items() if isinstance(value, torch.Tensor)]


def _index_keys(tensor: torch.Tensor) -> tuple[str, ...]:
    return _INDICES[tensor.layout]


def _values(tensor: torch.Tensor) -> torch.Tensor:
    return tensor._values() if tensor.layout == torch.sparse_coo else tensor.values()


def _each_once(tensor: torch.Tensor) -> torch.Tensor:
    """A view of the elements in which none comes twice."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    once = tensor[tuple(slice(0, 1) if stride == 0 else slice(None) for _, stride in sizes)]
    if tensor.dim() == 0 or torch._debug_has_internal_overlap(once) != 1:
        steps = sorted((st, n) for n, st in zip(once.shape, once.stride(), strict=True) if n > 1)
        reach = 0
        for stride, size in steps:
            if stride <= reach:
                break
            reach += stride * (size - 1)
        else:
            return once
    last = sum(st * (n - 1) for n, st in zip(once.shape, once.stride(), strict=True))
    return once.as_strided((last + 1,), (1,), once.storage_offset())


def _refused(name: str, tensor: torch.Tensor, remedy: str) -> ValueError:
    return ValueError(
        f"[Gossip] the values of '{name}' cannot be sent to the other ranks, got a "
        f"{type(tensor).__name__} with layout {tensor.layout} on {tensor.device}; {remedy}"
    )
