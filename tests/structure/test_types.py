"""The types of the package serve a script that asks for all that mypy checks."""

import subprocess
import sys

from project import ROOT

EXAMPLES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*.py"))


def test_the_examples_pass_strict_mypy() -> None:
    assert len(EXAMPLES) >= 13
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *EXAMPLES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
