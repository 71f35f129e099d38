"""The two models of the comparison: few large parameters, and many small ones."""

import torch
from torch import nn
from torch.nn import functional


class Transformer(nn.Module):
    """A byte-level language model of 10.9 million parameters."""

    def __init__(
        self, width: int = 384, layers: int = 6, heads: int = 6, context: int = 64
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, width)
        self.position = nn.Parameter(torch.zeros(context, width))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 256, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens) + self.position[: tokens.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.two = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm_one = nn.BatchNorm2d(width)
        self.norm_two = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norm_one(self.one(x)))
        return functional.relu(x + self.norm_two(self.two(y)))


class DeepConvNet(nn.Module):
    """A residual net of 328 parameters, none larger than 2304 elements."""

    def __init__(self, width: int = 16, blocks: int = 54) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(blocks)))
        self.head = nn.Linear(width, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(images)).mean(dim=(2, 3)))


def transformer_batch(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.randint(0, 256, (2, 33), generator=generator)
    tokens = tokens.cumsum(dim=1) % 256  # something to learn
    return tokens[:, :-1], tokens[:, 1:]


def conv_batch(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    images = torch.randn((4, 3, 16, 16), generator=generator)
    return images, (images.mean(dim=(1, 2, 3)) * 200).long() % 10


MODELS = {
    "transformer": (Transformer, transformer_batch),
    "conv": (DeepConvNet, conv_batch),
}


def loss_of(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    inputs, targets = batch
    outputs = model(inputs)
    return functional.cross_entropy(outputs.reshape(-1, outputs.shape[-1]), targets.reshape(-1))
