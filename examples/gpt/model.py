"""A decoder like GPT-2's, and its two kinds of parameters."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy, gelu, linear, scaled_dot_product_attention


@dataclass(frozen=True)
class Config:
    vocabulary: int
    length: int  # tokens of a window, at most
    width: int
    layers: int
    heads: int


CONFIGS = {
    "tiny": Config(vocabulary=256, length=64, width=64, layers=4, heads=4),
    # GPT-2's 50,257 tokens, and 47 that nobody uses: a multiple of 64 is faster.
    "gpt2": Config(vocabulary=50_304, length=1024, width=768, layers=12, heads=12),
}


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.attention(self.norm_1(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(gelu(self.up(self.norm_2(x))))


class GPT(nn.Module):
    """Scores [batch, length, vocabulary] of the token that follows each of `tokens`; with
    `following`, the tokens that do follow, their mean loss."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.length, config.width)
        self.blocks = nn.ModuleList(Block(config.width, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                # So many branches add to x, and their variances as well.
                share = (2 * config.layers) ** -0.5 if "out." in name or "down." in name else 1.0
                nn.init.normal_(parameter, std=0.02 * share)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens: torch.Tensor, following: torch.Tensor | None = None) -> torch.Tensor:
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        scores = linear(self.norm(x), self.tokens.weight)  # one matrix reads and writes tokens
        if following is None:
            return scores
        return cross_entropy(scores.flatten(0, 1), following.flatten())


def make_optimizers(
    model: GPT, lr: float, muon_lr: float, decay: float = 0.1
) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the blocks, AdamW for embeddings, norms and biases."""
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    taken = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in taken]
    groups = [
        {"params": [p for p in others if p.ndim == 2]},
        {"params": [p for p in others if p.ndim < 2], "weight_decay": 0.0},
    ]
    is_cuda = model.norm.weight.is_cuda
    return [
        torch.optim.Muon(matrices, muon_lr, weight_decay=decay),
        torch.optim.AdamW(groups, lr, betas=(0.9, 0.95), weight_decay=decay, fused=is_cuda),
    ]
