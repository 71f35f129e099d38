"""The files of the project, for the tests of this folder."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What was built, installed or recorded is not ours.
FOREIGN = {".git", ".venv", ".cache", ".wheels", "dist", "runs", "__pycache__"}


def is_foreign(name: str) -> bool:
    return name in FOREIGN or name.startswith("build")


def project_files(*suffixes: str) -> list[Path]:
    """Our files with one of the suffixes (all where none is given), sorted."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if not is_foreign(name))
        paths = [Path(folder) / name for name in sorted(names)]
        found += [path for path in paths if not suffixes or path.suffix in suffixes]
    return found


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
