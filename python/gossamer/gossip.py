"""Gossip: the one new line in a DDP script."""

from __future__ import annotations

import atexit
import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from gossamer import _core
from gossamer.edges import make_transport
from gossamer.fused import FusedState, rule_for
from gossamer.world import find_world


def _named_parameters(
    model: nn.Module, optimizer: torch.optim.Optimizer
) -> list[tuple[str, torch.Tensor, int]]:
    """The optimizer's parameters in its order, with the model's names and their group's index."""
    names = {id(p): name for name, p in model.named_parameters(remove_duplicate=True)}
    found: list[tuple[str, torch.Tensor, int]] = []
    for index, group in enumerate(optimizer.param_groups):
        for parameter in group["params"]:
            if id(parameter) not in names:
                raise ValueError(
                    f"[Gossip] parameter {len(found)} of the optimizer (shape "
                    f"{tuple(parameter.shape)}) is not a parameter of the model; make the "
                    "optimizer from model.parameters() of the same model, after moving or "
                    "converting it"
                )
            found.append((names[id(parameter)], parameter, index))
    return found


class Gossip:
    """Mixes a model's parameters with those of neighbouring workers in every optimizer step.

    The training loop stays as it is: ``optimizer.step()`` steps and mixes. Every worker calls it
    equally often. ``torch.optim.SGD``, ``Adam``, ``AdamW`` and ``gossamer.AccumAdam``,
    ``AccumAdamW`` run fused with the mix on their own ``state`` and ``param_groups``; any other
    optimizer takes its own step first.

    Args:
        model: not wrapped in DistributedDataParallel.
        optimizer: over the model's parameters.
        topology: a name of ``gossamer topology --list``, or a schedule of
            ``gossamer.make_schedule``.
        pattern: ``"cwa"`` (parameters travel during forward and backward) or ``"atc"`` (they
            travel after the step, which waits for them).
        group: the process group to gossip in; by default all ranks. Must carry CPU tensors.
        buffers: ``"averaged"``: ``averaged()`` averages floating-point buffers too; ``"local"``:
            it leaves them alone. In any case rank 0's are everybody's first.
        check_gradients: refuse a gradient that is not finite before it touches anything.
        timeout_s: seconds that a wait for another worker may take.
        bucket_bytes: parameters travel in pieces of about this size.
        seed: of random topologies.

    Collective: every rank of the group must make it, with equal arguments, and starts with rank
    0's parameters. Raises ValueError on every rank when they differ.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        topology: str | _core.Schedule = "alternating_exponential_ring",
        pattern: str = "cwa",
        group: dist.ProcessGroup | None = None,
        buffers: str = "averaged",
        check_gradients: bool = True,
        timeout_s: float = 300.0,
        bucket_bytes: int = 4 << 20,
        seed: int = 0,
    ) -> None:
        if isinstance(model, nn.parallel.DistributedDataParallel) and group is None:
            raise ValueError(
                "[Gossip] the model is wrapped in DistributedDataParallel, which would average "
                "every gradient as well; pass the bare model, or give the group to gossip in "
                "beside DDP's"
            )
        if buffers not in ("averaged", "local"):
            raise ValueError(
                f'[Gossip] buffers must be "averaged" or "local", got {buffers!r}'
            )
        if pattern not in ("cwa", "atc"):
            raise ValueError(f'[Gossip] pattern must be "cwa" or "atc", got {pattern!r}')
        if getattr(optimizer, "_gossip", None) is not None:
            raise ValueError(
                "[Gossip] this optimizer already gossips; close() the first Gossip, or make "
                "another optimizer"
            )
        self._model = model.module if hasattr(model, "module") else model
        self._optimizer = optimizer
        self._buffers = buffers
        self._bucket_bytes = bucket_bytes
        self._world = find_world(group)
        schedule = topology
        if isinstance(schedule, str):
            schedule = _core.make_schedule(schedule, list(self._world.workers_per_host), seed=seed)
        self._rule = rule_for(optimizer)
        own_step = self._rule is None
        self._options = _core.EngineOptions(
            schedule=schedule,
            pattern="cwa_difference" if own_step and pattern == "cwa" else pattern,
            optimizer=self._rule.name if self._rule else "none",
            group_method="hierarchical",
            timeout_s=timeout_s,
            check_gradients=check_gradients and not own_step,
        )
        self._transport = make_transport(
            self._world, _core.peers_of(self._options, self._world.rank), timeout_s
        )
        self._exposed_s = 0.0
        self._start()
        self._wrap_step()
        self._averaging = False
        self._at_exit = functools.partial(_close_if_alive, weakref.ref(self))
        atexit.register(self._at_exit)

    def _start(self) -> None:
        named = _named_parameters(self._model, self._optimizer)
        self._count = len(named)
        self._parameters = [parameter for _, parameter, _ in named]
        self._engine = _core.Engine(
            self._transport, named, self._options, bucket_bytes=self._bucket_bytes
        )
        self._engine.start()
        mixed = {id(parameter) for parameter in self._parameters}
        frozen = [p for p in self._model.parameters() if id(p) not in mixed]
        self._engine.broadcast([*frozen, *self._model.buffers()])
        self._state = (
            FusedState(self._optimizer, self._rule, self._engine, self._parameters)
            if self._rule
            else None
        )

    # The step.

    def _wrap_step(self) -> None:
        optimizer = self._optimizer
        self._own_step = optimizer.step

        @functools.wraps(optimizer.step)
        def step(closure: Callable[[], Any] | None = None) -> Any:
            return self._step(closure)

        if self._state is not None:  # an own step runs the optimizer's hooks by itself
            step = _with_hooks(optimizer, step)
        optimizer.step = step  # type: ignore[method-assign]
        optimizer._step_supports_amp_scaling = True  # type: ignore[attr-defined]
        optimizer._gossip = self  # type: ignore[attr-defined]
        self._load_hook = optimizer.register_load_state_dict_post_hook(self._loaded)

    def _loaded(self, _: torch.optim.Optimizer) -> None:
        if self._state is not None:
            self._state.adopt()

    def _step(self, closure: Callable[[], Any] | None) -> Any:
        scale, skip = self._amp()
        if self._state is None:
            if scale is not None:
                for parameter in self._parameters:
                    if parameter.grad is not None:
                        parameter.grad.mul_(scale)
            loss = None if skip else self._own_step(closure)
            self._mix([_core.Hyper() for _ in self._optimizer.param_groups], skip=True)
            return loss
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._count != sum(len(group["params"]) for group in self._optimizer.param_groups):
            self._restart()
        assert self._rule is not None
        groups = [self._rule.hyper(group) for group in self._optimizer.param_groups]
        if scale is not None:
            for hyper in groups:
                hyper.grad_scale *= scale
        self._mix(groups, skip=skip)
        if not skip:
            self._state.show()
        return loss

    def _mix(self, groups: list[_core.Hyper], *, skip: bool) -> None:
        if self._averaging:
            raise RuntimeError(
                "[Gossip] optimizer.step() inside averaged(): the local parameters come back at "
                "its end, so the step would be lost; train outside of it"
            )
        self.last_step = self._engine.step(groups, skip)
        self._exposed_s += self.last_step.exposed_s

    def _amp(self) -> tuple[float | None, bool]:
        """What GradScaler asks for: a factor for the gradients, and whether to skip the update."""
        found_inf = getattr(self._optimizer, "found_inf", None)
        grad_scale = getattr(self._optimizer, "grad_scale", None)
        skip = found_inf is not None and bool(found_inf.item())
        return (None if grad_scale is None else 1.0 / float(grad_scale)), skip

    def _restart(self) -> None:
        """Parameters were added: a new engine over the same transport, with the state so far."""
        self._engine.quiesce()
        self._engine.barrier()
        if self._state is not None:
            self._state.detach()
        self._engine.close()
        self._start()

    # The consensus.

    @contextlib.contextmanager
    def averaged(self) -> Iterator[nn.Module]:
        """The model with the mean of all workers' parameters; afterwards the local ones are back.

        This is the model to evaluate and to save. Collective: every worker must enter and leave
        it, after equally many steps.
        """
        buffers = [b for b in self._model.buffers() if b.is_floating_point()]
        local = [b.clone() for b in buffers] if self._buffers == "averaged" else []
        self._averaging = True
        try:
            self._engine.load_average()
            if local:
                self._engine.average(buffers)
            yield self._model
        finally:
            self._engine.restore_local()
            for buffer, value in zip(buffers, local, strict=False):
                buffer.copy_(value)
            self._averaging = False

    def disagreement(self) -> float:
        """√(mean over workers of ‖xᵢ − x̄‖²) / ‖x̄‖, how far the workers are apart. Collective."""
        value = self._engine.load_average()
        self._engine.restore_local()
        return value

    def stats(self) -> dict[str, Any]:
        """Of this worker so far: ``steps``, ``exposed_s`` (seconds spent waiting for others) and
        ``edges``: by peer the payload bytes ``sent`` and ``received``."""
        return {
            "steps": self._engine.steps_done,
            "exposed_s": self._exposed_s,
            "edges": {
                peer: {"sent": sent, "received": received}
                for peer, sent, received in self._engine.edges()
            },
        }

    # The end.

    def close(self) -> None:
        """Ends gossiping; the optimizer steps alone from then on. May be called more than once.

        Neighbours that still step fail, so call it on all workers after the last step.
        """
        if self._optimizer is None:
            return
        optimizer, self._optimizer = self._optimizer, None  # type: ignore[assignment]
        atexit.unregister(self._at_exit)
        self._load_hook.remove()
        if self._state is not None:
            self._state.detach()
        for name in ("step", "_step_supports_amp_scaling", "_gossip"):
            optimizer.__dict__.pop(name, None)
        if "step" in vars(self._own_step):  # pragma: no cover
            optimizer.step = self._own_step  # type: ignore[method-assign]
        self._engine.close()
        if self._transport is not None:
            self._transport.stop()

    def __enter__(self) -> Gossip:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _with_hooks(
    optimizer: torch.optim.Optimizer, step: Callable[..., Any]
) -> Callable[..., Any]:
    """Runs the hooks that torch runs around every optimizer step."""

    def hooked(_: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
        return step(*args, **kwargs)

    profiled = torch.optim.Optimizer.profile_hook_step(hooked)

    @functools.wraps(step)
    def with_hooks(*args: Any, **kwargs: Any) -> Any:
        return profiled(optimizer, *args, **kwargs)

    return with_hooks


def _close_if_alive(reference: weakref.ref[Gossip]) -> None:
    gossip = reference()
    if gossip is not None:
        gossip.close()
