"""The conformance suite of transports, over Gloo between threads of this process."""

import groups
import pytest

from gossamer import _core_test


def test_the_suite_covers_both_kinds_of_groups() -> None:
    names = _core_test.names()
    assert len(names) >= 2 * 20
    assert sum("c10d_pairs" in name for name in names) * 2 == len(names)


@pytest.mark.parametrize("name", _core_test.names())
def test_conformance(name: str) -> None:
    assert _core_test.run(name, groups.make)
