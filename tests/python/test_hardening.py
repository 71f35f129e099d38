"""What the release build asks of the compiler and the linker, in the programs that users run."""

import shutil
import subprocess

import pytest
from package_runs import PACKAGE

PROGRAMS = [PACKAGE / "bin" / "gossamer", PACKAGE / "bin" / "gossamer-train"]


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_programs_are_hardened(program: str) -> None:
    def shown(flag: str) -> str:
        command = ["readelf", flag, "--wide", str(program)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "BIND_NOW" in shown("--dynamic")
    assert "GNU_RELRO" in shown("--segments")
    assert "DYN (" in shown("--file-header")  # at another address in every process
    symbols = shown("--dyn-syms")
    assert "__stack_chk_fail" in symbols
    assert "_chk@" in symbols  # of _FORTIFY_SOURCE
    assert "__glibcxx_assert_fail" in symbols
