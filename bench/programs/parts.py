"""Models and data that several programs share: small, seeded, nothing to download."""

from __future__ import annotations

import sysconfig
from functools import cache
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

SYMBOLS = 128


@cache
def text() -> tuple[torch.Tensor, torch.Tensor]:
    """Sources of Python's standard library as numbers below SYMBOLS: to train with, and the last
    tenth."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:60]
    content = b"".join(file.read_bytes() for file in files)
    numbers = torch.frombuffer(bytearray(content), dtype=torch.uint8).long() % SYMBOLS
    split = len(numbers) * 9 // 10
    return numbers[:split], numbers[split:]


def windows(
    numbers: torch.Tensor, count: int, length: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Random windows and what follows each of their symbols."""
    starts = torch.randint(len(numbers) - length, (count, 1), generator=generator)
    taken = numbers[starts + torch.arange(length + 1)]
    return taken[:, :-1], taken[:, 1:]


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.attention(self.norm_1(x)).view(batch, length, 3, 4, width // 4)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm_2(x))))


class CharacterModel(nn.Module):
    """A decoder-only transformer over SYMBOLS."""

    def __init__(self, length: int, width: int = 48, layers: int = 2) -> None:
        super().__init__()
        self.symbols, self.places = nn.Embedding(SYMBOLS, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, SYMBOLS, bias=False)
        for p in self.parameters():
            if p.ndim > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1])
        return self.head(self.norm(self.blocks(self.symbols(x) + self.places(places))))


def text_loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return cross_entropy(model(x).flatten(0, 1), y.flatten())


CLASSES, SIDE = 10, 16


def images(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy, shifted pictures of CLASSES smooth patterns, and their classes."""
    coarse = torch.randn(CLASSES, 3, 4, 4, generator=torch.Generator().manual_seed(7))
    patterns = nn.functional.interpolate(coarse, SIDE, mode="bilinear")
    classes = torch.randint(CLASSES, (count,), generator=generator)
    pictures = patterns[classes]
    shifts = torch.randint(SIDE, (count, 2), generator=generator).tolist()
    moved = [p.roll(tuple(by), (1, 2)) for p, by in zip(pictures, shifts, strict=True)]
    return torch.stack(moved) + torch.randn(pictures.shape, generator=generator), classes


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.skip = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.skip(x))


def residual_network(width: int = 12) -> nn.Sequential:
    """For pictures of ``images``."""
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 1, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        Residual(width, width, 1),
        Residual(width, 2 * width, 2),
        Residual(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, CLASSES),
    )
