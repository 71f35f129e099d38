"""What passes all on to another one has all functions of it, those with a default as well."""

import re

from project import ROOT

TRANSPORT = ROOT / "gossamer" / "transport"


def test_a_transport_before_another_one_passes_every_function_on() -> None:
    interface = (TRANSPORT / "transport.h").read_text()
    virtual = re.findall(r"^  virtual [\w:<>]+ (\w+)\(", interface, re.MULTILINE)
    passing = (TRANSPORT / "passing.h").read_text()
    passed = re.findall(r"^  [\w:<>]+ (\w+)\([^{;]*override", passing, re.MULTILINE)
    noted = re.findall(r'"(\w+)"', (TRANSPORT / "passing_test.cpp").read_text().split("all{")[1])
    assert len(virtual) > 10
    assert sorted(virtual) == sorted(passed) == sorted(noted)
