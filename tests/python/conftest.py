"""The package as it was built: build/python, or where GOSSAMER_PYTHON_PATH says."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, os.environ.get("GOSSAMER_PYTHON_PATH", str(ROOT / "build" / "python")))

# Started in the background of a shell that ignores it for us, processes of the tests would, too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What all launches of a file of tests see; its name is in the environment."""
    place = tmp_path_factory.mktemp("launches")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOSSAMER_TEST_FOLDER", str(place))
        yield place
