"""What a parameter is called, and where its optimizer has it."""

import torch

Named = tuple[str, torch.Tensor, int]
"""The model's name of a parameter, the parameter, the index of its group in the optimizer."""


def own_name(name: str) -> str:
    """The name that it has without torch.compile."""
    return name.replace("_orig_mod.", "")
