"""Bytes of text files and random windows of them."""

import sysconfig
from pathlib import Path

import torch


def load(data: str | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Bytes for training and, from the end, for validation (a tenth), of a file or a folder.

    By default of the Python standard library's own sources. Raises ValueError for too little text.
    """
    path = Path(data or sysconfig.get_path("stdlib"))
    files = [path] if path.is_file() else sorted(path.glob("*.py" if data is None else "*"))
    text = bytearray(b"".join(file.read_bytes() for file in files if file.is_file()))
    if len(text) < 10_000:
        raise ValueError(f"--data: at least 10000 bytes are needed, got {len(text)} in {path}")
    content = torch.frombuffer(text, dtype=torch.uint8)
    split = len(content) * 9 // 10
    return content[:split], content[split:]


def windows(
    text: torch.Tensor,
    count: int,
    length: int,
    generator: torch.Generator,
    device: torch.device | str = "cpu",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Random windows [count, length] and, for every byte of them, the one that follows it."""
    starts = torch.randint(len(text) - length, (count, 1), generator=generator)
    taken = text[starts + torch.arange(length + 1)].long().to(device)
    return taken[:, :-1], taken[:, 1:]
