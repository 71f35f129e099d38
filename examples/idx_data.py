"""Images and labels from IDX files (the format of MNIST and Fashion-MNIST), or made-up ones."""

import gzip
import math
from pathlib import Path

import torch
from torch.nn.functional import interpolate
from torch.utils.data import TensorDataset

_UNSIGNED_BYTE = 8


def read_idx(path: Path) -> torch.Tensor:
    """The array of an IDX file of unsigned bytes; raises ValueError where it is not one."""
    raw = path.read_bytes()
    content = bytearray(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    dimensions = content[3] if len(content) > 3 else 0
    start = 4 + 4 * dimensions
    if content[:3] != bytes([0, 0, _UNSIGNED_BYTE]) or len(content) < start:
        raise ValueError(f"{path}: not an IDX file of unsigned bytes, got {bytes(content[:4])!r}")
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4)]
    if math.prod(shape) != len(content) - start:
        raise ValueError(f"{path}: shape {shape} does not fit {len(content) - start} bytes of data")
    return torch.frombuffer(content, dtype=torch.uint8)[start:].reshape(shape)


def _find(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            return path
    raise FileNotFoundError(f"no {name} and no {name}.gz in {folder}")


def _dataset(images: torch.Tensor, labels: torch.Tensor) -> TensorDataset:
    return TensorDataset(images.float().div(255).unsqueeze(1), labels.long())


def _made_up(count: int, seed: int) -> TensorDataset:
    """Ten classes of 28 x 28 images: a smooth pattern for each class, moved about, under noise."""
    patterns = torch.randn(10, 1, 7, 7, generator=torch.Generator().manual_seed(0))
    smooth = interpolate(patterns, size=(28, 28), mode="bilinear").squeeze(1)
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=generator)
    shifts = torch.randint(-2, 3, (count, 2), generator=generator).tolist()
    moved = [
        smooth[label].roll((down, right), (0, 1))
        for label, (down, right) in zip(labels.tolist(), shifts, strict=True)
    ]
    noise = torch.randn(count, 28, 28, generator=generator)
    return _dataset((torch.stack(moved) + 2 * noise).mul(32).add(128).clamp(0, 255).byte(), labels)


def _read(folder: Path, part: str) -> TensorDataset:
    images = read_idx(_find(folder, f"{part}-images-idx3-ubyte"))
    return _dataset(images, read_idx(_find(folder, f"{part}-labels-idx1-ubyte")))


def load(folder: str | None) -> tuple[TensorDataset, TensorDataset]:
    """Training and test images [n, 1, 28, 28] in 0 to 1 with labels; made up without a folder."""
    if folder is None:
        return _made_up(2000, seed=1), _made_up(500, seed=2)
    return _read(Path(folder), "train"), _read(Path(folder), "t10k")
