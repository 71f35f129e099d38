"""The command `gossamer` of an installed package.

Beside the package and not inside it: importing anything of the package imports torch, which takes
seconds, while most subcommands are programs that start in milliseconds.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

_FAILED = 1


def _program() -> Path:
    spec = importlib.util.find_spec("gossamer")
    for folder in (spec.submodule_search_locations if spec else None) or []:
        program = Path(folder) / "bin" / "gossamer"
        if program.exists():
            return program
    sys.exit(
        "[gossamer] the package has no programs; install it from Gossamer's folder with "
        "`pip install --no-build-isolation .`"
    )


def _doctor(arguments: list[str]) -> int:
    # The package is beside this file as it is named, and need not be where a link leads: a build
    # has links to the sources, and what was compiled.
    sys.path.insert(0, str(Path(__file__).absolute().parent))
    try:
        from gossamer import doctor
    except ImportError as error:
        print(error, file=sys.stderr)
        return 2
    return doctor.main(arguments)


def without_torch() -> None:
    """Makes `gossamer` a package whose own import, which needs torch, is left out: runs can be
    looked at anywhere."""
    if "gossamer" not in sys.modules:
        package = types.ModuleType("gossamer")
        package.__path__ = [str(Path(__file__).resolve().parent / "gossamer")]
        sys.modules["gossamer"] = package


def _report(arguments: list[str]) -> int:
    without_torch()
    return importlib.import_module("gossamer.report").main(arguments)


def _charts(arguments: list[str]) -> int:
    without_torch()
    return importlib.import_module("gossamer.report.charts").main(arguments)


def _launch(arguments: list[str]) -> int:
    without_torch()
    return importlib.import_module("gossamer.launching").main(arguments)


class _Stdout(io.FileIO):
    """Remembers that something could not be written: who prints does not always look."""

    is_lost = False

    def write(self, data: Any) -> int:
        with contextlib.suppress(OSError):
            return super().write(data)
        self.is_lost = True
        return len(data)


def _printed(command: Callable[[list[str]], int], arguments: list[str]) -> int:
    """What the command returns; 1, with a line on stderr, where its output does not get out."""
    before, raw = sys.stdout, _Stdout(sys.stdout.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=before.encoding, errors=before.errors
    )
    try:
        code = command(arguments)
    except SystemExit as asked:  # of --help, and of wrong arguments
        code = asked.code if isinstance(asked.code, int) else 0
    sys.stdout.flush()
    if not raw.is_lost:
        return code
    print(
        "[gossamer] cannot write to stdout; the output is not complete: free space where it goes",
        file=sys.stderr,
    )
    return _FAILED


_OURS = {"doctor": _doctor, "report": _report, "charts": _charts, "launch": _launch}
"""charts is what the program starts to draw; the others are the user's."""


def _libtorch(environment: dict[str, str]) -> list[str]:
    """Where to look for libraries: first in torch, which need not be beside this package."""
    spec = importlib.util.find_spec("torch")
    folders = [f"{folder}/lib" for folder in (spec and spec.submodule_search_locations) or []]
    before = environment.get("LD_LIBRARY_PATH")
    return [*folders, before] if before else folders


_OF_TORCH = ("train", "demo", "probe", "translate")
"""What the program hands over to the one that trains."""


def _environment(arguments: list[str]) -> dict[str, str]:
    """Of the program: which Python draws, and what trains with the torch of this one, if there is
    any."""
    environment = os.environ | {"GOSSAMER_PYTHON": sys.executable}
    if not arguments or arguments[0] not in _OF_TORCH:
        return environment
    import importlib.metadata  # takes as long as all the rest

    without_torch()
    series = importlib.import_module("gossamer._series")
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        program = series.folder_of(importlib.metadata.version("torch")) / "gossamer-train"
        if program.exists():  # not in a build, which has it beside the other one
            environment["GOSSAMER_TRAIN"] = str(program)
            environment["LD_LIBRARY_PATH"] = os.pathsep.join(_libtorch(environment))
    return environment


def _become(program: str, arguments: list[str]) -> NoReturn:
    os.execve(program, [program, *arguments], _environment(arguments))


def main() -> int:
    """Runs a command of Python's, or puts the program of all others in place of this process."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in _OURS:
        return _printed(_OURS[arguments[0]], arguments[1:])
    _become(str(_program()), arguments)


if __name__ == "__main__":
    sys.exit(main())
