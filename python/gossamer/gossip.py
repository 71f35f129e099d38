"""Gossip: the one new line in a DDP script."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from gossamer import _core, habits
from gossamer.base import words
from gossamer.base.closing import AtExit, Closing
from gossamer.checkpoint import handing_over, loading, saving
from gossamer.checkpoint.folder_locks import FolderLocks
from gossamer.gossip_examples import with_examples
from gossamer.records.totals import Event
from gossamer.session import session
from gossamer.session.settings import Settings
from gossamer.step import consensus, gathered, loop_state, means
from gossamer.step.meeting import Given, meet_all
from gossamer.step.replaced_step import ReplacedStep
from gossamer.step.run import Run
from gossamer.step.runs import remember
from gossamer.tensors import beside, parameters, wrappers
from gossamer.uneven_epochs import uneven
from gossamer.workers import lasting_group, members
from gossamer.workers.world import find_seat, own_folder


@with_examples
class Gossip(habits.NoModule, Closing):
    """Mixes a model's parameters with those of neighbouring workers in every optimizer step.

    The training loop stays as it is: ``optimizer.step()`` steps and mixes. Every worker calls it
    equally often. ``torch.optim.SGD``, ``Adam``, ``AdamW`` and ``gossamer.AccumAdam``,
    ``AccumAdamW`` run fused with the mix on their own ``state`` and ``param_groups``; any other
    optimizer takes its own step first. So do torch's where one worker is alone: under ``"cwa"``,
    ``"atc"`` and ``"allreduce"`` that is plain training, bit for bit.

    Args:
        model: not wrapped in DistributedDataParallel.
        optimizer: over the model's parameters; Accelerate's and Lightning's wrappers are opened.
            Or a list of several, ``[muon, adamw]``, in any order that is the same on every rank.
            A parameter may stand in one of them. Each takes its own step in its ``step()``. They
            mix together: in the call by which each has stepped since the last mix, a step that a
            GradScaler skips included, or in ``gossip.step()``. Then pattern is ``"cwa"``,
            ``"atc"``, ``"allreduce"``, ``"gradient_gossip"``, ``"exact_diffusion"`` or ``"extra"``,
            and update ``"step"``.
        topology: a name of ``gossamer topology --list``, a file of matrices (NAME.json), a schedule
            of ``make_schedule`` or ``schedule_from_matrices``, or a whole method by the commands'
            name, ``Method("aer:int8:rounds=2")``; ``"auto"``: see ``plan``.
        pattern: ``"cwa"``, the default: parameters travel during forward and backward. ``"atc"``:
            they travel after the step, which waits for them. ``"allreduce"``: every backward
            averages the gradients over all workers, as DistributedDataParallel does. The topology
            is then unused. ``"gradient_gossip"``: gradients are averaged over the topology, too.
            Where an optimizer takes its own step, a backward ends with the averages in ``.grad``.
            ``"exact_diffusion"``, ``"extra"`` and ``"gradient_tracking"`` correct what unequal
            data do. ``"dmsgd"`` and ``"qg_dmsgd"`` mix the momentum, too. docs/methods.md has the
            conditions: some need a static symmetric topology or a certain optimizer.
        pattern_options: numbers by name for patterns that have options.
        group: the process group, or the mesh of one dimension, to gossip in; by default all ranks.
            Over other ranks the model may be in DistributedDataParallel or ``fully_shard``.
        mix_state: what is mixed beside the parameters, as they are. Names of the optimizer's state,
            such as ``("z",)`` of a schedule-free one; modules and tensors, such as a moving average
            of the parameters. ``averaged()`` has their means, ``save()`` keeps them. A mapping says
            from how many steps to how many: ``{"z": 1, ema: 8}``. With names the optimizer takes
            its own step. Then pattern is ``"cwa"``, ``"atc"`` or ``"gradient_gossip"``.
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
        lost: ``"error"``, where a worker is lost, or ``"go_on"`` without it: its edges are off, and
            nobody waits. At most 32 steps later the topology is formed anew for those that are
            left. Under ``"allreduce"`` means are over those that are left. Collective methods are,
            too. Corrections and trackers begin anew. With ``late="skip"``, or matrices of your own,
            the topology must be undirected. docs/lost-workers.md says what each pattern does.
        min_workers: with ``lost="go_on"``, how many workers one must hear, itself included, to go
            on without those of whom it hears nothing. 0: more than it misses, and of two equal
            halves that one goes on which has the lowest rank. The others wait, and end once the
            network is back. Those that are known to have ended do not count.
        suspect_s: with ``lost="go_on"``, a worker is lost after so many seconds without a word, 3
            or more. Give more where a process may stand still. One that ends is noticed at once.
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
    0's parameters. Raises ValueError on every rank when they differ, or where a parameter stands in
    two optimizers, TypeError for what is no optimizer, TransportError for a rank that does not come
    or leaves.

    Between steps, on every rank alike, parameters may be added to the optimizer, replaced, moved to
    another group, frozen and thawed, and a state_dict loaded into the model. A frozen parameter
    does not travel; in the step after it was frozen it takes the mean of all workers. Values may be
    set by hand at any time: the mix adds to them what it would have added.
    """

    @words.checked("Gossip")
    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
        *,
        topology: str | _core.Schedule | _core.Method = "alternating_exponential_ring",
        pattern: str | None = None,
        pattern_options: Mapping[str, float] | None = None,
        group: dist.ProcessGroup | dist.device_mesh.DeviceMesh | None = None,
        mix_state: beside.MixState = None,
        buffers: str = "averaged",
        check_gradients: bool = True,
        check_payloads: bool = True,
        update: str = "step",
        codec: str = "fp32",
        late: str = "wait",
        staleness: int = 1,
        lost: str = "error",
        min_workers: int = 0,
        suspect_s: float = 5.0,
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
        asked = Settings.of(locals())
        inner, ddp = wrappers.unwrapped(model)
        met = meet_all(Given(inner, optimizer, mix_state, ddp, find_seat(group)), asked)
        self.plan: tuple[str, ...] = met.plan
        made = partial(Run, trusts_versions=ddp is None)
        if met.world.comes_back:
            self._run = handing_over.come_back(met.world, met.settings, met.trained, made)
        else:
            begun = session.begin(met.world, met.settings, met.trained.rule)
            self._run = made(begun, met.trained)
        if met.settings.lost == "go_on":
            self._run.after_step(handing_over.give)
            if not met.world.subfolder:
                lasting_group.go_by(met.world.size, self._run.team.say)
        self._folders = FolderLocks()
        self._patch(inner, met.trained.optimizers.each)
        remember(self, self._run)
        self._run.resume()

    def _patch(self, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        self._optimizers = optimizers
        self._replaced = [
            ReplacedStep(each, partial(self._run.step, which))
            for which, each in enumerate(optimizers)
        ]
        for each in optimizers:
            vars(each)["_gossip"] = self
        self._hooks = [each.register_load_state_dict_post_hook(self._adopt) for each in optimizers]
        self._hooks += [
            each.register_load_state_dict_pre_hook(parameters.check_loaded_groups)
            for each in optimizers
        ]
        self._hooks += [
            module.register_load_state_dict_post_hook(self._run.loaded)
            for module in model.modules()
        ]
        self._at_exit = AtExit(self)

    def _adopt(self, _: torch.optim.Optimizer) -> None:
        self._run.adopt()

    def __repr__(self) -> str:
        return habits.described(self._run)

    def step(self) -> None:
        """Mixes now, where some of several optimizers have stepped since the last mix.

        All have to step again before the next mix. Does nothing where none has stepped since: so
        always with one optimizer, whose own ``step`` mixes. It steps no optimizer. Collective:
        every rank calls it after the same steps. Raises as ``optimizer.step()`` does:
        TransportError for a rank that does not come, RuntimeError inside ``averaged()``, ValueError
        without a loss that the topology follows.
        """
        self._run.mix()

    def no_sync(self) -> contextlib.AbstractContextManager[None]:
        """For the backwards of a step but the last, under "allreduce" and update="backward".

        Gradients that no later backward averages are averaged in ``optimizer.step()``.
        """
        return self._run.no_sync()

    def observe(self, loss: float | torch.Tensor) -> None:
        """Says this worker's loss of the coming step to a schedule that follows its mean over all
        (``adaptive_average`` of ``make_schedule``), as a closure does that returns it."""
        self._run.loss.say(loss)

    def averaged(
        self, *, also: consensus.Also = ()
    ) -> contextlib.AbstractContextManager[nn.Module]:
        """The model with the mean of all workers' parameters; afterwards the local ones are back.

        This is the model to evaluate and to save. ``also``: other modules and tensors that are the
        mean meanwhile, such as a moving average of the parameters; whole numbers stay. Collective:
        every worker must enter and leave it, after equally many steps. ValueError on every worker
        where buffers differ in name, shape or dtype; RuntimeError inside of itself.
        """
        return self._run.averaged(also)

    def disagreement(self) -> float:
        """√(mean over workers of ‖xᵢ - x̄‖²) / ‖x̄‖, how far the workers are apart. Collective."""
        return self._run.disagreement()

    def mean(
        self, tensors: torch.Tensor | Iterable[torch.Tensor]
    ) -> torch.Tensor | list[torch.Tensor]:
        """The mean over all workers of one tensor, or of each in a list, as new tensors.

        Of any shapes and floating-point dtypes, formed in double precision. Collective, with equal
        shapes and dtypes. TypeError for whole numbers, ValueError on every worker where they
        differ.
        """
        return means.mean(self._run.team, tensors)

    def gather(self, value: Any) -> dict[int, Any]:
        """What each worker says, by rank: with ``lost="go_on"`` of those that are left.

        A value that JSON can say: None, numbers, texts, lists and dicts of them. In place of a
        collective of torch, which would wait for the lost: ``gossip.gather(None)`` is a barrier,
        and ``min(gossip.gather(None))`` is the rank that prints. Collective. ValueError on every
        worker where one has another value.
        """
        return gathered.gather(self._run.team, value)

    # Epochs and checkpoints.

    def uneven(self) -> contextlib.AbstractContextManager[None]:
        """Goes around an epoch in which some workers have more batches than others.

        A worker without a batch goes on mixing without stepping, until all have left after equally
        many steps. Under "allreduce" its gradients count as zero, and all end with parameters and
        optimizer state of the last to leave. An exception leaves at once. Collective; other
        collective methods raise RuntimeError inside. For several, ``gossamer.uneven(a, b)``.
        """
        return uneven(self)

    def save(self, path: str | os.PathLike[str], *, keep: int = 1) -> None:
        """Saves all workers in a folder, whole or not at all; the ``keep`` newest stay there.

        That is parameters, buffers, the optimizers' states and settings, what the pattern keeps and
        the number of steps, not schedulers, a GradScaler or the place in the data. Where only some
        of several optimizers have stepped since the last mix, it mixes before, as ``step`` does.
        Collective, after equally many steps. Raises IoError or ValueError on every rank,
        TransportError for a rank that does not come. Shards are saved by the ranks that hold them.
        """
        run = self._run
        run.team.refuse_inside("save()")
        run.mix()  # see Note [One mix for all]
        place = own_folder(run.session.world, path)
        saving.save(run.team, run.trained, run.carried(), self._folders, place, keep)
        run.resume()

    def load(self, path: str | os.PathLike[str]) -> None:
        """Goes on from the newest that ``save`` saved, with the same model and classes of
        optimizers in the same order, or from ``path/step-…``. Collective.

        As many workers as saved go on with the same bits. Another number starts from the means of
        parameters, floating-point buffers and optimizer states over all that saved; corrections and
        trackers of the pattern then start at zero. Raises IoError or ValueError on every rank, and
        changes nothing, where that is not possible.
        """
        run = self._run
        with torch.inference_mode(False):  # else its state could not be stepped with
            run.restart(*loading.load(run.team, run.trained, path))

    def hand_over(self, **objects: Any) -> None:
        """Gives what these objects of the loop know to every worker that comes back from now on:
        ``gossip.hand_over(scheduler=scheduler, scaler=scaler)``, before the first step.

        On a worker that comes back itself it loads what it was given. A scheduler that is stepped
        with the optimizer is then stepped up to ``steps_done``. Each object has ``state_dict`` and
        ``load_state_dict``. TypeError for others; ValueError for a state that holds more than
        tensors, numbers and texts, and where ranks give other names.
        """
        loop_state.hand_over(self._run, objects)

    @property
    def steps_done(self) -> int:
        """Steps so far: 0 for a new job, those of the checkpoint after ``load``, and where the
        others are for a worker that has come back. ``for step in range(gossip.steps_done, total)``
        is right for all of them."""
        return self._run.team.engine.steps_done

    @property
    def last_step(self) -> _core.StepReport | None:
        """What the last step did; None before the first."""
        return self._run.last_step

    @property
    def is_fused(self) -> bool:
        """Whether the optimizer's update runs in one pass with the mix."""
        return self._run.state is not None

    def stats(self) -> dict[str, Any]:
        """Numbers of this worker so far: its ``steps``; ``exposed_s``, the seconds of waiting for
        others; ``hidden_s``, the seconds of transfers that nobody waited for. ``skipped`` are late
        payloads by bucket. ``lost`` says why, by rank, of workers that it goes on without.
        ``edges`` has the payload bytes ``sent`` and ``received`` by peer."""
        return self._run.totals.stats(self._run.team.engine)

    def events(self) -> list[Event]:
        """Who was lost and who has come back since the last call, as this worker saw it: a list of
        named tuples with ``kind`` ("lost" or "back"), ``rank``, ``step`` and ``why``. Of "back"
        the step is the first one that the worker is there again. Without ``lost="go_on"`` the list
        is empty. Of more than 10,000 that nobody takes the newest are kept."""
        return self._run.totals.take_events()

    def log(self, **values: Any) -> None:
        """Adds values to the next line of ``metrics``, such as ``loss=loss``: numbers, texts and
        tensors of one element. The next line is that of the next step; inside of ``averaged()``,
        that of its end, with the disagreement. ``samples=len(x)`` counts samples: those of all
        batches of a step are added up, and its line has ``samples_per_s``, too. Where nobody
        is given lines, nothing happens. Raises IoError where the line cannot be written."""
        self._run.metrics.log(values)

    def close(self) -> None:
        """Ends gossiping, once the others have what this worker sent in its steps; it waits for
        nobody where an exception is under way. The optimizer steps alone from then on, and
        neighbours that take more steps fail. May be called again."""
        run = self._run
        if run.is_closed:
            return
        self._at_exit.cancel()
        lasting_group.go_no_more_by(run.team.say)
        for hook in self._hooks:
            hook.remove()
        for replaced, optimizer in zip(self._replaced, self._optimizers, strict=True):
            replaced.undo()
            vars(optimizer).pop("_gossip", None)
        try:
            run.close()
        finally:
            self._folders.release()

    def leave(self) -> None:
        """Ends gossiping for this worker alone, between two of its steps: the others go on without
        it, at once. `gossamer launch` does not start it again, and the job is not over by that.

        Not collective. Needs ``lost="go_on"``; raises RuntimeError elsewhere."""
        if self._run.session.settings.lost != "go_on":
            raise RuntimeError(
                "[Gossip] leave() ends this worker alone, got lost='error', with which all others "
                "would fail; make the Gossip with lost='go_on'"
            )
        members.mark_as_left(self._run.session.world.rank_in_job)
        self.close()
