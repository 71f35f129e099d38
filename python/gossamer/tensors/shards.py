"""Parameters of which a rank holds a shard: DTensors, as FSDP and tensor parallelism make them.

Note [Shards]: ranks that hold the same shard gossip with each other; shard by shard that is gossip
of the whole. The memory of a shard is its owner's, so the engine has copies, which go in before
each mix and come out after it, and the optimizer takes its own step on the DTensors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch import nn

from gossamer import _core


def is_sharded(tensor: torch.Tensor) -> bool:
    """Whether it is a DTensor."""
    module = sys.modules.get("torch.distributed.tensor")  # half a second, unless there are any
    return module is not None and isinstance(tensor, module.DTensor)


def local_of(tensor: Any) -> torch.Tensor:
    """What of the tensor is here, in its own memory; all of a plain one."""
    if not is_sharded(tensor):
        return tensor
    with torch.no_grad():
        return tensor.to_local().detach()


def place_of(tensor: Any) -> str:
    """Which shard is here, in words; empty for a plain tensor."""
    if not is_sharded(tensor):
        return ""
    mesh = tensor.device_mesh
    places = zip(mesh.get_coordinate(), mesh.shape, tensor.placements, strict=True)
    return "".join(
        f" shard {mine} of {size}" for mine, size, kind in places if not kind.is_replicate()
    )


def refuse(parameters: Iterable[torch.Tensor], what: str) -> None:
    """Raises ValueError for what is not made for parameters that are spread over ranks."""
    if any(map(is_sharded, parameters)):
        raise ValueError(
            f"[Gossip] {what} is for workers of one rank each, got parameters of which ranks have "
            "shards; for the model use torch.distributed.checkpoint.state_dict inside averaged()"
        )


def reshard(model: nn.Module) -> None:
    """Makes FSDP forget what it has gathered, which is old once a shard has changed."""
    module: Any = sys.modules.get("torch.distributed.fsdp")
    for part in model.modules() if module is not None else ():
        if isinstance(part, module.FSDPModule):
            part.reshard()


def _mesh(tensors: Iterable[Any]) -> Any:
    """The largest mesh that any of the tensors is spread over; None without one."""
    meshes = [tensor.device_mesh for tensor in tensors if is_sharded(tensor)]
    return max(meshes, key=lambda mesh: mesh.size(), default=None)


def _pieces(tensor: Any) -> int:
    """In how many different shards it is cut."""
    if not is_sharded(tensor):
        return 1
    sizes = zip(tensor.device_mesh.shape, tensor.placements, strict=True)
    return math.prod(size for size, kind in sizes if not kind.is_replicate())


Copies: TypeAlias = "dist.ProcessGroup | None"
"""The ranks that have copies of a model, where DDP is inside; None: nobody else has one."""


def _mates(parameters: Iterable[torch.Tensor], copies: Copies = None) -> list[dist.ProcessGroup]:
    """Of each dimension of the ranks that hold shards of these, or copies."""
    mesh = _mesh(parameters)
    if mesh is None:
        return [] if copies is None else [copies]
    return [mesh.get_group(dimension) for dimension in range(mesh.ndim)]


def _over(groups: Iterable[dist.ProcessGroup], value: torch.Tensor, how: Any) -> torch.Tensor:
    for group in groups:
        dist.all_reduce(value, how, group=group)
    return value


def largest(value: int, parameters: Iterable[torch.Tensor], copies: Copies = None) -> int:
    """Of all ranks that hold shards of these, or copies. Collective over them."""
    tensors = list(parameters)
    groups = _mates(tensors, copies)
    if not groups:
        return value
    found = torch.tensor(value, device=local_of(tensors[0]).device)
    return int(_over(groups, found, dist.ReduceOp.MAX))


def anywhere(flag: bool, parameters: Iterable[torch.Tensor], copies: Copies = None) -> bool:
    """Whether ``flag`` is set on any of them. Collective over them."""
    return largest(int(flag), parameters, copies) > 0


def said_by_all(value: Any, parameters: Iterable[torch.Tensor], copies: Copies = None) -> list[Any]:
    """What each of them says. Collective over them."""
    said = [value]
    for group in _mates(parameters, copies):
        heard: list[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(heard, said, group=group)
        said = [each for those in heard for each in those]
    return said


def like(parameter: Any, local: torch.Tensor) -> torch.Tensor:
    """A tensor spread as the parameter is, of which this is what is here."""
    made: torch.Tensor = sys.modules["torch.distributed.tensor"].DTensor.from_local(
        local,
        parameter.device_mesh,
        parameter.placements,
        run_check=False,
        shape=parameter.shape,
        stride=parameter.stride(),
    )
    return made


def sum_over_ranks(value: torch.Tensor, parameters: Iterable[torch.Tensor]) -> torch.Tensor | None:
    """The sum of ``value`` over the ranks that hold shards of these; None where none does.

    Collective over them; on a device it is queued only.
    """
    groups = _mates(parameters)
    return _over(groups, value, dist.ReduceOp.SUM) if groups else None


class ShardEngine(_core.Engine):
    """An engine over what is here of the parameters of a model. See Note [Shards]."""

    def __init__(
        self,
        model: nn.Module,
        transport: _core.Transport | None,
        named: Sequence[tuple[str, torch.Tensor, int]],
        options: _core.EngineOptions,
        *,
        bucket_bytes: int,
        recorder: _core.Recorder | None = None,
        beside: Sequence[tuple[str, torch.Tensor, int]] = (),
        mixes: bool = True,
    ) -> None:
        self._mixes = mixes
        self._parameters = [parameter for _, parameter, _ in named]
        self._tensors = [*self._parameters, *(tensor for _, tensor, _ in beside)]
        self._copies = [local_of(tensor).clone() for tensor in self._tensors]
        self._model = model
        self._held = [(id(parameter), group) for _, parameter, group in named]
        copies = [
            (name, copy, number)
            for (name, _, number), copy in zip([*named, *beside], self._copies, strict=True)
        ]
        super().__init__(
            transport,
            copies[: len(named)],
            options,
            bucket_bytes=bucket_bytes,
            recorder=recorder,
            beside=copies[len(named) :],
        )

    def holds(self, groups: Sequence[Sequence[torch.Tensor]]) -> bool:
        """As the engine's, of the parameters that the copies are of."""
        now = [
            (id(parameter), index)
            for index, group in enumerate(groups)
            for parameter in group
            if parameter.requires_grad
        ]
        return now == self._held

    def doubtful_gradients(self) -> list[int]:
        """All of them: the copies have none."""
        return list(range(len(self._parameters)))

    def start(self) -> None:
        """As the engine's."""
        super().start()
        self._copy_out()

    def home(self, tensor: int) -> torch.Tensor:
        """As the engine's, of what is here."""
        self._copies[tensor].copy_(local_of(self._tensors[tensor]))
        return super().home(tensor)

    def step(
        self, groups: Sequence[_core.Hyper], skip: bool = False, loss: float = 0.0
    ) -> _core.StepReport:
        """Mixes what the optimizer has stepped."""
        if not self._mixes:
            return super().step(groups, skip, loss)
        self._copy_in()
        report = super().step(groups, skip, loss)
        self._copy_out()
        return report

    def load_average(self) -> float:
        """As the engine's; the disagreement is that of the whole model."""
        self._copy_in()
        values = [self._values(i) for i in range(len(self._parameters))]
        super().load_average()
        disagreement = self._disagreement(values)
        self._copy_out()
        return disagreement

    def restore_local(self) -> None:
        """As the engine's."""
        super().restore_local()
        self._copy_out()

    def broadcast(self, tensors: Sequence[torch.Tensor]) -> None:
        """As the engine's, of what is here."""
        super().broadcast([local_of(tensor) for tensor in tensors])

    def average(self, tensors: Sequence[torch.Tensor]) -> None:
        """As the engine's, of what is here."""
        super().average([local_of(tensor) for tensor in tensors])

    def _copy_in(self) -> None:
        for tensor, copy in zip(self._tensors, self._copies, strict=True):
            copy.copy_(local_of(tensor))

    def _copy_out(self) -> None:
        with torch.no_grad():
            for tensor, copy in zip(self._tensors, self._copies, strict=True):
                local_of(tensor).copy_(copy)
        reshard(self._model)

    def _has_master(self, i: int) -> bool:
        return self._copies[i].dtype.to_real() in (torch.bfloat16, torch.float16)

    def _values(self, i: int) -> torch.Tensor:
        """What is mixed of a parameter, which stays as it is while the engine has the mean."""
        return super().home(i).clone() if self._has_master(i) else local_of(self._parameters[i])

    def _disagreement(self, values: Sequence[torch.Tensor]) -> float:
        """Between these values of this worker and the mean, which the engine has."""
        mesh = _mesh(self._parameters)
        sums = torch.zeros(2, dtype=torch.float64, device=self._copies[0].device)
        for i, (parameter, copy) in enumerate(zip(self._parameters, self._copies, strict=False)):
            share = _pieces(parameter) / mesh.size()  # the others have the rest of it, or the same
            mean = super().home(i) if self._has_master(i) else copy
            for k, part in enumerate((values[i] - mean, mean)):
                sums[k] += share * part.abs().double().square().sum()
        super().average([sums])
        apart, size = _over(_mates(self._parameters), sums, dist.ReduceOp.SUM).tolist()
        return math.sqrt(apart / size) if size > 0 else 0.0


def make_engine(
    model: nn.Module,
    transport: _core.Transport | None,
    named: Sequence[tuple[str, torch.Tensor, int]],
    options: _core.EngineOptions,
    *,
    bucket_bytes: int,
    recorder: _core.Recorder | None,
    beside: Sequence[tuple[str, torch.Tensor, int]],
    mixes: bool,
) -> _core.Engine:
    """The engine for these parameters of the model, and for what is mixed beside them; ``mixes``:
    its steps change them."""
    how: Any = {"bucket_bytes": bucket_bytes, "recorder": recorder, "beside": list(beside)}
    if any(is_sharded(parameter) for _, parameter, _ in named):
        return ShardEngine(model, transport, named, options, **how, mixes=mixes)
    return _core.Engine(transport, named, options, **how)
