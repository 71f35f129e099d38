"""Lists in Python that say again what a table in C++ says."""

import re

import pytest
from project import ROOT

CODECS = re.findall(r'\{\.name = "(\w+)"', (ROOT / "gossamer/base/codec.h").read_text())


@pytest.mark.parametrize(
    ("file", "place", "expected"),
    [
        ("python/gossamer/session/settings.py", r'"codec": \((.+?)\)', CODECS),
        ("python/gossamer/report/run.py", r"_CODECS = \((.+?)\)", CODECS[1:]),
        ("tests/python/gossip_scenarios_codecs.py", r"CODECS = \((.+?)\)", CODECS),
    ],
)
def test_python_knows_every_codec(file: str, place: str, expected: list[str]) -> None:
    found = re.search(place, (ROOT / file).read_text(), re.DOTALL)
    assert found and re.findall(r'"(\w+)"', found[1]) == expected


def test_python_knows_every_command_that_trains() -> None:
    code = (ROOT / "gossamer/cli/launch.cpp").read_text()
    handed_over = re.findall(r"int run_(\w+)\([^)]*\) \{ return hand_over\(", code)
    listed = re.search(r"_OF_TORCH = \((.+?)\)", (ROOT / "python/gossamer_command.py").read_text())
    assert handed_over and listed and re.findall(r'"(\w+)"', listed[1]) == handed_over


def test_the_version_to_cite_is_that_of_the_build() -> None:
    built = re.search(r"project\(gossamer VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    cited = re.search(r"^version: ([\d.]+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert built and cited and built[1] == cited[1]


def test_the_table_of_codecs_was_found() -> None:
    assert CODECS[:3] == ["fp32", "bf16", "int8"]
