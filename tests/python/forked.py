"""Processes that begin where the imports of a script are done, which cost seconds of each.

usage: forked.py MODULE…     a server: for each request it forks one that calls a module's main()

Tests call start(). The server is this file as a process of its own, has one thread, and ends with
the tests; so do the processes that are left then.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

MODULES = ("workers", "gossip_scenarios")
ENVIRONMENT = dict(os.environ)  # before any test has changed it
LOOK_EVERY_S = 0.01
NOBODY = 0  # in place of a process


class Forked:
    """One process, as far as subprocess.Popen says the same."""

    def __init__(self, server: Server, module: str, words: list[str]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.args = [module, *words]
        self.ended = threading.Event()
        self.returncode: int | None = None
        self.pid = server.fork(self, module, words, self.folder.name)

    def end(self, code: int) -> None:
        self.returncode = code
        self.ended.set()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if not self.ended.wait(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """All that it said; when it has ended."""
        self.wait(timeout)
        place = Path(self.folder.name)
        return (place / "out").read_text(), (place / "err").read_text()


class Server:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), *MODULES],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        self.mine: dict[int, Forked] = {}
        self.lock = threading.Lock()  # requests and their answers, in turn
        self.asker: Forked | None = None
        self.answer: queue.Queue[int] = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()
        atexit.register(self.close)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def fork(self, asker: Forked, module: str, words: list[str], folder: str) -> int:
        assert self.process.stdin is not None
        with self.lock:
            self.asker = asker
            request: dict[str, Any] = {"module": module, "words": words, "folder": folder}
            request |= {"environment": dict(os.environ), "place": str(Path.cwd())}
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            pid = self.answer.get()
        assert pid != NOBODY, f"{__file__} has ended; stderr says why"
        return pid

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            if "code" in said:
                self.mine.pop(said["pid"]).end(said["code"])
            else:
                assert self.asker is not None
                self.mine[said["pid"]] = self.asker
                self.answer.put(said["pid"])
        self.answer.put(NOBODY)


@cache
def server() -> Server:
    return Server()


def start(module: str, words: list[str]) -> Forked:
    """A process that calls main() of the module with these words of the command line."""
    return Forked(server(), module, words)


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def tell_who_ended(children: set[int]) -> None:
    for child in list(children):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            children.remove(child)
            say(pid=child, code=os.waitstatus_to_exitcode(status))


def serve() -> dict[str, Any]:
    """Answers requests; comes back in the processes that are asked for, with the request."""
    children: set[int] = set()
    unread = b""
    while True:
        if select.select([0], [], [], LOOK_EVERY_S if children else None)[0]:
            got = os.read(0, 65536)
            if not got:
                break
            unread += got
        *lines, unread = unread.split(b"\n")
        for line in lines:
            child = os.fork()
            if child == 0:
                return dict(json.loads(line))
            children.add(child)
            say(pid=child)
        tell_who_ended(children)
    for child in children:
        os.kill(child, signal.SIGKILL)
    sys.exit()


def become(request: dict[str, Any]) -> None:
    """Takes the place of a script that was started with the words."""
    for number, name in ((0, os.devnull), (1, "out"), (2, "err")):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND
        opened = os.open(Path(request["folder"]) / name, flags)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["place"])
    sys.argv = [request["module"], *request["words"]]
    importlib.import_module(request["module"]).main()


if __name__ == "__main__":
    for each in sys.argv[1:]:
        importlib.import_module(each)
    gc.freeze()  # what all have in common does not cost each of them an end of its own
    become(serve())
