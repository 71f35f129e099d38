"""Watches the workers of one host, and starts a lost one again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

from gossamer.launching.job import Job, Worker
from gossamer.launching.processes import Process, adopt_orphans, bury_orphans
from gossamer.launching.spares import Spares, spare_command

_NAP_S = 0.05
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_SHORT_S = 10.0  # a process that ends sooner may fail again at once
_GRACE_S = 30.0
_LOOK_ELSEWHERE_S = 1.0
_DONE, _FAILED, _INTERRUPTED = 0, 1, 130
_STOPPED = {128 + int(number): number for number in (signal.SIGTERM, signal.SIGHUP)}
"""Exit codes of programs that were told to stop, and did: see StopOnSignal."""
_NOBODY = "no worker has the state of the run any more"
_SO_IT_ENDS = ", so the job ends; start it again, from its last checkpoint"
_HOST_ENDS = (
    "it gossips in a part of the job, where none comes back, so this host's workers all end"
)
_PASSED_ON = (2, 3, 4)
"""Exit codes of the project's programs that say why: wrong input, not finite, others are lost."""


def pause_s(in_a_row: int) -> float:
    """Before the next start of a worker that has ended so often after a short life."""
    doubled = min(in_a_row - 1, 10)  # a float has no room for all
    return min(_FIRST_PAUSE_S * 2.0**doubled, _LONGEST_PAUSE_S) if in_a_row > 1 else 0.0


