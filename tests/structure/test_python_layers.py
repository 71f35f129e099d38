"""The parts of the Python package: arrows point to lower parts only, and fields have one owner."""

import re

import pytest
from project import ROOT
from python_layers import ARROWS, broken_arrows, circles, foreign_uses

PACKAGE = ROOT / "python" / "gossamer"
# Torch's own, which a subclass or a hook has to know.
TORCHS = {"_parameters", "_modules", "_devices"}


def sources() -> dict[str, str]:
    found = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in found}


def test_the_package_was_found() -> None:
    assert "gossip.py" in sources()


def test_no_import_points_up() -> None:
    assert broken_arrows(sources()) == []


def test_arrows_point_to_lower_parts_only() -> None:
    order = list(ARROWS)
    for part, used in ARROWS.items():
        assert all(order.index(other) < order.index(part) for other in used), part


def test_every_part_is_there() -> None:
    there = {path.split("/")[0].removesuffix(".py") for path in sources()} | {"_built"}
    assert there == set(ARROWS)


def test_no_modules_import_each_other() -> None:
    assert circles(sources()) == []


def test_nobody_touches_what_another_module_owns() -> None:
    found = foreign_uses(sources())
    assert [each for each in found if not TORCHS & set(re.findall(r"\w+", each))] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("base/files.py", "from gossamer.workers import world"),
        ("workers/world.py", "if TYPE_CHECKING:\n    from gossamer.gossip import Gossip"),
        ("report/page.py", "from ..workers import world"),
        ("session/team.py", "def late():\n    import gossamer.step.run"),
        ("nowhere/file.py", ""),
    ],
)
def test_an_import_that_points_up_is_found(path: str, text: str) -> None:
    assert len(broken_arrows({path: text})) == 1


def test_a_circle_is_found() -> None:
    files = {
        "step/a.py": "from gossamer.step import b",
        "step/b.py": "from gossamer.step.a import A",
    }
    assert circles(files) == ["step.a", "step.b"]


OWNER = "class Run:\n    def __init__(self):\n        self._late = 0\n        self.engine = 0"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(it):\n    return it._late", 1),
        ("def f(it):\n    return it.run.engine", 0),
        ("def f(it):\n    it.run.engine = 1", 1),
        ("def f(it):\n    it.run._late += 1", 2),
        ("from gossamer.step import run\nrun._helper()", 0),
    ],
)
def test_a_foreign_use_is_found(text: str, count: int) -> None:
    assert len(foreign_uses({"step/run.py": OWNER, "step/other.py": text})) == count
