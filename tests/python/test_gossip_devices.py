"""A model that is not in CPU memory is refused by name; a fake tensor stands for one on a GPU."""

import pytest
import torch
from gossip_support import mlp
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.optim import SGD

from gossamer import Gossip


def on_gpu() -> torch.Tensor:
    return FakeTensor(FakeTensorMode(), torch.empty(3, device="meta"), torch.device("cuda"))


@pytest.mark.parametrize("kind", ["parameter", "frozen parameter", "buffer"])
def test_a_gpu_is_refused_with_the_name_and_a_remedy(kind: str) -> None:
    model = mlp()
    if kind == "buffer":
        model.register_buffer("there", on_gpu())
    else:
        model.register_parameter("there", nn.Parameter(on_gpu(), kind == "parameter"))
    trained = [p for p in model.parameters() if p.requires_grad]
    told = (
        rf"^\[Gossip\] {kind.split()[-1]} 'there' must be in CPU memory, got one on cuda:0; "
        r"parameters on a GPU are not served yet: train on the CPU .* or stay with "
        r"DistributedDataParallel there$"
    )
    with pytest.raises(ValueError, match=told):
        Gossip(model, SGD(trained, lr=0.1))
