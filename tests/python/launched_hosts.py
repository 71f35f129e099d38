"""The launchers of several hosts, each a `gossamer launch` on this machine."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from package_runs import with_package

from gossamer.launching.ports import free_port

LAUNCH = [sys.executable, "-m", "gossamer", "launch"]
LIMIT_S = 240

Launcher = subprocess.Popen[str]


@dataclass
class Hosts:
    """Of one job, whose cards are in a folder "members" of ``folder``."""

    folder: Path
    hosts: int
    per_host: int
    flags: Sequence[str] = ()
    port: int = field(default_factory=free_port)
    started: list[Launcher] = field(default_factory=list)

    def start(self, number: int, program: str | Path, *words: str, **variables: str) -> Launcher:
        job = f"-n{self.per_host} --hosts={self.hosts} --master=127.0.0.1:{self.port}"
        command = [sys.executable, str(program), str(self.folder), *words]
        process = subprocess.Popen(
            [
                *(*LAUNCH, *job.split(), f"--host={number}", *self.flags),
                *(f"--members={self.folder / 'members'}", "--", *command),
            ],
            env=with_package({"GLOO_SOCKET_IFNAME": "lo", **variables}),
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def all_ended(self) -> list[tuple[int, str]]:
        """Exit code and stderr of each, in the order of their starts."""
        said = [each.communicate(timeout=LIMIT_S)[1] for each in self.started]
        return [(each.returncode, text) for each, text in zip(self.started, said, strict=True)]


@contextlib.contextmanager
def hosts_of(folder: Path, hosts: int, per_host: int, *flags: str) -> Iterator[Hosts]:
    """What still runs at the end is told to end, workers too."""
    job = Hosts(folder, hosts, per_host, flags)
    try:
        yield job
    finally:
        for process in job.started:
            process.terminate()
            process.communicate()
