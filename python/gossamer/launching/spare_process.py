"""`python -m gossamer.launching.spare_process train.py …`: workers are forked from this process.

It imports torch and Gossamer, which takes some seconds, and says `ready` on the socket that is its
stdin. From then on each line that comes is what one worker is told, a JSON object of environment
variables. It forks a process that is `python train.py …` with them, leaves it to the launcher, and
says its number. Where it cannot be forked safely it becomes that worker itself, and says its own
number. Where stdin ends it ends, too.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import socket
import sys
import types
from pathlib import Path

# The first optimizer of a process imports the last of them.
_IMPORTED = ("torch", "torch.distributed", "torch._dynamo", "gossamer")


def _can_be_forked() -> bool:
    """A fork has no other threads, and no use of a GPU that this process has taken hold of."""
    own = Path("/proc/self")
    open_files = map(os.path.realpath, (own / "fd").iterdir())
    has_device = any(path.startswith("/dev/nvidia") for path in open_files)
    return len(list((own / "task").iterdir())) == 1 and not has_device


def _fork() -> tuple[int, int]:
    """In this process the number of the new one, and the pipe on which it waits until something is
    written: 0, 0 in the new one then. Its parent has ended, so it is a child of the launcher."""
    from_parent, to_parent = os.pipe()
    until, go = os.pipe()
    between = os.fork()
    if between:
        os.close(to_parent)
        os.close(until)
        with os.fdopen(from_parent, "rb") as said:
            number = int(said.read())
        os.waitpid(between, 0)
        return number, go
    os.close(from_parent)
    os.close(go)
    worker = os.fork()
    if worker:
        os.write(to_parent, str(worker).encode())
        os._exit(0)
    os.close(to_parent)
    may_run = os.read(until, 1)
    os.close(until)
    if not may_run:  # nobody knows of it
        os._exit(1)
    os.setsid()
    return 0, 0


def _draw_anew() -> None:
    """Forks of one process would draw equal numbers; Python's own generator does this by itself."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()


def _told(channel: socket.socket) -> dict[str, str] | None:
    """What this process is told as a worker; None where it is none and never will be."""
    lines = channel.makefile("rb", buffering=0)
    while line := lines.readline():
        if not _can_be_forked():
            channel.sendall(f"{os.getpid()}\n".encode())
            return dict(json.loads(line))
        worker, go = _fork()
        if not worker:
            _draw_anew()
            return dict(json.loads(line))
        channel.sendall(f"{worker}\n".encode())
        os.write(go, b".")
        os.close(go)
    return None


def _channel() -> socket.socket:
    """What was stdin, which is empty from now on, as every worker has it."""
    channel = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return channel


def _main_module(name: str) -> tuple[types.ModuleType, types.CodeType]:
    """Of `-m name`."""
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name += ".__main__"
        spec = importlib.util.find_spec(name)
    loader = spec.loader if spec is not None else None
    code = loader.get_code(name) if isinstance(loader, importlib.abc.InspectLoader) else None
    if spec is None or code is None:
        sys.exit(f"{sys.executable}: No module named {name}")
    module = types.ModuleType("__main__")
    module.__spec__, module.__package__ = spec, spec.parent
    module.__file__, module.__loader__ = spec.origin, loader
    sys.argv[0] = spec.origin or name
    return module, code


def _main_script(path: str) -> tuple[types.ModuleType, types.CodeType]:
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        sys.exit(f"{sys.executable}: can't open file {path}: {error.strerror}")
    whole = str(Path.cwd() / path)
    module = types.ModuleType("__main__")
    module.__file__ = whole
    module.__loader__ = importlib.machinery.SourceFileLoader("__main__", whole)
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path[0] = str(Path(path).resolve().parent)  # it was this folder, as for every `-m`
    return module, compile(source, whole, "exec", dont_inherit=True)


def main() -> None:
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is there is shared by all forks, so nobody writes to it
    with _channel() as channel:
        try:
            channel.sendall(b"ready\n")
            variables = _told(channel)
        except ConnectionError:  # the launcher has ended
            return
    if variables is None:
        return
    os.environ.update(variables)
    sys.argv = sys.argv[1:]
    is_module = sys.argv[0] == "-m"
    if is_module:
        del sys.argv[0]
    module, code = _main_module(sys.argv[0]) if is_module else _main_script(sys.argv[0])
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


main()
