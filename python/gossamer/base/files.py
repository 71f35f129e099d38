"""Reads files that may be anybody's, and writes files whole; without torch.

What is read is a regular file, so that a pipe is an error and no wait, and of a size that such a
file can have. What is parsed has bounded depth and numbers that fit. Errors are OSError for files,
ValueError for what they hold.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import sys
import uuid
from pathlib import Path
from typing import IO, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LARGEST = 1 << 62
"""For files that may have any size."""

_LARGEST_TOML = 4_000_000
_MOST_DIGITS = 40
_MOST_DOTS = 32
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NO_KEY = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|"(?:\\.|[^"\\\n])*"?|'''
    r"""'''.*?'{3,5}|'[^'\n]*'?|#[^\n]*""",
    re.DOTALL,
)
_LONG_NUMBER = re.compile(rf"(?<![\w.])\d\w{{{_MOST_DIGITS},}}")
_MARKS = re.compile(r"[\n=,\[\]{}]")


class UnfitFileError(OSError):
    """No file that could hold what is looked for: not a regular one, or too large."""


def printable(text: object) -> str:
    """The text as a terminal may be given it: characters of control, and bytes that are none of
    UTF-8, are written as \\xNN."""
    return _CONTROL.sub(_code, str(text))


def _code(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}"


def opened(path: Path) -> IO[bytes]:
    """A regular file, open to be read."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise UnfitFileError(errno.EINVAL, "not a regular file", str(path))


def read_bytes(path: Path, limit: int) -> bytes:
    """The whole file, which has at most so many bytes."""
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        found = b"" if size > limit else file.read(size)
    if size > limit:
        raise UnfitFileError(
            errno.EFBIG, f"larger than the {limit} bytes that it may have", str(path)
        )
    return found


def parse_json(text: str | bytes) -> Any:
    """A value of JSON. ValueError for all that is wrong with it."""
    try:
        return json.loads(text, parse_int=_whole)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file. ValueError for all that is wrong with it."""
    text = read_bytes(path, _LARGEST_TOML).decode()
    bare = _NO_KEY.sub("", text)
    if any(part.count(".") > _MOST_DOTS for part in _MARKS.split(bare)):
        raise ValueError(f"a key with more than {_MOST_DOTS} dots")
    if _LONG_NUMBER.search(bare):
        raise ValueError(f"a number of more than {_MOST_DIGITS} digits")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def write_whole(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """The file of this content: beside its name first, in a file that nobody else has made, so that
    there is never a half of it, and no link is followed. ``mode``: whose it is, less the umask."""
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(aside, flags, mode), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        aside.replace(path)
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
