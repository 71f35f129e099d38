"""Runs that may be taken away: all workers save after the same step when one is told to stop.

See Note [Who stops when] in gossamer/engine/stop_agreement.h. A thread looks for news, so that a
worker that waits for others anywhere, be it in torch's own barrier, keeps nobody waiting.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterable
from types import FrameType
from typing import Any, NoReturn

from torch.utils.data._utils import signal_handling

from gossamer import _core
from gossamer.base.closing import AtExit, Closing
from gossamer.step.run import Run
from gossamer.step.runs import run_of
from gossamer.tensors import shards

_NAP_S = 0.02

_watched: weakref.WeakSet[Run] = weakref.WeakSet()
_open: set[StopOnSignal] = set()


class StopOnSignal(Closing):
    """Stops all workers after the same step when one of them is told to, so that they can save.

    Example::

        with gossamer.StopOnSignal(gossip) as stop:
            for batch in loader:
                ...
                optimizer.step()
                if stop.is_due():
                    gossip.save("checkpoint")
                    stop.leave()

    One signal to one rank is enough. Another one, and one that comes after the last ``is_due()``,
    do what they would without this.

    Args:
        gossip: whose steps are counted. It has one StopOnSignal at most, from first to last.
        grace_s: a rank that got a signal leaves after so long in any case. Stay below what the
            scheduler gives; torchrun and Kubernetes give 30 s.
        signals: numbers. One that is ignored, as SIGHUP is under nohup, stays so.
        all_stop: False: only the rank that got the signal stops, after its step, and the others go
            on without it. Needs ``lost="go_on"``.

    torchrun and Slurm tell data loaders' processes, too. Those that are forked meanwhile go on
    until the loader ends them; make it before the loaders start theirs.

    With ``lost="go_on"`` it stops those that are left.

    Collective, in the main thread. Raises ValueError elsewhere, for a second one, for a grace that
    is not above 0, and for ``all_stop=False`` where the others would fail.
    """

    def __init__(
        self,
        gossip: Any,
        *,
        grace_s: float = 25.0,
        signals: Iterable[int] = (signal.SIGTERM, signal.SIGHUP),
        all_stop: bool = True,
    ) -> None:
        run = run_of(gossip, "StopOnSignal")
        goes_on = run.session.settings.lost == "go_on"
        described = functools.partial(_described, run, grace_s, all_stop)
        if goes_on:  # one that comes back makes its own while the others train
            described()
        else:
            run.team.agree("StopOnSignal()", described, compares_steps=False)
        _watched.add(run)
        _keep_loaders()
        self._run = run
        self._number = 0  # the signal for which all stop
        self._grace_s = grace_s
        self._home = os.getpid()
        transport = run.session.transport
        done = run.team.engine.steps_done
        self._agreement = (
            _core.StopAgreement(transport, done, goes_on=goes_on)
            if transport is not None and all_stop
            else None
        )
        self._told = 0
        self._told_at = 0.0
        self._ends_at: int | None = None
        self._is_closed = threading.Event()
        self._before = {
            number: signal.signal(number, self._hear)
            for number in signals
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        _open.add(self)
        self._watcher = threading.Thread(target=self._watch, name="StopOnSignal", daemon=True)
        self._watcher.start()
        self._at_exit = AtExit(self)

    @property
    def signals(self) -> tuple[int, ...]:
        """The numbers that it hears."""
        return tuple(self._before)

    def is_due(self) -> bool:
        """Whether this step is the last: True on every rank after the same one. To be called after
        each step; with FSDP or DDP inside of hosts all ranks of a host wait for each other in it.
        Raises TransportError where another worker is lost meanwhile, with
        ``lost="go_on"`` only where the others stop without this one.

        Example::

            with gossamer.StopOnSignal(gossip) as stop:
                assert not stop.is_due()
        """
        with self._run.team.within("StopOnSignal.is_due()"):
            return self._is_last(self._run.team.engine.steps_done)

    def leave(self) -> NoReturn:
        """Ends the process with 128 and the signal's number, as schedulers expect it."""
        sys.exit(128 + (self._number or self._signal()))

    def close(self) -> None:
        """What the signals did before, they do again. May be called again."""
        if self._is_closed.is_set():
            return
        self._is_closed.set()
        _open.discard(self)
        self._watcher.join()
        self._agreement = None
        self._at_exit.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._told != 0 and self._ends_at is None and sys.exc_info()[0] is None:
            signal.raise_signal(self._told)  # nobody has asked since

    def _is_last(self, done: int) -> bool:
        if self._agreement is None:
            is_last = self._told != 0
        else:
            is_last = self._agreement.is_last(done, self._told)
        # Ranks with shards or copies of one model gossip in groups, of which each agrees by itself.
        # The first one that comes to its last step decides: all its ranks, on all hosts, do so.
        self._number = self._signal() if is_last else 0
        world = self._run.session.world
        if world.subfolder:
            tensors = self._run.trained.tensors
            self._number = shards.largest(self._number, tensors, world.copies)
        self._ends_at = done if self._number else None
        return self._number > 0

    def _signal(self) -> int:
        return self._told or (0 if self._agreement is None else self._agreement.signal)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._home:
            return _hear_in_fork(number)
        if self._told != 0:
            before = self._before[number]
            if callable(before):
                before(number, frame)
            elif before is signal.SIG_DFL:
                signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)
            return None
        self._told, self._told_at = number, time.monotonic()
        return None

    def _watch(self) -> None:
        while not self._is_closed.wait(_NAP_S):
            if self._agreement is not None:
                self._agreement.look(self._told)
            if self._told != 0 and time.monotonic() - self._told_at > self._grace_s:
                name, rank = signal.Signals(self._told).name, self._run.team.session.world.rank
                print(
                    f"[StopOnSignal] rank {rank} leaves {self._grace_s:g} s "
                    f"after {name}, before all have come to the same step",
                    file=sys.stderr,
                    flush=True,
                )
                os._exit(128 + self._told)


def _described(run: Run, grace_s: float, all_stop: bool) -> list[str]:
    """What is wrong here; nothing has to be the same."""
    if not grace_s > 0:
        raise ValueError(f"[StopOnSignal] grace_s must be above 0, got {grace_s:g}")
    if threading.current_thread() is not threading.main_thread():
        raise ValueError(
            "[StopOnSignal] signals reach the main thread only, got thread "
            f"'{threading.current_thread().name}'; make it in the main thread"
        )
    if run in _watched:
        raise ValueError(
            "[StopOnSignal] a Gossip has one, got a second; make it once, before the first epoch"
        )
    if not all_stop and run.session.settings.lost == "error":
        raise ValueError(
            "[StopOnSignal] all_stop=False ends one worker alone, got a Gossip with lost='error', "
            "with which all others would fail; make it with lost='go_on'"
        )
    return []


def _hear_in_fork(number: int) -> None:
    """What the signal does in a process that was forked and set nothing of its own."""
    if number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


@functools.cache
def _keep_loaders() -> None:
    """A signal to a process group would end data loaders' processes before their batches are used,
    by the handler that they set when they begin: see torch.utils.data._utils.worker."""
    own = getattr(signal_handling, "_set_worker_signal_handlers", None)
    if own is None:
        return

    def set_handlers() -> None:
        own()
        numbers = {number for each in _open for number in each.signals}
        _core.leave_signals_to_parent(sorted(numbers))

    signal_handling._set_worker_signal_handlers = set_handlers
