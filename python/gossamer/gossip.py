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

from gossamer import _core, parameters
from gossamer.edges import make_transport
from gossamer.fused import FusedState, fused_kind, rule_for
from gossamer.replaced_step import ReplacedStep
from gossamer.world import Seat, World, find_seat, meet


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
        pattern: ``"cwa"`` (parameters travel during forward and backward), ``"atc"`` (they travel
            after the step, which waits for them) or ``"allreduce"`` (every backward averages the
            gradients over all workers, as DistributedDataParallel does; the topology is unused).
        group: the process group to gossip in; by default all ranks. With a group the model may be
            wrapped in DistributedDataParallel over other ranks.
        buffers: ``"averaged"``: ``averaged()`` averages floating-point buffers too; ``"local"``:
            it leaves them alone. In any case rank 0's are everybody's first.
        check_gradients: refuse a gradient that is not finite before it touches anything.
        timeout_s: seconds that a wait for another worker may take.
        bucket_bytes: parameters travel in pieces of about this size.
        seed: of random topologies.

    Collective: every rank of the group must make it, with equal arguments, and starts with rank
    0's parameters. Raises ValueError on every rank when they differ, TransportError for a rank that
    does not come or leaves.

    Parameters may be added to the optimizer and a state_dict loaded into the model later on, on
    every rank alike; ranks go on from the values they have loaded. Parameters must stay where they
    are in memory: move and convert the model before.
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
        is_ddp = isinstance(model, nn.parallel.DistributedDataParallel)
        self._model = model.module if is_ddp else model
        self._optimizer = optimizer
        self._topology = topology
        self._pattern = pattern
        self._buffers = buffers
        self._check_gradients = check_gradients
        self._timeout_s = timeout_s
        self._bucket_bytes = bucket_bytes
        self._seed = seed
        self._exposed_s = 0.0
        self._averaging = False
        self._closed = False
        self.last_step: _core.StepReport | None = None
        seat = find_seat(group)
        about, problem = "", None
        try:
            parameters.check_arguments(optimizer, buffers, pattern, in_ddp=is_ddp and group is None)
            self._read_optimizer()
            about = self._about()
        except Exception as error:
            problem = error
        self._world = meet(seat, about, problem, timeout_s)
        self._schedule = self._make_schedule(self._world)
        self._transport = make_transport(
            self._world, _core.peers_of(self._options(), self._world.rank), timeout_s
        )
        self._make_engine()
        self._engine.start()
        self._average_gradients()
        mixed = {id(parameter) for parameter in self._parameters}
        frozen = [p for p in self._model.parameters() if id(p) not in mixed]
        self._engine.broadcast([*frozen, *self._model.buffers()])
        self._patch()

    # Set-up.

    def _read_optimizer(self) -> None:
        self._named = parameters.named_parameters(self._model, self._optimizer)
        self._parameters = [parameter for _, parameter, _ in self._named]
        self._kind = fused_kind(self._optimizer)
        self._rule = rule_for(self._optimizer)

    def _about(self) -> str:
        """What has to be the same on all ranks, a line each."""
        name = getattr(self._topology, "name", self._topology)
        step = self._rule.name if self._rule else "own step"
        lines = [
            f"topology {name}",
            f"pattern {self._pattern}",
            f"buffers {self._buffers}",
            f"seed {self._seed}",
            f"bucket_bytes {self._bucket_bytes}",
            f"optimizer {type(self._optimizer).__name__} ({step})",
        ]
        return "\n".join([*lines, *parameters.describe(self._model, self._named)])

    def _make_schedule(self, world: World) -> _core.Schedule:
        if self._pattern == "allreduce":
            return _core.alone_schedule(list(world.workers_per_host))
        hosts = list(world.workers_per_host)
        if isinstance(self._topology, str):
            return _core.make_schedule(self._topology, hosts, seed=self._seed)
        if self._topology.workers != world.size:
            raise ValueError(
                f"[Gossip] the schedule {self._topology.name} is for {self._topology.workers} "
                f"workers, got a group of {world.size}; make it with "
                f'gossamer.make_schedule("{self._topology.name}", {hosts})'
            )
        return self._topology

    def _options(self) -> _core.EngineOptions:
        own_step = self._rule is None
        patterns = {"cwa": "cwa_difference" if own_step else "cwa", "allreduce": "cwa"}
        return _core.EngineOptions(
            schedule=self._schedule,
            pattern=patterns.get(self._pattern, self._pattern),
            optimizer=self._rule.name if self._rule else "none",
            timeout_s=self._timeout_s,
            check_gradients=self._check_gradients and not own_step,
        )

    def _make_engine(self) -> None:
        self._engine = _core.Engine(
            self._transport, self._named, self._options(), bucket_bytes=self._bucket_bytes
        )
        self._state = (
            FusedState(self._optimizer, self._rule, self._engine, self._parameters)
            if self._rule
            else None
        )

    def _patch(self) -> None:
        self._own_amp = bool(getattr(self._optimizer, "_step_supports_amp_scaling", False))
        self._replaced = ReplacedStep(self._optimizer, self._step)
        self._optimizer._gossip = self
        self._loaded = parameters.LoadMark()
        self._hooks = [self._optimizer.register_load_state_dict_post_hook(self._adopt)]
        self._hooks += [
            module.register_load_state_dict_post_hook(self._loaded)
            for module in self._model.modules()
        ]
        self._at_exit = functools.partial(_close_if_alive, weakref.ref(self))
        atexit.register(self._at_exit)

    def _average_gradients(self) -> None:
        if self._pattern == "allreduce":
            self._engine.average_gradients(self._bucket_bytes)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leaves gradients local, for accumulation under "allreduce"; others do not need it."""
        self._engine.set_averaging(False)
        try:
            yield
        finally:
            self._engine.set_averaging(True)

    # The step.

    def _step(self, own_step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What ``optimizer.step()`` does now; ``own_step`` is what it did before."""
        if self._closed:
            return own_step(*args, **kwargs)
        self._before_step()
        if self._state is None:
            return self._unfused_step(own_step, *args, **kwargs)
        return self._replaced.with_step_hooks(self._fused_step, *args, **kwargs)

    def _before_step(self) -> None:
        if self._averaging:
            raise RuntimeError(
                "[Gossip] optimizer.step() inside averaged(): the local parameters come back at "
                "its end, so the step would be lost; train outside of it"
            )
        optimizer = self._optimizer
        count = sum(len(group["params"]) for group in optimizer.param_groups)
        is_same = count == len(self._parameters) and fused_kind(optimizer) == self._kind
        if self._loaded.is_set or not is_same:
            self._restart()
        optimizer._opt_called = True

    def _fused_step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        assert self._rule is not None
        assert self._state is not None
        scale, skip = self._amp()
        groups = [self._rule.hyper(group) for group in self._optimizer.param_groups]
        for hyper in groups:
            hyper.grad_scale *= scale
        self._state.check()
        self._mix(groups, skip=skip)
        if not skip:
            self._state.show()
        return loss

    def _unfused_step(self, own_step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        scale, skip = self._amp()
        loss = None
        if self._own_amp:  # scales and skips by itself
            loss = own_step(*args, **kwargs)
        elif not skip:
            grads = [p.grad for p in self._parameters if p.grad is not None]
            if scale != 1:
                with torch.no_grad():
                    for grad in grads:
                        grad.mul_(scale)
            if self._check_gradients and not args and not kwargs:  # a closure makes new ones
                parameters.refuse_non_finite(
                    self._named, self._world.rank, self._engine.steps_done + 1
                )
            loss = own_step(*args, **kwargs)
        self._mix([_core.Hyper() for _ in self._optimizer.param_groups], skip=True)
        return loss

    def _mix(self, groups: list[_core.Hyper], *, skip: bool) -> None:
        self.last_step = self._engine.step(groups, skip)
        self._exposed_s += self.last_step.exposed_s

    def _amp(self) -> tuple[float, bool]:
        """What GradScaler asks for: a factor for the gradients, and whether to skip the update."""
        found_inf = getattr(self._optimizer, "found_inf", None)
        grad_scale = getattr(self._optimizer, "grad_scale", None)
        skip = found_inf is not None and bool(found_inf)
        return (1.0 if grad_scale is None else 1.0 / float(grad_scale)), skip

    # Changes between steps.

    def _adopt(self, _: torch.optim.Optimizer) -> None:
        if self._state is not None:
            self._state.adopt()

    def _restart(self) -> None:
        """Goes on with other parameters, or with values that nobody was sent, as they are here.

        What travels is dropped. Only parameters that are new start with rank 0's values.
        """
        self._loaded.is_set = True  # until this has been done: a failure is not the end of it
        old = {id(parameter) for parameter in self._parameters}
        steps_done = self._engine.steps_done
        self._engine.quiesce()
        if self._state is not None:
            self._state.detach()
        problem: Exception | None = None
        try:
            self._read_optimizer()
        except Exception as error:
            problem = error
        seat = Seat(self._world.rank, self._world.size, self._world.group)
        meet(seat, self._about(), problem, self._timeout_s)
        self._engine.broadcast([p for p in self._parameters if id(p) not in old])
        self._engine.barrier()
        self._engine.close()
        self._make_engine()
        self._engine.start_at(steps_done)
        self._average_gradients()
        self._loaded.is_set = False

    # The consensus.

    @contextlib.contextmanager
    def averaged(self) -> Iterator[nn.Module]:
        """The model with the mean of all workers' parameters; afterwards the local ones are back.

        This is the model to evaluate and to save. Collective: every worker must enter and leave
        it, after equally many steps. Raises RuntimeError inside of itself.
        """
        self._refuse_averaging("averaged()")
        buffers = [b for b in self._model.buffers() if b.is_floating_point()]
        local = [b.clone() for b in buffers] if self._buffers == "averaged" else []
        self._engine.load_average()
        self._averaging = True
        try:
            if local:
                self._engine.average(buffers)
            yield self._model
        finally:
            self._averaging = False
            self._engine.restore_local()
            with torch.no_grad():
                for buffer, value in zip(buffers, local, strict=False):
                    buffer.copy_(value)

    def disagreement(self) -> float:
        """√(mean over workers of ‖xᵢ - x̄‖²) / ‖x̄‖, how far the workers are apart. Collective."""
        self._refuse_averaging("disagreement()")
        value = self._engine.load_average()
        self._engine.restore_local()
        return value

    def _refuse_averaging(self, what: str) -> None:
        if self._averaging:
            raise RuntimeError(
                f"[Gossip] {what} inside averaged(), where all workers have the same; leave it "
                "first"
            )

    @property
    def is_fused(self) -> bool:
        """Whether the optimizer's update runs in one pass with the mix; else it steps by itself."""
        return self._state is not None

    def stats(self) -> dict[str, Any]:
        """Of this worker so far: ``steps``, ``exposed_s`` (seconds spent waiting for others) and
        ``edges``: by peer the payload bytes ``sent`` and ``received``."""
        return {
            "steps": self._engine.steps_done,
            "exposed_s": self._exposed_s + self._engine.backward_exposed_s,
            "edges": {peer: {"sent": s, "received": r} for peer, s, r in self._engine.edges()},
        }

    # The end.

    def close(self) -> None:
        """Ends gossiping; the optimizer steps alone from then on. May be called again.

        Neighbours that still step fail: call it on all workers after the last step."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        for hook in self._hooks:
            hook.remove()
        if self._state is not None:
            self._state.detach()
        self._replaced.undo()
        vars(self._optimizer).pop("_gossip", None)
        self._engine.close()
        if self._transport is not None:
            self._transport.stop()

    def __enter__(self) -> Gossip:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _close_if_alive(reference: weakref.ref[Gossip]) -> None:
    gossip = reference()
    if gossip is not None:
        gossip.close()