class Supervisor:
    """The processes of this host. They are in process groups of their own: what ends this one does
    not end them, and signals to it are passed on."""

    def __init__(self, job: Job, *, waits_for_another: bool = False) -> None:
        """``waits_for_another``: whether another life of the job follows where all are lost, also
        those of other hosts."""
        self.has_lost_all = False
        self._job = job
        self._waits = waits_for_another
        self._told = 0  # the signal that has come
        self._looks_at = 0.0  # when this host asks the others' launchers again
        self._stopped = 0  # the exit code of a worker that was told to stop
        self._codes: set[int] = set()  # with which workers have ended for good
        self._spares = Spares(job.spares, spare_command(job.command) or [], job.variables_of_all())
        first = job.host * job.per_host
        job.workers = [Worker(first + k, k) for k in range(job.per_host)]

    def run(self) -> int:
        """Until all are over, or a signal comes; the exit code."""
        try:
            return self._run()
        finally:
            self._spares.end()

    def _run(self) -> int:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)
        adopt_orphans()
        self._job.begin()
        if self._job.joins_later() and not self._wait_for_the_job():
            return 128 + self._told if self._told else _FAILED
        for worker in self._job.workers:
            if self._job.comes_back:
                worker.starts = self._job.starts_before(worker)
            else:
                self._job.forget(worker)
        for worker in self._job.workers:
            if not self._start(worker):
                self._end_all()
                return _FAILED
        while not all(worker.is_over for worker in self._job.workers):
            if self._told:
                name = signal.Signals(self._told).name
                self._say(f"{name}: it is passed on to the workers, who have {_GRACE_S:g} s")
                self._end_all()
                return _INTERRUPTED if self._told == signal.SIGINT else 128 + self._told
            for worker in self._job.workers:
                if not self._look(worker):
                    self._end_all()
                    return self._why()
            if all(map(self._job.has_joined, self._job.workers)):
                self._spares.look()  # not before: the workers' own start needs the processors
            elif self._has_failed_elsewhere():
                self._end_all()
                return _FAILED
            bury_orphans(self._known())
            time.sleep(_NAP_S)
        if any(worker.has_finished or worker.has_left for worker in self._job.workers):
            self._job.end()
            return _DONE
        if self._waits and not self._stopped and not self._wait_for_the_end():
            return 128 + self._told
        return self._stopped or self._why()

    def _wait_for_the_end(self) -> bool:
        """Until somebody has finished, or nobody has the state. False: a signal came first."""
        while self._job.has_state() and not self._job.is_over() and not self._told:
            time.sleep(_NAP_S)
        self.has_lost_all = not self._job.is_over() and not self._told
        return not self._told

    def _wait_for_the_job(self) -> bool:
        """False: a signal came first, or the job's start has failed."""
        has_said = False
        while not all(map(self._job.has_joined, self._job.workers)) and not self._told:
            if self._has_failed_elsewhere():
                return False
            if not has_said:
                self._say(f"waits until the job begins that has its cards in {self._job.members}")
            has_said = True
            time.sleep(_NAP_S)
        return not self._told

    def _why(self) -> int:
        """The exit code where nobody has finished: the workers' own, if it says why."""
        code = next(iter(self._codes)) if len(self._codes) == 1 else _FAILED
        return code if code in _PASSED_ON else _FAILED

    def _has_failed_elsewhere(self) -> bool:
        """Whether the start of another host has failed, so that the workers here wait in vain."""
        if self._job.hosts == 1 or time.monotonic() < self._looks_at:
            return False
        self._looks_at = time.monotonic() + _LOOK_ELSEWHERE_S
        failure = self._job.failure_elsewhere()
        if failure:
            has_workers = any(worker.process is not None for worker in self._job.workers)
            here = "the workers here are ended as well" if has_workers else "nothing begins here"
            self._say(f"{failure}; {here}")
        return bool(failure)

    def _known(self) -> set[int]:
        """The processes that are looked at by themselves."""
        workers = {w.process.pid for w in self._job.workers if w.process is not None}
        return workers | self._spares.pids()

    def _take(self, number: int, _: object) -> None:
        self._told = number

    def _start(self, worker: Worker) -> bool:
        """Or later, where a spare is about to be ready. False: it cannot be started."""
        if self._spares.is_importing():
            return True
        worker.began = time.monotonic()
        try:
            self._job.count_start(worker)
            variables = self._job.variables_of(worker)
            worker.process = self._spares.take(variables) or subprocess.Popen(
                list(self._job.command),
                env={**os.environ, **self._job.variables_of_all(), **variables},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            problem = f"cannot start {self._job.command[0]}: {error}"
            self._say(problem)
            self._job.tell_failure(problem)
            return False
        return True

    def _look(self, worker: Worker) -> bool:
        """False: the job cannot go on."""
        if worker.is_over:
            return True
        if worker.process is None:
            return time.monotonic() < worker.starts_at or self._start(worker)
        code = worker.process.poll()
        if code is None:
            return True
        worker.process = None
        if self._job.take_leave(worker):
            self._job.lose_state(worker)
            self._say(f"rank {worker.rank} has left, the others go on")
            worker.is_over = worker.has_left = True
            return True
        if code in _STOPPED:
            self._say(f"rank {worker.rank} has stopped as {_STOPPED[code].name} asks")
            self._stopped = code
            worker.is_over = True
            return True
        if code == 0:
            worker.is_over = worker.has_finished = True
            with contextlib.suppress(OSError):
                self._job.mark_of(worker).touch()
            return True
        return self._take_loss(worker, code)

    def _take_loss(self, worker: Worker, code: int) -> bool:
        """Of a worker that has ended neither as it should nor as it was told."""
        took = time.monotonic() - worker.began
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        ended = f"rank {worker.rank} ended {how} after {took:.0f} s"
        if not self._job.has_joined(worker):
            self._codes.add(code)
            self._say(f"{ended}, before it had come to the others, who are ended as well")
            self._job.tell_failure(f"{ended}, before it had come to the others")
            return False
        if self._job.is_over():
            said = f"{ended}; it is not started again, others have finished"
            return self._leave_over(worker, code, said)
        if self._job.is_taken_over(worker):
            said = f"{ended}; it is not started again, another launcher has done that"
            return self._leave_over(worker, code, said)
        is_of_a_part = self._job.is_of_a_part(worker)
        if is_of_a_part:
            self._end_host()
        for each in self._job.workers if is_of_a_part else [worker]:
            self._job.lose_state(each)
        if not self._job.has_state():
            self._codes.add(code)
            self.has_lost_all = True
            self._say(f"{ended}; {_NOBODY}{'' if self._waits else _SO_IT_ENDS}")
            return False
        if is_of_a_part:
            return self._leave_over(worker, code, f"{ended}; {_HOST_ENDS}")
        if worker.restarts >= self._job.restarts:
            said = f"{ended}; it is not started again, the others go on"
            return self._leave_over(worker, code, said)
        worker.in_a_row = worker.in_a_row + 1 if took < _SHORT_S else 0
        worker.restarts += 1
        worker.starts += 1
        worker.starts_at = time.monotonic() + pause_s(worker.in_a_row)
        again = f"{worker.restarts} of {self._job.restarts}"
        self._say(f"{ended}; it is started again ({again}), the others go on")
        return True

    def _leave_over(self, worker: Worker, code: int, text: str) -> bool:
        self._codes.add(code)
        self._say(text)
        worker.is_over = True
        return True

    def _end_host(self) -> None:
        """At once: a worker that is told to stop would stop those of the other hosts as well."""
        for worker in self._job.workers:
            if worker.process is not None:
                _signal(worker.process, signal.SIGKILL)
                worker.process.wait()
                worker.process = None
            worker.is_over = True

    def _say(self, text: str) -> None:
        print(f"[launch] {text}", file=sys.stderr, flush=True)

    def _end_all(self) -> None:
        """Passes the signal on, and waits."""
        number = self._told or signal.SIGTERM
        running = [w.process for w in self._job.workers if w.process is not None]
        for process in running:
            _signal(process, number)
        limit = time.monotonic() + _GRACE_S
        for process in running:
            try:
                process.wait(max(0.0, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()


def _signal(process: Process, number: int) -> None:
    """To all of its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
