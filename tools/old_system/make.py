"""Makes a folder to link with, so that what this machine's g++ compiles runs on older systems:
python tools/old_system/make.py FOLDER CXX

It holds the C and C++ libraries of the compiler without all that manylinux_2_28 lacks: names to
link with, and no code. Beside it, as the compilers of RHEL have it: newer parts of libstdc++, to be
linked into each program, and what the newer C library has and the older one lacks. The state of
libstdc++ that a process has only once, as of exceptions and locales, stays in the system's.
"""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile

HERE = Path(__file__).parent
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (8, 0, 0)}
LIBRARIES = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1")
ONCE_LIBRARIES = ("libpthread.so.0", "libdl.so.2")
"""Parts of the C library since 2.34. Before, who calls them must name them."""
LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
NEWER_PARTS = re.compile(
    r"(lt\d+-)?(floating_(to|from)_chars|fs_(dir|ops|path)|sstream-inst|memory_resource)\.o"
)
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror")
SECTIONS = {
    "STT_OBJECT": ('.section .data,"aw"', "%object"),
    "STT_TLS": ('.section .tbss,"awT",%nobits', "%tls_object"),
}


class Symbol(NamedTuple):
    name: str
    version: str
    kind: str
    size: int
    address: int


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True)


def ask(*command: str | Path) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def find(compiler: str, name: str) -> Path:
    return Path(ask(compiler, f"-print-file-name={name}")).resolve()


def age(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version.partition("_")[2])))


def is_old(version: str) -> bool:
    newest = NEWEST.get(version.partition("_")[0])
    return newest is not None and () < age(version) <= newest


def symbols_of(library: Path) -> list[Symbol]:
    """Those that are old enough, by address."""
    found = []
    with library.open("rb") as file:
        elf = ELFFile(file)
        names = {
            each["vd_ndx"]: next(parts).name
            for each, parts in elf.get_section_by_name(".gnu.version_d").iter_versions()
        }
        versions = elf.get_section_by_name(".gnu.version")
        for place, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            index = versions.get_symbol(place)["ndx"]
            if symbol["st_shndx"] in ("SHN_UNDEF", "SHN_ABS") or not isinstance(index, int):
                continue
            version = names.get(index & 0x7FFF, "")
            if is_old(version):
                kind = symbol["st_info"]["type"]
                value = symbol["st_value"]
                found.append(Symbol(symbol.name, version, kind, symbol["st_size"], value))
    return sorted(found, key=lambda each: (each.address, each.kind))


def assembly(symbols: list[Symbol]) -> str:
    """Names of one address stay at one: a program may take a copy of data, for all its names."""
    newest: dict[str, str] = {}
    for symbol in symbols:
        newest[symbol.name] = max(newest.get(symbol.name, ""), symbol.version, key=age)
    lines: list[str] = []
    for (_, kind), group in groupby(symbols, key=lambda each: (each.address, each.kind)):
        section, type_ = SECTIONS.get(kind, (".text", "%function"))
        lines.append(section)
        room = 1
        for symbol in group:
            label = f"s{len(lines)}"
            sign = "@@" if symbol.version == newest[symbol.name] else "@"
            lines += [
                f".globl {label}\n.type {label}, {type_}\n.size {label}, {symbol.size}",
                f".symver {label}, {symbol.name}{sign}{symbol.version}, remove\n{label}:",
            ]
            room = max(room, symbol.size if kind in SECTIONS else 1)
        lines.append(f".zero {room}\n.balign 32")
    return "\n".join([*lines, '.section .note.GNU-stack,"",%progbits', ""])


def make_library(folder: Path, compiler: str, name: str, symbols: list[Symbol]) -> None:
    source = folder / f"{name}.s"
    source.write_text(assembly(symbols))
    script = folder / f"{name}.map"
    versions = sorted({symbol.version for symbol in symbols})
    script.write_text("".join(f"{version} {{ }};\n" for version in versions))
    flags = [f"-Wl,-soname,{name}", *([f"-Wl,--version-script,{script}"] if versions else [])]
    run(compiler, "-shared", "-nostdlib", *flags, source, "-o", folder / name)


def make_archives(folder: Path, compiler: str) -> None:
    for name in ("shims", "cxx_shims", "start"):
        run(compiler, *FLAGS, "-c", HERE / f"{name}.cpp", "-o", folder / f"{name}.o")
    ar = ask(compiler, "-print-prog-name=ar")
    whole = find(compiler, "libstdc++.a")
    parts = [name for name in ask(ar, "t", whole).split() if NEWER_PARTS.fullmatch(name)]
    run(ar, "x", "--output", folder, whole, *parts)
    archives = {"newer_parts": [*parts, "cxx_shims.o"], "shims": ["shims.o", "start.o"]}
    for name, objects in archives.items():
        archive = folder / f"lib{name}.a"
        archive.unlink(missing_ok=True)
        run(ar, "rcs", archive, *(folder / each for each in objects))


def make_image_libraries(folder: Path, compiler: str) -> None:
    """Where they are this machine's: see own_stderr."""
    for name in ("libpng.a", "libjpeg.a"):
        library = find(compiler, name)
        if library.exists():
            objcopy = ask(compiler, "-print-prog-name=objcopy")
            run(objcopy, "--redefine-sym", "stderr=own_stderr", library, folder / name)


def make_scripts(folder: Path, compiler: str) -> None:
    """What -lc and the like find. A program's start must be found before the library's."""
    loader = find(compiler, LOADERS[ask(compiler, "-dumpmachine").partition("-")[0]])
    rest = f"{find(compiler, 'libc_nonshared.a')} AS_NEEDED ( {loader} )"
    scripts = {
        "libc": f"libshims.a libc.so.6 {' '.join(ONCE_LIBRARIES)} {rest}",
        "libm": "libm.so.6",
        "libgcc_s": "libgcc_s.so.1 -lgcc",
        "libstdc++": "libstdc++.so.6 libnewer_parts.a",
    }
    for name, parts in scripts.items():
        (folder / f"{name}.so").write_text(f"GROUP ( {parts} )\n")


def main(folder: Path, compiler: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in LIBRARIES:
        make_library(folder, compiler, name, symbols_of(find(compiler, name)))
    for name in ONCE_LIBRARIES:
        make_library(folder, compiler, name, [])
    make_archives(folder, compiler)
    make_image_libraries(folder, compiler)
    make_scripts(folder, compiler)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
