"""Token shards as nanoGPT's and modded-nanogpt's: written, checked, and windows of them.

    python examples/gpt/data.py TEXT... --out shards

A shard is 256 numbers of four bytes (20240520, version 1, count of tokens, zeros), then as many
tokens of two bytes, little-endian. A name with "train" is for training, one with "val" for
validation. The tool writes bytes as tokens: they need no tokenizer.
"""

import argparse
import random
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import torch

MAGIC, VERSION, NUMBERS = 20240520, 1, 256
HEADER_BYTES, TOKEN_BYTES = 4 * NUMBERS, 2


def write_shard(path: Path, tokens: Iterable[int]) -> None:
    """Whole or not at all. Raises OverflowError for a token that does not fit into two bytes."""
    content = array("H")
    content.extend(tokens)
    header = array("I", [MAGIC, VERSION, len(content)] + [0] * (NUMBERS - 3))
    if sys.byteorder == "big":
        content.byteswap()
        header.byteswap()
    aside = path.with_suffix(".part")
    aside.write_bytes(header.tobytes() + content.tobytes())
    aside.replace(path)


def read_shard(path: Path) -> torch.Tensor:
    """The tokens of a file, which stay there until they are used. Raises ValueError for what is no
    whole shard."""
    remedy = "write it again with examples/gpt/data.py, or copy it again"
    with path.open("rb") as file:
        header = array("I", file.read(12).ljust(12, b"\0"))
    if sys.byteorder == "big":
        header.byteswap()
    magic, version, count = header
    if magic != MAGIC:
        raise ValueError(
            f"[data] {path} is no token shard: it must begin with {MAGIC}, got {magic}; {remedy}"
        )
    if version != VERSION:
        raise ValueError(
            f"[data] {path} has a version that nobody here reads: it must be {VERSION}, got "
            f"{version}; {remedy}"
        )
    size, expected = path.stat().st_size, HEADER_BYTES + TOKEN_BYTES * count
    if size != expected:
        raise ValueError(
            f"[data] {path} is truncated or too long: {count} tokens take {expected} bytes, got "
            f"{size}; {remedy}"
        )
    numbers = torch.from_file(
        str(path), shared=False, size=expected // TOKEN_BYTES, dtype=torch.uint16
    )
    return numbers[HEADER_BYTES // TOKEN_BYTES :]


class Shards:
    """All shards of a folder whose names have `word`, as windows of `length` tokens and the token
    after them. Raises ValueError where there are none, or no window fits into any."""

    def __init__(self, folder: Path, word: str, length: int, vocabulary: int) -> None:
        self._paths = sorted(folder.glob(f"*{word}*.bin"))
        self._shards = [read_shard(path) for path in self._paths]
        self._length, self._vocabulary = length, vocabulary
        self._ends = list(accumulate(max(0, len(shard) - length) for shard in self._shards))
        if not self._ends or self._ends[-1] == 0:
            counts = ", ".join(f"{len(shard)} tokens" for shard in self._shards) or "no such file"
            raise ValueError(
                f"[data] {folder} must have shards *{word}*.bin of more than {length} tokens, got "
                f"{counts}; write them with: python examples/gpt/data.py TEXT --out {folder}"
            )

    def random(self, count: int, key: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Windows [count, length] and what follows each of their tokens; equal for equal keys."""
        numbers = random.Random(key)
        return self._take([numbers.randrange(self._ends[-1]) for _ in range(count)])

    def first(self, count: int, part: int, parts: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Of `count` windows one after the other, or as many as there are, every parts-th."""
        starts = range(0, self._ends[-1], self._length)[:count]
        return self._take(list(starts[part::parts]) or [0])

    def _take(self, starts: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        taken = torch.stack([self._window(start) for start in starts]).long()
        largest = int(taken.max())
        if largest >= self._vocabulary:
            raise ValueError(
                f"[data] {self._paths[0].parent} has tokens that the model does not know: they "
                f"must be below {self._vocabulary}, got {largest}; choose another --model, or "
                "write shards of bytes"
            )
        return taken[:, :-1], taken[:, 1:]

    def _window(self, start: int) -> torch.Tensor:
        number = bisect_right(self._ends, start)
        begin = start - (self._ends[number - 1] if number else 0)
        return self._shards[number][begin : begin + self._length + 1]


def write_bytes(texts: Sequence[Path], out: Path, *, most: int, held_back: float) -> list[Path]:
    """Shards of up to `most` tokens from the bytes of files; the end is for validation. Raises
    ValueError for no text."""
    content = b"".join(path.read_bytes() for path in texts)
    split = len(content) - int(len(content) * held_back)
    if not 0 < split < len(content):
        raise ValueError(
            f"[data] shards of both kinds need text and a share between 0 and 1, got "
            f"{len(content)} bytes and --val {held_back:g}; name larger files"
        )
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for word, part in (("train", content[:split]), ("val", content[split:])):
        for number, begin in enumerate(range(0, len(part), most)):
            written.append(out / f"{word}_{number:06}.bin")
            write_shard(written[-1], part[begin : begin + most])
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="+", type=Path, metavar="TEXT")
    parser.add_argument("--out", type=Path, required=True, help="folder for the shards")
    parser.add_argument("--most", type=int, default=100_000_000, help="tokens of a shard")
    parser.add_argument("--val", type=float, default=0.1, help="share that is held back")
    args = parser.parse_args()
    for path in write_bytes(args.texts, args.out, most=args.most, held_back=args.val):
        print(f"{path}: {len(read_shard(path))} tokens")


if __name__ == "__main__":
    main()
