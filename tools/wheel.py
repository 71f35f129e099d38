"""Makes one wheel of builds for several series of torch: .venv/bin/python tools/wheel.py BUILD...

Each BUILD is a folder in which CMake has built the package, all with one Python; see
docs/install.md. The wheel needs no compiler and none of the system's libraries but those of every
Linux: the others go into it. It says which system it needs, and which symbols ask for that.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

ROOT = Path(__file__).resolve().parents[1]
OF_TORCH = ("libtorch*.so", "libc10*.so", "libshm.so")
"""Not to go into the wheel: Python has them when it loads the extension."""
GOAL = "manylinux_2_28"
WITHIN_GOAL = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (8, 0, 0)}
"""The newest versions of symbols that this platform has (PEP 600)."""


@dataclass
class Python:
    """Of the builds: on this machine, or on one of another kind."""

    suffix: str
    tag: str
    platform: str


def python_of(interpreter: Path) -> Python:
    code = """import json, sys, sysconfig
print(json.dumps([sysconfig.get_config_var("EXT_SUFFIX"), "cp%d%d" % sys.version_info[:2],
                  sysconfig.get_platform()]))"""
    command = [str(interpreter), "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{done.stderr}\n[wheel] this Python does not run: {interpreter}")
    suffix, tag, platform = json.loads(done.stdout)
    return Python(suffix, tag, re.sub(r"[-.]", "_", platform))


def run(*command: str | Path, **environment: str) -> None:
    """Quiet, unless it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        sys.exit(f"{done.stdout}\n[wheel] this failed with exit code {done.returncode}: {words}")


def last_commit() -> str:
    """Its time, for all files of the wheel: the same builds give the same bytes."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return os.environ.get("SOURCE_DATE_EPOCH") or done.stdout.strip() or "315532800"


def python_files(folder: Path) -> Path:
    """The package without anything compiled, and what pip must know of it."""
    pip = (sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps")
    run(*pip, "--config-settings", "wheel.cmake=false", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "wheel", "unpack", "--dest", folder, wheel)
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    return unpacked


def series_in(package: Path) -> list[tuple[int, int]]:
    found = (re.fullmatch(r"torch_(\d+)_(\d+)", path.name) for path in package.iterdir())
    return sorted((int(match[1]), int(match[2])) for match in found if match)


def check_python(package: Path, python: Python, builds: list[Path]) -> None:
    for folder in package.glob("torch_*"):
        if not (folder / f"_core{python.suffix}").exists():
            names = [path.name for path in folder.glob("_core*")]
            sys.exit(
                "[wheel] all builds must be for this Python, "
                f"want _core{python.suffix}, got {names}; "
                f"build them with it: {', '.join(map(str, builds))}"
            )


def change(file: Path, pattern: str, by: str) -> None:
    text, times = re.subn(pattern, by, file.read_text(), flags=re.MULTILINE)
    if times == 0:
        sys.exit(f"[wheel] {file.name} has no line like {pattern}; is scikit-build-core another?")
    file.write_text(text)


def say_what_is_inside(unpacked: Path, python: Python) -> None:
    """The files that pip reads know it before anything compiled was there."""
    (info,) = unpacked.glob("*.dist-info")
    first, last = (series_in(unpacked / "gossamer")[place] for place in (0, -1))
    torch = f"torch<{last[0]}.{last[1] + 1},>={first[0]}.{first[1]}"
    change(info / "METADATA", r"^Requires-Dist: torch\b.*", f"Requires-Dist: {torch}")
    tag = f"{python.tag}-{python.tag}-{python.platform}"
    change(info / "WHEEL", r"^Tag: .*", f"Tag: {tag}")
    change(info / "WHEEL", r"^Root-Is-Purelib: .*", "Root-Is-Purelib: false")


def beyond_goal(folder: Path) -> dict[str, set[str]]:
    """Symbols' versions that older systems lack, by the library of the system that has them."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.read_bytes()[:4] != b"\x7fELF":
            continue
        with path.open("rb") as file:
            for section in ELFFile(file).iter_sections():
                if not isinstance(section, GNUVerNeedSection):
                    continue
                for library, versions in section.iter_versions():
                    for version in versions:
                        name, _, number = version.name.partition("_")
                        newest = WITHIN_GOAL.get(name)
                        parts = tuple(int(part) for part in re.findall(r"\d+", number))
                        if newest is not None and parts > newest:
                            found.setdefault(str(library.name), set()).add(version.name)
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("builds", nargs="+", type=Path, metavar="BUILD", help="of CMake")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="folder for the wheel")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="of the builds")
    parser.add_argument("--libraries", type=Path, help="the other machine's, where it is another")
    options = parser.parse_args(arguments)
    python = python_of(options.python)
    epoch = last_commit()
    with tempfile.TemporaryDirectory() as scratch:
        unpacked = python_files(Path(scratch))
        package = unpacked / "gossamer"
        for build in options.builds:
            install = ("cmake", "--install", build, "--component", "package", "--strip")
            run(*install, "--prefix", package.resolve())
        check_python(package, python, options.builds)
        say_what_is_inside(unpacked, python)
        raw = Path(scratch) / "raw"
        raw.mkdir()
        run(sys.executable, "-m", "wheel", "pack", "--dest-dir", raw, unpacked)
        (wheel,) = raw.glob("*.whl")
        places = ("--ldpaths", options.libraries.resolve()) if options.libraries else ()
        without = [word for name in OF_TORCH for word in ("--exclude", name)]
        repair = (sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", *places, *without)
        tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = Path(scratch) / "done"
        run(*repair, "--wheel-dir", done, wheel, PATH=tools, SOURCE_DATE_EPOCH=epoch)
        (wheel,) = done.glob("*.whl")
        options.out.mkdir(parents=True, exist_ok=True)
        target = wheel.replace(options.out / wheel.name)
        names = ", ".join(f"{first}.{second}" for first, second in series_in(package))
        print(f"{target}: for torch {names}, {target.stat().st_size / 1e6:.1f} MB")
        needs = beyond_goal(unpacked)
    for library, versions in sorted(needs.items()):
        print(f"beyond {GOAL}, {library}: {' '.join(sorted(versions))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
