"""A process group of torch whose collective calls go on without those that are lost.

Note [Standing in]: callers of ``torch.distributed`` count on as many values as there are ranks: a
gather has a place for each, and a sum of ones is their number. So for each rank that is lost
another one stands in: the next lower one that is left, in a circle. Shapes stay what they were,
means and ratios of sums stay near. The calls go over the connections of a Gossip with
lost="go_on", from when there is one. Every rank hears what all say, so this is for numbers, texts
and predictions, not for gradients.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future  # type: ignore[attr-defined]
from torch.futures import Future

from gossamer.workers import gloo_edges, members, start_places

NAME = "gossamer"
DEVICES = ["cpu", "cuda"]

Say = Callable[[str, bytes], Sequence[bytes]]
"""An operation and what this rank says in it: what each rank says, of those lost nothing."""

_ways: list[tuple[int, Say]] = []


def go_by(size: int, say: Say) -> None:
    """From now on groups of so many ranks go by this way."""
    _ways.append((size, say))


def go_no_more_by(say: Say) -> None:
    _ways[:] = [way for way in _ways if way[1] != say]


def register() -> None:
    """Torch knows it by its name."""
    if not hasattr(dist.Backend, NAME.upper()):
        dist.Backend.register_backend(NAME, _group, devices=DEVICES)


def is_in_use() -> bool:
    """Whether torch's default group is one of these."""
    return dist.is_initialized() and dist.get_backend() == NAME


def _group(store: dist.Store, rank: int, size: int, timeout: Any) -> Any:
    """As torch calls it. A part of the job is a group of Gloo's alone: nobody in it can be lost
    without the others of that part."""
    if members.is_coming_back():
        return LastingGroup(rank, size, None)
    address = start_places.gloo_address()
    if dist.is_initialized() and size < dist.get_world_size():
        return gloo_edges.of_all(store, rank, size, address, timeout)
    begins = members.how_many_begin(size)
    return LastingGroup(rank, size, gloo_edges.of_all(store, rank, begins, address, timeout))


def _or_as_before(call: Callable[..., Any]) -> Callable[..., Any]:
    """A method that is given a way; as long as there is none, it is that of the group before, whose
    options have defaults."""

    @functools.wraps(call)
    def method(self: LastingGroup, *args: Any, **named: Any) -> Any:
        say = self.way()
        if say is None:
            return self.as_before(call.__name__, *args, **named)
        return call(self, say, *args, **named)

    return method


