"""Forked processes on the hosts of an emulated cluster, and what may befall them."""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import cluster as clusters  # noqa: E402

NAMESPACES = Path("/run/netns")
NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def enter(namespace: str) -> None:
    """Moves this thread, and those that it starts, into a network namespace."""
    with (NAMESPACES / namespace).open() as place:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(place.fileno(), NEW_NETWORK) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace {namespace}")


@contextlib.contextmanager
def running(cluster: clusters.Cluster) -> Iterator[None]:
    """The cluster is up, and comes down at the end of this process's block, not of a child's."""
    home = os.getpid()
    clusters.up(cluster)
    try:
        yield
    finally:
        if os.getpid() == home:
            clusters.down(cluster.name)


def fork(
    namespace: str | None, environment: dict[str, str], out: Path, run: Callable[[], int]
) -> int:
    """The process id of a child that runs there, writes to `out` and ends with run()'s value as a
    script does, through the interpreter's end."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    if namespace:
        enter(namespace)
    os.environ.update(environment)
    to = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(to, 1)
    os.dup2(to, 2)
    sys.exit(run())


def host_of(cluster: clusters.Cluster, rank: int) -> int:
    return int(clusters.environment(cluster, rank, 0)["GROUP_RANK"])


class Children:
    """Processes by name, until they have ended."""

    def __init__(self) -> None:
        self._home = os.getpid()
        self.pids: dict[str, int] = {}
        self.codes: dict[str, int] = {}  # negative for signals
        self.ended: dict[str, float] = {}  # time.monotonic()

    def add(self, name: str, pid: int) -> None:
        self.pids[name] = pid

    def signal(self, name: str, number: signal.Signals) -> None:
        self.look()
        if name in self.pids:
            os.kill(self.pids[name], number)

    def look(self) -> None:
        """Notes who has ended."""
        for name, pid in list(self.pids.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self.codes[name] = os.waitstatus_to_exitcode(status)
                self.ended[name] = time.monotonic()
                del self.pids[name]

    def wait(self, names: Sequence[str], limit: float) -> list[str]:
        """Who of them is still there at `limit`."""
        while True:
            self.look()
            left = [name for name in names if name in self.pids]
            if not left or time.monotonic() > limit:
                return left
            time.sleep(0.01)

    def end(self) -> None:
        """Kills all that are left; a child, which leaves by the same way, leaves them alone."""
        if os.getpid() != self._home:
            return
        for name in list(self.pids):
            self.signal(name, signal.SIGKILL)
        self.wait(list(self.pids), time.monotonic() + 10)
