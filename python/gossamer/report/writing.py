"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(out: Path, text: str) -> None:
    """Beside its place first, so that there is never a half of it. What is no file, such as a pipe,
    is written to as it stands."""
    if out.exists() and not out.is_file():
        out.write_text(text, encoding="utf-8")
        return
    handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(out)
    except BaseException:
        Path(name).unlink()
        raise
