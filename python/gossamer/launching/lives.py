"""A job that begins anew where nobody is left who has its state.

Each life of a job has a folder of members of its own, so that nobody takes a card of the life
before for one of this. The launchers of several hosts agree on the life without a word: one is over
once no worker has its state, which all of them see in its folder.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
from pathlib import Path

from gossamer.launching.job import Job
from gossamer.launching.supervisor import Supervisor

_NAME = "life-"


def in_lives(job: Job, anew: int) -> int:
    """Runs it, and at most so often anew; the exit code."""
    first = _newest(job.members)
    if not job.comes_back:
        for life in range(1, first + 1):  # of an earlier job
            shutil.rmtree(_folder(job.members, life), ignore_errors=True)
        first = 0
    for life in range(first, anew + 1):
        supervisor = Supervisor(_in_life(job, life, first), waits_for_another=life < anew)
        code = supervisor.run()
        if not supervisor.has_lost_all or life == anew:
            return code
        said = f"[launch] the job begins anew ({life + 1} of {anew}), with all its workers"
        print(said, file=sys.stderr, flush=True)
    return code


def _in_life(job: Job, life: int, first: int) -> Job:
    return dataclasses.replace(
        job,
        members=_folder(job.members, life),
        lives_before=[_folder(job.members, each) for each in range(life)],
        comes_back=job.joins_later() or (job.comes_back and life == first),
        workers=[],
    )


def _folder(members: Path, life: int) -> Path:
    return members / f"{_NAME}{life}" if life else members


def _newest(members: Path) -> int:
    names = [path.name.removeprefix(_NAME) for path in members.glob(f"{_NAME}*")]
    return max((int(name) for name in names if name.isdecimal()), default=0)
