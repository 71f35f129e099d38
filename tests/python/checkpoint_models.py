"""Models for checkpoints of other programs."""

import re
from typing import Any

import torch
from torch import nn

LINE = re.compile(r"(parameter|buffer) '(.*)' \[(.*)\] (\w+)")


def model_like(manifest: dict[str, Any]) -> nn.Module:
    """A model with the tensors that the manifest names, all zero."""
    model = nn.Module()
    for line in manifest["model"]:
        found = LINE.fullmatch(line)
        assert found
        *path, name = found[2].split(".")
        owner = model
        for each in path:
            if not hasattr(owner, each):
                owner.add_module(each, nn.Module())
            owner = getattr(owner, each)
        shape = [int(size) for size in found[3].split(", ") if size]
        value = torch.zeros(shape, dtype=getattr(torch, found[4]))
        if found[1] == "parameter":
            owner.register_parameter(name, nn.Parameter(value))
        else:
            owner.register_buffer(name, value)
    return model
