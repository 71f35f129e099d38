"""How each contender is started, and who starts a lost worker again."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import notes

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILT = Path(os.environ.get("GOSSAMER_PYTHON_PATH", ROOT / "build" / "python"))
MANY = str(1_000_000)
TO_END_S = 20.0


@dataclass(frozen=True)
class Contender:
    """`topology`, `pattern` and `spares`: of Gossamer. `lighthouse_ms`: after how long without a
    heartbeat torchft's lighthouse takes a worker for dead; `wrapper`: its model's wrapper."""

    name: str
    topology: str = ""
    pattern: str = "cwa"
    spares: int = 0
    lighthouse_ms: int = 0
    wrapper: str = ""


CONTENDERS = (
    Contender("gossamer ring", topology="ring"),
    Contender("gossamer aer", topology="alternating_exponential_ring"),
    Contender("gossamer spare", topology="ring", spares=1),
    Contender("gossamer allreduce", topology="complete", pattern="allreduce"),
    Contender("gossamer allreduce spare", topology="complete", pattern="allreduce", spares=1),
    Contender("torchft", lighthouse_ms=5000, wrapper="ddp"),
    Contender("torchft tuned", lighthouse_ms=1000, wrapper="ddp"),
    Contender("torchft pure tuned", lighthouse_ms=1000, wrapper="pure"),
    Contender("torchrun"),
)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Job:
    """Its workers, and whatever coordinates them. `options`: of gossip_worker.py."""

    def __init__(
        self,
        contender: Contender,
        workers: int,
        folder: Path,
        torchft_python: str = "",
        options: Sequence[str] = (),
    ) -> None:
        self.contender, self.workers, self.folder = contender, workers, folder
        self._options = options
        self._torchft_python = torchft_python
        self._log = (folder / "said").open("w")
        self._coordinator: subprocess.Popen[bytes] | None = None
        self._replicas: dict[int, subprocess.Popen[bytes]] = {}
        self._lighthouse = f"http://127.0.0.1:{free_port()}"
        self._coordinator = self._start_coordinator()
        self.look()

    def _start(self, words: list[str], extra: dict[str, str]) -> subprocess.Popen[bytes]:
        variables = {**os.environ, "OMP_NUM_THREADS": "1", **extra}
        return subprocess.Popen(
            words,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def _start_coordinator(self) -> subprocess.Popen[bytes]:
        contender, folder = self.contender, str(self.folder)
        if contender.lighthouse_ms:
            lighthouse = str(Path(self._torchft_python).with_name("torchft_lighthouse"))
            words = [lighthouse, "--min_replicas", "1", "--join_timeout_ms", "1000"]
            words += ["--bind", self._lighthouse.removeprefix("http://")]
            words += ["--heartbeat_timeout_ms", str(contender.lighthouse_ms)]
            return self._start(words, {})
        path = {"PYTHONPATH": os.pathsep.join([str(BUILT), os.environ.get("PYTHONPATH", "")])}
        each = ["-n", str(self.workers)]
        if contender.topology:
            words = [sys.executable, "-m", "gossamer", "launch", *each, "--restarts", MANY]
            words += ["--spares", str(contender.spares), "--"]
            words += [sys.executable, str(HERE / "gossip_worker.py"), folder, contender.topology]
            words += ["--pattern", contender.pattern]
            words += self._options
            return self._start(words, path)
        # Without the variable a group that is started again reads the addresses of the one before.
        words = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        words += ["--nproc-per-node", str(self.workers), "--max-restarts", MANY]
        words += ["--monitor-interval", "0.1", str(HERE / "elastic_worker.py"), folder]
        return self._start(words, {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})

    def look(self) -> None:
        """Starts again whom nobody else does: torchft leaves that to what it runs under."""
        if not self.contender.lighthouse_ms:
            return
        for rank in range(self.workers):
            if rank in self._replicas and self._replicas[rank].poll() is None:
                continue
            self._replicas[rank] = self._start(
                [
                    self._torchft_python,
                    str(HERE / "torchft_worker.py"),
                    str(self.folder),
                    self.contender.wrapper,
                ],
                {
                    "RANK": str(rank),
                    "WORLD_SIZE": str(self.workers),
                    "TORCHFT_LIGHTHOUSE": self._lighthouse,
                },
            )

    def kill_coordinator(self) -> None:
        """What everything hangs on, as far as anything does."""
        if self._coordinator is not None:
            self._coordinator.kill()
            self._coordinator.wait()
            self._coordinator = None

    def end(self, pids: list[int]) -> None:
        """Workers see that it is enough; who does not within some seconds is ended, by its id."""
        if not (self.folder / "enough").exists():
            notes.end_all(self.folder)
        limit = time.monotonic() + TO_END_S
        mine = [process for process in (self._coordinator, *self._replicas.values()) if process]
        waited_for = mine if self.contender.topology else [*self._replicas.values()]
        while time.monotonic() < limit and any(each.poll() is None for each in waited_for):
            time.sleep(0.1)
        for process in mine:
            if process.poll() is None:
                process.terminate()
        for process in mine:
            try:
                process.wait(TO_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in pids:
            if is_there(pid, str(self.folder)):
                os.kill(pid, signal.SIGKILL)
        self._log.close()


def is_there(pid: int, folder: str) -> bool:
    """Whether this process is still the worker of this folder."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return folder.encode() in words
