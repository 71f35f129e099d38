"""`python -m gossamer.launching.spare_process train.py …`: a worker that waits for its rank.

It imports torch and Gossamer, which takes some seconds, and then reads from stdin what a worker
is told: one JSON object of environment variables. From then on it is `python train.py …`. Where
stdin ends without that it ends, too.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import types
from pathlib import Path

# The first optimizer of a process imports the last of them.
_IMPORTED = ("torch", "torch.distributed", "torch._dynamo", "gossamer")


def _variables() -> dict[str, str] | None:
    text = sys.stdin.buffer.read()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # as every worker has it
    os.close(nothing)
    return dict(json.loads(text)) if text else None


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
    variables = _variables()
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
