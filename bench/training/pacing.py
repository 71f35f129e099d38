"""Real layers at the pace of an emulated machine: what computing did not take is slept."""

import torch
from sleeping_model import FORWARD_SHARE, Clockwork
from torch import nn


class _Mark(torch.autograd.Function):
    """The end of a stage's forward, and the beginning of its backward."""

    @staticmethod
    def forward(ctx, x, clockwork, stages):
        ctx.clockwork, ctx.stages = clockwork, stages
        clockwork.advance(FORWARD_SHARE / stages)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_x):
        ctx.clockwork.advance((1 - FORWARD_SHARE) / ctx.stages)
        return grad_x, None, None


def pace(model: nn.Module, stages: list[nn.Module], clockwork: Clockwork) -> None:
    """From now on every training step of `model` lasts as long as `clockwork` says, in equal parts
    by stage.

    A stage's backward sleeps before its gradients come; what computing them takes, the stage after
    it makes up for. The first stage, the last to go backward, should therefore be a cheap one.
    """

    def begin(*_: object) -> None:
        if model.training:
            clockwork.begin()

    def mark(_: nn.Module, __: object, output: torch.Tensor) -> torch.Tensor:
        return _Mark.apply(output, clockwork, len(stages)) if model.training else output

    model.register_forward_pre_hook(begin)
    for stage in stages:
        stage.register_forward_hook(mark)
