"""Files that are there as a whole or not at all, and what is no file."""

from __future__ import annotations

from pathlib import Path

from ..base import files


def write_whole(out: Path, content: str | bytes) -> None:
    """As `files.write_whole`, for all to read. What is no file, such as a pipe, is written to as it
    stands."""
    if out.exists() and not out.is_file():
        out.write_bytes(content.encode() if isinstance(content, str) else content)
        return
    files.write_whole(out, content)
    out.chmod(0o644)
