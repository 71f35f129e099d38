"""What settings train: a model, its stages as the pace wants them, and its own optimizers."""

from model import GPT, Config, make_optimizers
from models import Transformer
from settings import Setting
from torch import nn
from torch.optim import Optimizer

SYMBOLS = 256
MUON = 20 / 3
"""The learning rate of Muon over that of AdamW, as examples/gpt has them."""


def make_model(setting: Setting) -> nn.Module:
    """With new parameters, by torch's seed."""
    if setting.model == "gpt":
        shape = (setting.length, setting.width, setting.layers, setting.heads)
        return GPT(Config(SYMBOLS, *shape))
    return Transformer(setting.width, setting.layers, setting.heads, setting.length)


def stages_of(model: nn.Module) -> list[nn.Module]:
    """From the input on, a cheap one first."""
    if isinstance(model, GPT):
        return [model.tokens, *model.blocks, model.norm]
    assert isinstance(model, Transformer)
    return [model.embed, *model.blocks, model.head]


def own_optimizers(model: nn.Module, lr: float) -> list[Optimizer]:
    """Of the recipe, for a GPT; else none."""
    return make_optimizers(model, lr, MUON * lr) if isinstance(model, GPT) else []
