"""What runs behind a Gossip: its steps, from the parameters as read to the engine that mixes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakMethod

import torch
from torch import nn

from gossamer import _core
from gossamer.checks import first_steps
from gossamer.checks.suspicions import Suspicions
from gossamer.records import tracing
from gossamer.records.metrics import Metrics
from gossamer.records.totals import Totals
from gossamer.session import patterns
from gossamer.session.session import Session
from gossamer.session.team import AVERAGED, UNEVEN, Team
from gossamer.step import backward, consensus, replaced_step, restart
from gossamer.step.back import Back
from gossamer.step.carried import Carried, carried_by, carry, masters_of, take_masters
from gossamer.step.handed_over import HandedOver
from gossamer.step.losses import StepLoss
from gossamer.step.own_steps import OwnSteps
from gossamer.step.turns import Turns
from gossamer.tensors import devices, parameters, plain, shards
from gossamer.tensors.fused import FusedState
from gossamer.tensors.trained import Trained
from gossamer.workers import roll_call


class Run:
    """One worker's steps, from the start of a Gossip to its end.

    ``trained``, the engine of ``team`` and ``state``, which a fused optimizer keeps in it, are made
    anew when parameters or values change under it. Collective to make.
    """

    def __init__(
        self, session: Session, trained: Trained, *, trusts_versions: bool, back: Back | None = None
    ) -> None:
        settings = session.settings
        self.trained = trained
        self.totals = Totals()
        self.loaded = parameters.LoadMark()
        self.last_step: _core.StepReport | None = None
        self.is_closed = False
        recipe = tracing.recipe(session, trained.optimizers.word)
        self.trace = tracing.Trace(settings.trace, settings.trace_steps, session.world, recipe)
        self.metrics = Metrics(settings.metrics, session.world, recipe)
        self.loss = StepLoss(session.schedule)
        self._after_step: list[Callable[[Run], None]] = []
        self.handed_over = HandedOver(None if back is None else back.beside)
        self._late = backward.LateWatch()
        self._unsynced = 0  # blocks of no_sync() that are open
        self._trusts_versions = trusts_versions
        self._turns = Turns(len(trained.optimizers.each))
        self._own = OwnSteps(trained.optimizers)
        self._own.follow(session, trained)
        self._passes_at_mix = 0
        engine = self._engine_for(session, trained)
        self.team = Team(session, engine)
        self.state = self._state_for(trained, engine)
        self._start(engine) if back is None else self._start_back(engine, back)
        self._watch_backward()
        self._suspicions = Suspicions(session, trained)

    def _start(self, engine: _core.Engine) -> None:
        with self.team.within("Gossip()"):
            engine.start()
            self._share_what_nobody_trains()

    def _start_back(self, engine: _core.Engine, back: Back) -> None:
        """With a neighbour's state, which is here, in a step that the others have yet to begin."""
        engine.agreed_losses = back.carried.losses
        engine.set_anchors()
        carry(engine, self.trained, self._row(), back.carried)
        back.start(engine, self.state)
        self.metrics.restart(engine.steps_done)

    def after_step(self, call: Callable[[Run], None]) -> None:
        """After each step from now on, beside what else is called then."""
        self._after_step.append(call)

    @property
    def session(self) -> Session:
        """Who mixes with whom, and how."""
        return self.team.session

    # What a user calls.

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """See Gossip.no_sync."""
        self._unsynced += 1
        self.team.engine.set_averaging(False)
        try:
            yield
        finally:
            self._unsynced -= 1
            self.team.engine.set_averaging(self._unsynced == 0)

    @contextlib.contextmanager
    def averaged(self, also: consensus.Also) -> Iterator[nn.Module]:
        """See Gossip.averaged."""
        self._suspicions.at_end(self.trained)
        buffers = self.session.settings.buffers == "averaged"
        agreed = consensus.agreed(self.team, self.trained, buffers, also)
        with contextlib.ExitStack() as stack:
            stack.callback(self.resume)
            with self.team.within(AVERAGED):
                apart = stack.enter_context(agreed)
            yield self.trained.model
            self.metrics.check(self.team.engine, disagreement=apart)

    def disagreement(self) -> float:
        """See Gossip.disagreement."""
        apart = consensus.disagreement(self.team)
        self.metrics.check(self.team.engine, disagreement=apart)
        self.resume()
        return apart

    def carried(self) -> Carried:
        """What a checkpoint has to keep of it; nothing where all is about to start at zero."""
        if self.must_restart():
            return Carried(losses=self.team.engine.agreed_losses)
        return carried_by(self.team.engine, self.trained, self._row())

    def resume(self) -> None:
        """What was done until now belongs to no step."""
        self.trace.resume()
        self.metrics.resume()

    def close(self) -> None:
        """Writes what is to be written, and leaves the others, once they have what was sent."""
        self.is_closed = True
        self._suspicions.end(self.trained)
        engine, transport = self.team.engine, self.session.transport
        try:
            self.metrics.close(engine)
        finally:
            if self.state is not None:
                self.state.release()
            self.team.close()
            if transport is not None:
                transport.stop()
            self.trace.write()
        self.team.leave_group()

    # The step.

    def step(self, which: int, own_step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What ``step()`` of an optimizer does now; ``own_step`` is what it did before."""
        if self.is_closed:
            return own_step(*args, **kwargs)
        with self.team.within(f"step {self.team.engine.steps_done + 1} of the optimizer"):
            devices.refuse_capture(self.trained.named)
            self._before_step("optimizer.step()")
            replaced_step.note_call(self.trained.optimizers.each[which])
            if self._turns.would_end(which):
                self.loss.check(args, kwargs)
            if self.session.averages_gradients(self.trained.rule):
                args, kwargs = backward.average_missed(self.team.engine, args, kwargs)
            self._suspicions.before_step(self.trained)
            if self.state is None:
                return self._unfused_step(which, own_step, *args, **kwargs)
            loss = replaced_step.with_step_hooks(
                self.trained.fused, self._fused_step, *args, **kwargs
            )
            self._end_step()
            return loss

    def mix(self) -> None:
        """See Gossip.step."""
        if self.is_closed or not self._turns.is_under_way:
            return
        with self.team.within("gossip.step()"):
            self._before_step("gossip.step()")
            self.loss.check((), {})
            averaged = self.team.engine.averaged_gradients()
            self._advance(self._resting_groups(), skip=True)
            self.team.engine.take_as_averaged(averaged)  # for optimizers that have yet to step
            self._end_step()

    def step_all(self) -> None:
        """Every optimizer steps with the gradients that are there, whoever has stepped before."""
        self._turns.begin()
        for optimizer in self.trained.optimizers.each:
            optimizer.step()

    def rest(self) -> None:
        """A step that only mixes, of a worker that has no batch left."""
        with self.team.within(UNEVEN):
            self._advance(self._resting_groups(), skip=True)
        if self.state is not None:
            self.state.after_step()
        self._end_step()

    def before_backward(self) -> list[_core.Hyper] | None:
        """What to step with in this backward; None: nothing, all is left to the step."""
        if self.is_closed or self.team.block == AVERAGED or self.must_restart():
            return None
        assert self.state is not None
        self.state.check()
        return self._stepping_groups()

    @property
    def passes_since_mix(self) -> int:
        """How often gradients have been averaged since the last mix."""
        return self.team.engine.gradient_passes - self._passes_at_mix

    def _before_step(self, what: str) -> None:
        if self.team.block == AVERAGED:
            raise RuntimeError(
                f"[Gossip] {what} inside averaged(): the local parameters come back at its end, so "
                "the step would be lost; train outside of it"
            )
        if self.must_restart():
            self.restart()

    def _fused_step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss, optimizer = None, self.trained.fused
        if self.session.settings.update == "backward":
            backward.check_step(optimizer, closure)
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
            self.loss.returned(loss)
        assert self.state is not None
        scale, skip = replaced_step.scaling(optimizer)
        self.state.check()
        self._mix(self._stepping_groups(scale), skip=skip)
        self.state.after_step()
        return loss

    def _unfused_step(
        self, which: int, own_step: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """The optimizer's own step, then the mix if all have stepped."""
        optimizer = self.trained.optimizers.each[which]
        watched = self._suspicions.watched(self.trained, optimizer, own_step)
        loss = self._own.take(which, self.team, self.trained, watched, *args, **kwargs)
        if loss is not None or self._turns.would_end(which):
            self.loss.returned(loss)
        if self._turns.note(which):
            self._mix(self._resting_groups(), skip=True)
            self._end_step()
        return loss

    def _mix(self, groups: list[_core.Hyper], *, skip: bool) -> None:
        self._advance(groups, skip=skip)
        engine = self.team.engine
        if self.session.settings.update == "backward":
            self._late.note(engine.early_buckets)
        if engine.steps_done == 1:
            first_steps.after_first(self.session, self.trained)
        if engine.steps_done == 2:
            first_steps.after_second(self.session, self.trained)

    def _advance(self, groups: list[_core.Hyper], *, skip: bool) -> None:
        """The engine's step."""
        engine = self.team.engine
        self.trained.seats.take()
        self.last_step = engine.step(groups, skip, self.loss.take())
        self._turns.begin()
        self._passes_at_mix = engine.gradient_passes
        self.totals.add(self.last_step)
        roll_call.say_changes(self.session.world.rank, self.last_step)

    def _stepping_groups(self, scale: float = 1.0) -> list[_core.Hyper]:
        """The groups of a fused optimizer as they are now; ``scale`` of the gradients."""
        assert self.trained.rule is not None
        groups = self.trained.fused.param_groups
        options = self.session.settings.pattern_options
        return patterns.stepping_groups(self.trained.rule, groups, options, scale)

    def _resting_groups(self) -> list[_core.Hyper]:
        """For a step in which the engine only mixes."""
        options = self.session.settings.pattern_options
        count = len(self.trained.optimizers.param_groups)
        return [patterns.with_options(_core.Hyper(), options) for _ in range(count)]

    def _end_step(self) -> None:
        self._write_line()
        for call in self._after_step:
            call(self)

    def _write_line(self) -> None:
        if self.last_step is None or not self.metrics.is_on:
            return
        rate = float(self.trained.optimizers.each[0].param_groups[0]["lr"])
        self.metrics.step(self.last_step, rate, self.totals.waited(self.team.engine))

    # Changes between steps.

    def must_restart(self) -> bool:
        """Whether what the optimizer and the model hold is not what the engine was made for."""
        groups = [group["params"] for group in self.trained.optimizers.param_groups]
        return self.loaded.is_set or not self.team.engine.holds(groups) or self.trained.is_changed()

    def adopt(self) -> None:
        """Goes on from the state that was loaded into the optimizer."""
        trained = self.trained
        if trained.kept is not None:
            parameters.check_loaded_state(trained.fused, trained.kept, trained.named)
        if self.state is not None:
            self.state.adopt()

    def restart(self, step: int | None = None, carried: Carried | None = None) -> None:
        """Goes on with other parameters, or with values that nobody was sent, as they are here.

        What the pattern keeps starts at zero unless it is ``carried``: on all ranks alike, else
        corrections would not add up to zero any more. Masters go on, unless values were loaded.
        Collective; see ``restart.read_anew``.
        """
        former, state = self.team.engine, self.state
        goes_on = step is None and not self.loaded.is_set
        masters = masters_of(former, self.trained) if goes_on else {}
        self.loaded()  # until this has been done: a failure is not the end of it
        averaged = former.averaged_gradients()
        steps_done = former.steps_done if step is None else step
        self.trained = restart.read_anew(self.team, self.trained, is_loaded=step is not None)
        self.totals.keep(former)
        losses = former.agreed_losses if carried is None else carried.losses
        former.close()
        engine = self._engine_for(self.session, self.trained)
        self.team.follow(engine)
        self.state = self._state_for(self.trained, engine)
        if state is not None and self.state is None:
            state.release()
        self._own.follow(self.session, self.trained)
        self._passes_at_mix = 0
        engine.agreed_losses = losses
        if carried is None:
            take_masters(engine, self.trained, masters)
        engine.set_anchors()
        if carried is not None:
            carry(engine, self.trained, self._row(), carried)
        engine.start_at(steps_done)
        self._watch_backward()
        engine.take_as_averaged(averaged)  # gossip of gradients would mix them twice
        self.loaded.clear()
        if step is not None:
            self._turns.begin()
            self.metrics.restart(step)
        self.resume()

    def _row(self) -> _core.Pattern:
        return self.session.row(self.trained.rule)

    def _engine_for(self, session: Session, trained: Trained) -> _core.Engine:
        return shards.make_engine(
            trained.model,
            session.transport,
            trained.named,
            session.engine_options(trained.rule),
            bucket_bytes=session.bucket_bytes(trained.bytes),
            recorder=self.trace.recorder,
            beside=trained.seats.found,
            mixes=session.settings.pattern != "allreduce",
        )

    def _state_for(self, trained: Trained, engine: _core.Engine) -> FusedState | None:
        if trained.rule is None:
            return None
        return FusedState(
            trained.fused,
            trained.rule,
            engine,
            trained.tensors,
            mixes_momentum=self.session.row(trained.rule).mixes_momentum,
        )

    def _watch_backward(self) -> None:
        engine, session, trained = self.team.engine, self.session, self.trained
        if session.averages_gradients(trained.rule):
            backward.average_gradients(
                engine,
                trained,
                session,
                bucket_bytes=session.bucket_bytes(trained.bytes),
                at_end=not self._trusts_versions,
            )
            engine.set_averaging(self._unsynced == 0)
        elif session.settings.update == "backward":
            backward.step_in_backward(engine, WeakMethod(self.before_backward))
        elif self._own.checks_late:
            return  # reading a gradient on arrival would wait for the device
        elif session.settings.check_gradients and self._trusts_versions:
            engine.watch_gradients()

    def _share_what_nobody_trains(self) -> None:
        """Everybody gets rank 0's frozen parameters and buffers."""
        model, mixed = self.trained.model, {id(p) for p in self.trained.tensors}
        frozen = [each for each in model.named_parameters() if id(each[1]) not in mixed]
        self.team.engine.broadcast(plain.of_all([*frozen, *model.named_buffers()]))
