"""`gossamer launch`: starts the workers of one host, and starts a lost one again.

It coordinates nothing: workers find each other by themselves, and where it ends they go on. The
launchers of several hosts share nothing but the folder of GOSSAMER_MEMBERS.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from gossamer.launching.job import Job
from gossamer.launching.lives import in_lives
from gossamer.launching.ports import free_port
from gossamer.launching.spares import spare_command

_WRONG = 2


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        return _refuse("what the workers run is missing; put it at the end: -- python train.py")
    if given.workers < 1 or given.hosts < 1 or not 0 <= given.host < given.hosts:
        return _refuse(
            f"a host is one of --hosts, with one worker or more, got --workers {given.workers} "
            f"--hosts {given.hosts} --host {given.host}"
        )
    if given.spares < 0 or (given.spares and spare_command(command) is None):
        return _refuse(
            f"--spares {given.spares} needs a command that is python train.py or python -m module, "
            f"got {shlex.join(command)}; a spare is a Python that has imported torch already"
        )
    if given.anew < 0:
        return _refuse(f"--anew is how often the whole job may begin anew, got {given.anew}")
    if given.begin < 0:
        return _refuse(f"--begin is how many of the --hosts begin, got {given.begin}")
    if given.hosts > 1 and not (given.master and given.members):
        return _refuse(
            "several hosts need --master HOST:PORT, of host 0, and --members, a folder that all of "
            "them see"
        )
    name, _, port = (given.master or f"127.0.0.1:{free_port()}").rpartition(":")
    if not name or not port.isdecimal():
        return _refuse(f"--master is HOST:PORT, got {given.master}")
    own = None if given.members else Path(tempfile.mkdtemp(prefix="gossamer-"))
    members = own or Path(given.members).absolute()
    job = Job(
        *(command, given.workers, given.hosts, given.host, (name, int(port)), members),
        restarts=given.restarts,
        spares=given.spares,
        comes_back=given.come_back or 0 < given.begin <= given.host,
        hosts_at_first=given.begin if given.begin < given.hosts else 0,
    )
    try:
        return in_lives(job, given.anew)
    finally:
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gossamer launch",
        description="Starts the workers of one host, and starts a lost one again, which then comes "
        'back to the others. For programs with Gossip(lost="go_on"); where this ends, they go on.',
        epilog="Exit codes: 0 a worker of this host has finished, 1 none has, 2 the command line "
        "is wrong, 130 ended by SIGINT, 143 by SIGTERM. Where none has finished and all of them "
        "ended with the same 2, 3 or 4, that code.",
    )
    parser.add_argument(
        "-n", "--workers", type=int, required=True, help="on this host; must be given"
    )
    parser.add_argument(
        "--restarts", type=int, default=3, help="how often each is started again at most"
    )
    parser.add_argument(
        "--spares",
        type=int,
        default=0,
        help="processes that have imported torch already, from which lost workers are forked, so "
        "that they are back sooner by these seconds; one is enough for all; each takes the memory "
        "of that",
    )
    parser.add_argument("--hosts", type=int, default=1, help="hosts, each with as many workers")
    parser.add_argument("--host", type=int, default=0, help="which of them this is, from 0")
    parser.add_argument(
        "--master", help="HOST:PORT of host 0, for the start; left out: this host alone"
    )
    parser.add_argument("--members", help="a folder that all hosts see; default: a new one")
    parser.add_argument(
        "--begin",
        type=int,
        default=0,
        metavar="HOSTS",
        help="so many of --hosts begin, from host 0 on, and each of the others joins when it is "
        "started; default: all begin",
    )
    parser.add_argument(
        "--anew",
        type=int,
        default=0,
        metavar="TIMES",
        help="how often the whole job begins anew where no worker is left that has the state of "
        "the run; its program then goes on from its last checkpoint. Give all hosts the same",
    )
    parser.add_argument(
        "--come-back",
        action="store_true",
        help="the folder is of this job alone: where this host was there before, its workers come "
        "back",
    )
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, help="-- what the workers run; must be given"
    )
    return parser


def _refuse(text: str) -> int:
    print(f"[launch] {text}", file=sys.stderr)
    return _WRONG
