"""What people do with GPUs, as far as it can be tried without one."""

import warnings
from typing import Any

import pytest
import torch
from torch import nn

from gossamer.tensors import devices
from gossamer.workers import world


class OnGpu:
    """Says that it is there."""

    device = torch.device("cuda", 0)


ON_GPU: Any = [("weight", OnGpu(), 0)]
HERE = [("weight", torch.zeros(2), 0)]


def test_a_step_in_a_captured_graph_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(RuntimeError, match="capture forward and backward"):
        devices.refuse_capture(ON_GPU)
    devices.refuse_capture(HERE)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    devices.refuse_capture(ON_GPU)


def test_a_model_in_cpu_memory_has_no_gpu() -> None:
    assert devices.name_of_gpu(nn.Linear(2, 2)) == ""


@pytest.mark.parametrize(
    ("gpus", "ranks"),
    [
        (["", "", ""], []),
        (["GPU-a", "GPU-b", ""], []),
        (["GPU-a", "GPU-b", "GPU-a"], [0, 2]),
        (["", "GPU-b", "GPU-b", "GPU-b"], [1, 2, 3]),
    ],
)
def test_ranks_on_one_gpu_are_found(gpus: list[str], ranks: list[int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert world._sharing(gpus) == ranks
