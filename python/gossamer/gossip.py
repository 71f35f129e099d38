"""Gossip: the one new line in a DDP script."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from gossamer import (
    _core,
    backward,
    checkpoints,
    consensus,
    first_steps,
    habits,
    losses,
    means,
    mesh,
    parameters,
    patterns,
    setup,
    shards,
)
from gossamer.folder_locks import FolderLocks
from gossamer.fused import FusedState, fused_kind, rule_for
from gossamer.member import Closing, close_if_alive
from gossamer.metrics import Metrics
from gossamer.replaced_step import ReplacedStep, scaling, unfused_step
from gossamer.restart import restart
from gossamer.roll_call import within
from gossamer.suspicions import Suspicions
from gossamer.totals import Totals
from gossamer.tracing import Trace
from gossamer.uneven_epochs import uneven
from gossamer.world import explain, find_seat


class Gossip(habits.NoModule, Closing):
    """Mixes a model's parameters with those of neighbouring workers in every optimizer step.

    The training loop stays as it is: ``optimizer.step()`` steps and mixes. Every worker calls it
    equally often. ``torch.optim.SGD``, ``Adam``, ``AdamW`` and ``gossamer.AccumAdam``,
    ``AccumAdamW`` run fused with the mix on their own ``state`` and ``param_groups``; any other
    optimizer takes its own step first.

    Args:
        model: not wrapped in DistributedDataParallel.
        optimizer: over the model's parameters; Accelerate's and Lightning's wrappers are opened.
        topology: a name of ``gossamer topology --list``, a file of matrices (NAME.json), a schedule
            of ``make_schedule`` or ``schedule_from_matrices``, or a whole method by the commands'
            name, ``Method("aer:int8:rounds=2")``; ``"auto"``: see ``plan``.
        pattern: ``"cwa"``, the default: parameters travel during forward and backward. ``"atc"``:
            they travel after the step, which waits for them. ``"allreduce"``: every backward
            averages the gradients over all workers, as DistributedDataParallel does. The topology
            is then unused. ``"gradient_gossip"``: gradients are averaged over the topology, too.
            ``"exact_diffusion"``, ``"extra"`` and ``"gradient_tracking"`` correct what unequal
            data do. ``"dmsgd"`` and ``"qg_dmsgd"`` mix the momentum, too. docs/methods.md has the
            conditions: some need a static symmetric topology or a certain optimizer.
        pattern_options: numbers by name for patterns that have options.
        group: the process group, or the mesh of one dimension, to gossip in; by default all ranks.
            Over other ranks the model may be in DistributedDataParallel or ``fully_shard``.
        buffers: ``"averaged"``: ``averaged()`` averages floating-point buffers too; ``"local"``:
            it leaves them alone. In any case rank 0's are everybody's first.
        check_gradients: refuse a gradient that is not finite before it touches anything.
        check_payloads: refuse another rank's parameters that are not finite, by its name.
        update: ``"step"``, or ``"backward"``: a bucket steps and mixes as soon as the backward has
            completed its gradients, which then must not change any more.
        timeout_s: of a wait for another worker. One that is dead or silent is noticed sooner.
        codec: ``"bf16"`` or ``"int8"``: payloads between hosts take a half or a quarter of the
            bytes. The mean over the workers is preserved: each worker keeps its rounding error.
            The error of averaged gradients is lost.
        late: ``"wait"`` for neighbours whose parameters have not come, or ``"skip"`` those that
            are more than ``staleness`` steps old; workers then may step unequally often.
        bucket_bytes: parameters travel in pieces of about this size. The default is 4 MiB; for
            several hosts it is a 32nd of the parameters, from 256 KiB to 4 MiB.
        transport: ``"net"``, also ``"auto"`` (shared memory, TCP between hosts), ``"c10d"`` (Gloo).
        tls: TLS 1.3 for what ``"net"`` sends over TCP; SECURITY.md says where its key comes from.
        seed: of random topologies.
        stagger: bucket b follows the schedule at step t + b, which loads the links equally. False:
            all at t, so that ``global_average_every`` averages the whole model in one step.
        plan: with ``topology="auto"`` a folder with the ``cluster.toml`` and ``workload.toml`` of
            ``gossamer plan``, which rank 0 reads. They decide topology, pattern, codec and late.
            ``gossip.plan`` has sentences that say why.
        trace: a folder: at its end every rank writes what it did in its last ``trace_steps``
            steps, for Perfetto and ``gossamer report``, in place of earlier traces.
        metrics: a folder where every rank writes a line per step; see ``log``.

    Collective: every rank of the group must make it, with equal arguments, and starts with rank
    0's parameters. Raises ValueError on every rank when they differ, TransportError for a rank that
    does not come or leaves.

    Between steps, on every rank alike, parameters may be added to the optimizer, replaced, moved to
    another group, frozen and thawed, and a state_dict loaded into the model. A frozen parameter
    does not travel; in the step after it was frozen it takes the mean of all workers. Values may be
    set by hand at any time: the mix adds to them what it would have added.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        topology: str | _core.Schedule | _core.Method = "alternating_exponential_ring",
        pattern: str | None = None,
        pattern_options: Mapping[str, float] | None = None,
        group: dist.ProcessGroup | dist.device_mesh.DeviceMesh | None = None,
        buffers: str = "averaged",
        check_gradients: bool = True,
        check_payloads: bool = True,
        update: str = "step",
        codec: str = "fp32",
        late: str = "wait",
        staleness: int = 1,
        timeout_s: float = 1800.0,
        bucket_bytes: int | None = None,
        transport: str = "auto",
        tls: bool = False,
        seed: int = 0,
        stagger: bool = True,
        plan: str | os.PathLike[str] | None = None,
        trace: str | os.PathLike[str] | None = None,
        trace_steps: int = 64,
        metrics: str | os.PathLike[str] | None = None,
    ) -> None:
        self._chose_pattern, pattern = pattern is not None, pattern or "cwa"
        self._settings = setup.Settings.of(locals())
        self._model, ddp = mesh.unwrapped(model)
        self._optimizer = optimizer
        self.plan: tuple[str, ...] = ()
        self._late, self._folders = backward.LateWatch(), FolderLocks()
        self._totals = Totals()
        self._engine: _core.Engine
        self._state: FusedState | None
        self._block = ""  # the one of the methods that go around a block
        self._unsynced = 0  # blocks of no_sync() that are open
        self._closed = False
        self.last_step: _core.StepReport | None = None
        self._world = setup.meet_all(self, optimizer, model, ddp, find_seat(group))
        self._schedule = setup.choose_schedule(self)
        self._loss = losses.StepLoss(self._schedule)
        self._transport = setup.connect(self)
        self._trace = Trace(trace, trace_steps, self._world)
        self._metrics = Metrics(metrics, self._world)
        setup.make_engine(self)
        self._engine.start()
        self._trusts_versions = ddp is None
        self._watch_backward()
        setup.share_what_nobody_trains(self)
        self._suspicions = Suspicions(self)
        self._patch()
        self._resume()

    def _read_optimizer(self) -> None:
        everything = parameters.named_parameters(self._model, self._optimizer)
        self._named = parameters.trainable(everything)
        self._parameters = [parameter for _, parameter, _ in self._named]
        self._numbers = [i for i, each in enumerate(everything) if each[1].requires_grad]
        self._kind = fused_kind(self._optimizer)
        is_sharded = any(map(shards.is_sharded, self._parameters))  # see Note [Shards]
        self._rule = None if is_sharded else rule_for(self._optimizer)
        # FSDP replaces parameters and puts them back in every step.
        self._tree = None if is_sharded else parameters.Tree(self._model)

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
        self._at_exit = functools.partial(close_if_alive, weakref.ref(self))
        atexit.register(self._at_exit)

    def _watch_backward(self) -> None:
        backward.watch(
            self,
            update=self._settings.update,
            trusts_versions=self._trusts_versions,
            bucket_bytes=setup.bucket_bytes(self),
        )

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """For the backwards of a step but the last, under "allreduce" and update="backward".

        Gradients that no later backward averages are averaged in ``optimizer.step()``.
        """
        self._unsynced += 1
        self._engine.set_averaging(False)
        try:
            yield
        finally:
            self._unsynced -= 1
            self._engine.set_averaging(self._unsynced == 0)

    def observe(self, loss: float | torch.Tensor) -> None:
        """Says this worker's loss of the coming step to a schedule that follows its mean over all
        (``adaptive_average`` of ``make_schedule``), as a closure does that returns it."""
        self._loss.say(loss)

    # The step.

    def _step(self, own_step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What ``optimizer.step()`` does now; ``own_step`` is what it did before."""
        if self._closed:
            return own_step(*args, **kwargs)
        try:
            self._before_step()
            self._loss.check(args, kwargs)
            args, kwargs = backward.average_missed(self, args, kwargs)
            self._suspicions.before_step(self)
            if self._state is None:
                own_step = self._suspicions.watched(self, own_step)
                loss = unfused_step(self, own_step, *args, **kwargs)
            else:
                loss = self._replaced.with_step_hooks(self._fused_step, *args, **kwargs)
            self._metrics.step(self)
            return loss
        except Exception as error:
            where = f"step {self._engine.steps_done + 1} of the optimizer"
            explain(error, self._world, where, self._settings.timeout_s)
            raise

    def _before_step(self) -> None:
        consensus.refuse_step_inside(self._block)
        if self._must_restart():
            restart(self)
        self._optimizer._opt_called = True

    def _must_restart(self) -> bool:
        """Whether what the optimizer and the model hold is not what the engine was made for."""
        groups = [group["params"] for group in self._optimizer.param_groups]
        return (
            self._loaded.is_set
            or not self._engine.holds(groups)
            or fused_kind(self._optimizer) != self._kind
            or not (self._tree is None or self._tree.is_same())
        )

    def _before_backward(self) -> list[_core.Hyper] | None:
        """What to step with in this backward; None: nothing, all is left to the step."""
        if self._closed or self._block == "averaged()" or self._must_restart():
            return None
        assert self._state is not None
        self._state.check()
        return patterns.stepping_groups(self)

    def _fused_step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if self._settings.update == "backward":
            backward.check_step(self, closure)
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
            self._loss.returned(loss)
        assert self._state is not None
        scale, skip = scaling(self._optimizer)
        self._state.check()
        self._mix(patterns.stepping_groups(self, scale), skip=skip)
        self._state.after_step()
        return loss

    def _mix(self, groups: list[_core.Hyper], *, skip: bool) -> None:
        self.last_step = self._engine.step(groups, skip, self._loss.take())
        self._totals.add(self.last_step)
        if self._settings.update == "backward":
            self._late.note(self._engine.early_buckets)
        if self._engine.steps_done == 1:
            first_steps.after_first(self)

    # Changes between steps.

    def _adopt(self, _: torch.optim.Optimizer) -> None:
        if self._state is not None and self._rule is not None:
            parameters.check_loaded_state(self._optimizer, self._rule, self._named)
            self._state.adopt()

    @contextlib.contextmanager
    def averaged(self, *, also: consensus.Also = ()) -> Iterator[nn.Module]:
        """The model with the mean of all workers' parameters; afterwards the local ones are back.

        This is the model to evaluate and to save. ``also``: other modules and tensors that are the
        mean meanwhile, such as a moving average of the parameters; whole numbers stay. Collective:
        every worker must enter and leave it, after equally many steps. ValueError on every worker
        where buffers differ in name, shape or dtype; RuntimeError inside of itself.
        """
        self._suspicions.at_end(self)
        with contextlib.ExitStack() as stack:
            with within(self, "averaged()"):
                stack.enter_context(consensus.agreed(self, also))
            yield self._model

    def disagreement(self) -> float:
        """√(mean over workers of ‖xᵢ - x̄‖²) / ‖x̄‖, how far the workers are apart. Collective."""
        return consensus.disagreement(self)

    def mean(
        self, tensors: torch.Tensor | Iterable[torch.Tensor]
    ) -> torch.Tensor | list[torch.Tensor]:
        """The mean over all workers of one tensor, or of each in a list, as new tensors.

        Of any shapes and floating-point dtypes, formed in double precision. Collective, with equal
        shapes and dtypes. TypeError for whole numbers, ValueError on every worker where they
        differ.
        """
        return means.mean(self, tensors)

    # Epochs and checkpoints.

    def uneven(self) -> contextlib.AbstractContextManager[None]:
        """Goes around an epoch in which some workers have more batches than others.

        A worker without a batch goes on mixing without stepping, until all have left after equally
        many steps. Under "allreduce" its gradients count as zero, and all end with parameters and
        optimizer state of the last to leave. An exception leaves at once. Collective; other
        collective methods raise RuntimeError inside. For several, ``gossamer.uneven(a, b)``.
        """
        return uneven(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves all workers in a folder, whole or not at all, in place of what was saved there.

        That is parameters, buffers, the optimizer's state and settings, what the pattern keeps and
        the number of steps, not schedulers, a GradScaler or the place in the data. Collective,
        after equally many steps. Raises IoError or ValueError on every rank, TransportError for a
        rank that does not come.
        """
        checkpoints.save(self, path)
        self._resume()

    def load(self, path: str | os.PathLike[str]) -> None:
        """Goes on from what ``save`` saved, with the same model and class of optimizer. Collective.

        As many workers as saved go on with the same bits. Another number starts from the means of
        parameters, floating-point buffers and optimizer states over all that saved; corrections and
        trackers of the pattern then start at zero. Raises IoError or ValueError on every rank, and
        changes nothing, where that is not possible.
        """
        with torch.inference_mode(False):  # else its state could not be stepped with
            restart(self, *checkpoints.load(self, path))

    @property
    def is_fused(self) -> bool:
        """Whether the optimizer's update runs in one pass with the mix."""
        return self._state is not None

    def stats(self) -> dict[str, Any]:
        """Numbers of this worker so far: its ``steps``; ``exposed_s``, the seconds of waiting for
        others; ``hidden_s``, the seconds of transfers that nobody waited for. ``skipped`` are late
        payloads by bucket. ``edges`` has the payload bytes ``sent`` and ``received`` by peer."""
        return self._totals.stats(self._engine)

    def log(self, **values: Any) -> None:
        """Adds values to the next line of ``metrics``, such as ``loss=loss``: numbers, texts and
        tensors of one element. The next line is that of the next step; inside of ``averaged()``,
        that of its end, with the disagreement. Raises IoError where it cannot be written."""
        self._metrics.log(values)

    def _resume(self) -> None:
        """What was done until now belongs to no step."""
        self._trace.resume()
        self._metrics.resume()

    def close(self) -> None:
        """Ends gossiping; the optimizer steps alone from then on, and neighbours that still step
        fail. May be called again."""
        if self._closed:
            return
        self._closed = True
        self._suspicions.at_end(self)
        self._suspicions.drop()
        atexit.unregister(self._at_exit)
        for hook in self._hooks:
            hook.remove()
        self._replaced.undo()
        vars(self._optimizer).pop("_gossip", None)
        try:
            self._metrics.close(self)
        finally:
            self._engine.close()
            if self._transport is not None:
                self._transport.stop()
            self._trace.write(self)
            self._folders.release()
        # A group that outlives destroy_process_group has threads that may abort at exit.
        self._world = dataclasses.replace(self._world, group=None)