class LastingGroup(dist.ProcessGroup):
    """See Note [Standing in]. ``before``: whose the calls are until there is such a Gossip. None:
    this rank has come back, and the others do not know it in theirs."""

    def __init__(self, rank: int, size: int, before: object | None) -> None:
        super().__init__(rank, size)
        self._here = rank
        self._count = size
        self._before = before
        self._has_gone_by = False
        self._name = ""
        if before is not None:  # DTensors call it past the methods here
            for device in DEVICES:
                self._register_backend(torch.device(device), self.BackendType.GLOO, before)

    def getBackendName(self) -> str:  # noqa: N802
        return NAME

    def setGroupName(self, name: str) -> None:  # noqa: N802
        self._name = name  # by which a mesh finds it again; torch asks the backends, if any

    def getGroupName(self) -> str:  # noqa: N802
        return self._name

    def way(self) -> Say | None:
        """None: the group that was there before."""
        ways = [say for size, say in _ways if size == self._count]
        if ways:
            self._has_gone_by = True
            return ways[-1]
        if self._has_gone_by:
            raise RuntimeError(
                "[Gossip] collective calls of torch.distributed go by the Gossip with "
                "lost='go_on', which was closed; close it after the last of them"
            )
        if self._before is None:
            raise RuntimeError(
                "[Gossip] this worker has come back, so it is in no process group of the others, "
                "and before its Gossip is made a collective call of torch.distributed would reach "
                "nobody; make the Gossip first, or leave the call out where GOSSAMER_RESTARTS is "
                "above 0"
            )
        return None

    def _said(self, operation: str, say: Say, data: bytes) -> list[bytes]:
        """What each rank says, or who stands in for it."""
        said = say(f"torch.distributed {operation}", b"." + data)
        present = [rank for rank, each in enumerate(said) if each]
        by = [_stands_in(rank, present, self._count) for rank in range(self._count)]
        return [said[rank][1:] for rank in by]

    def _tensors(self, operation: str, say: Say, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The same of tensors of one shape."""
        dense = tensor.detach().cpu().contiguous()
        said = self._said(operation, say, _bytes_of(dense))
        for rank, data in enumerate(said):
            if len(data) != dense.nbytes:
                raise ValueError(
                    f"[Gossip] all ranks must give {operation} of torch.distributed tensors of one "
                    f"size, got {dense.nbytes} bytes on rank {self._here} and {len(data)} bytes on "
                    f"rank {rank}"
                )
        return [_tensor_of(data, dense) for data in said]

    # The collective calls, by torch's names of the methods.

    @_or_as_before
    def allreduce(self, say: Say, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        for tensor in tensors:
            every = self._tensors("all_reduce", say, tensor)
            tensor.detach().copy_(_reduced(every, opts))
        return _done(tensors)

    @_or_as_before
    def allreduce_coalesced(self, say: Say, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        return self.allreduce(tensors, opts)

    @_or_as_before
    def reduce(self, say: Say, tensors: list[torch.Tensor], opts: Any) -> Any:
        for tensor in tensors:
            every = self._tensors("reduce", say, tensor)
            if opts.rootRank == self._here:
                tensor.detach().copy_(_reduced(every, opts))
        return _done(tensors)

    @_or_as_before
    def broadcast(self, say: Say, tensors: list[torch.Tensor], opts: Any) -> Any:
        for tensor in tensors:
            every = self._tensors("broadcast", say, tensor)
            tensor.detach().copy_(every[opts.rootRank])
        return _done(tensors)

    @_or_as_before
    def allgather(
        self,
        say: Say,
        outputs: list[list[torch.Tensor]],
        inputs: list[torch.Tensor],
        opts: Any = None,
    ) -> Any:
        for places, tensor in zip(outputs, inputs, strict=True):
            _fill(places, self._tensors("all_gather", say, tensor))
        return _done(outputs)

    @_or_as_before
    def allgather_coalesced(
        self,
        say: Say,
        outputs: list[list[torch.Tensor]],
        inputs: list[torch.Tensor],
        opts: Any = None,
    ) -> Any:
        """``outputs`` by rank, and then by input."""
        for number, tensor in enumerate(inputs):
            _fill([each[number] for each in outputs], self._tensors("all_gather", say, tensor))
        return _done(outputs)

    @_or_as_before
    def _allgather_base(
        self, say: Say, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> Any:
        every = self._tensors("all_gather_into_tensor", say, tensor)
        output.detach().copy_(torch.cat([each.flatten() for each in every]).view(output.shape))
        return _done(output)

    all_gather_single = _allgather_base  # the name since torch 2.12

    @_or_as_before
    def gather(
        self, say: Say, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any
    ) -> Any:
        for number, tensor in enumerate(inputs):
            every = self._tensors("gather", say, tensor)
            if opts.rootRank == self._here:
                _fill(outputs[number], every)
        return _done(outputs)

    @_or_as_before
    def scatter(
        self, say: Say, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any
    ) -> Any:
        for number, output in enumerate(outputs):
            parts = torch.stack(inputs[number]) if inputs else output.new_empty(0)
            said = self._said("scatter", say, _bytes_of(parts.detach().cpu().contiguous()))
            like = output.detach().cpu().expand(self._count, *output.shape)
            output.detach().copy_(_tensor_of(said[opts.rootRank], like)[self._here])
        return _done(outputs)

    @_or_as_before
    def reduce_scatter(
        self,
        say: Say,
        outputs: list[torch.Tensor],
        inputs: list[list[torch.Tensor]],
        opts: Any = None,
    ) -> Any:
        for output, parts in zip(outputs, inputs, strict=True):
            every = self._tensors("reduce_scatter", say, torch.stack(parts))
            output.detach().copy_(_reduced(every, opts)[self._here])
        return _done(outputs)

    @_or_as_before
    def _reduce_scatter_base(
        self, say: Say, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> Any:
        every = self._tensors("reduce_scatter_tensor", say, tensor)
        parts = _reduced(every, opts).flatten().chunk(self._count)
        output.detach().copy_(parts[self._here].view(output.shape))
        return _done(output)

    reduce_scatter_single = _reduce_scatter_base  # the name since torch 2.12

    @_or_as_before
    def barrier(self, say: Say, opts: Any = None) -> Any:
        self._said("barrier", say, b"")
        return _done([])

    # Of two ranks: those go by the group that was there before.

    def send(self, *args: Any) -> Any:
        return self._of_two("send", *args)

    def recv(self, *args: Any) -> Any:
        return self._of_two("recv", *args)

    def recv_anysource(self, *args: Any) -> Any:
        return self._of_two("recv_anysource", *args)

    def alltoall(self, *args: Any) -> Any:
        return self._of_two("alltoall", *args)

    def alltoall_base(self, *args: Any) -> Any:
        return self._of_two("alltoall_base", *args)

    all_to_all_single = alltoall_base  # the name since torch 2.12

    def _of_two(self, name: str, *args: Any) -> Any:
        if self._before is None:
            raise RuntimeError(
                f"[Gossip] this worker has come back, so {name} of torch.distributed reaches "
                "nobody; use a collective call, or gossip.gather"
            )
        return self.as_before(name, *args)

    def as_before(self, name: str, *args: Any, **named: Any) -> Any:
        return getattr(self._before, name)(*args, **named)


def _stands_in(rank: int, present: Sequence[int], size: int) -> int:
    return min(present, key=lambda other: (rank - other) % size)


def _bytes_of(tensor: torch.Tensor) -> bytes:
    """Of a dense one in CPU memory."""
    return ctypes.string_at(tensor.data_ptr(), tensor.nbytes) if tensor.nbytes else b""


def _tensor_of(data: bytes, like: torch.Tensor) -> torch.Tensor:
    if not data:
        return torch.empty(like.shape, dtype=like.dtype)
    return torch.frombuffer(bytearray(data), dtype=like.dtype).view(like.shape)


def _fill(places: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
    for place, value in zip(places, values, strict=True):
        place.detach().copy_(value)


def _reduced(every: Sequence[torch.Tensor], opts: Any) -> torch.Tensor:
    """By the operation of the options, by default the sum; in the order of the ranks."""
    of = dist.ReduceOp
    kind = of.SUM if opts is None else opts.reduceOp
    for name, make in _REDUCTIONS.items():
        if kind == getattr(of, name):
            return make(torch.stack(list(every)))
    raise RuntimeError(
        f"[Gossip] {kind} of torch.distributed is not made by those that are left, got a group of "
        f"{NAME}; use one of {', '.join(_REDUCTIONS)}"
    )


_REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "SUM": lambda every: every.sum(0, dtype=every.dtype),
    "AVG": lambda every: every.double().mean(0).to(every.dtype),
    "PRODUCT": lambda every: every.prod(0, dtype=every.dtype),
    "MIN": lambda every: every.amin(0),
    "MAX": lambda every: every.amax(0),
}


def _done(result: Any) -> Any:
    """What torch waits for."""
    future: Future[Any] = Future()
    future.set_result(result)
    return _create_work_from_future(future)
