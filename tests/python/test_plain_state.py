"""The states of a loop's objects as JSON."""

import collections
import json
import math
from typing import Any

import pytest
import torch

from gossamer.step.plain_state import from_json, to_json

STATES = [
    {1: [2, 3.5, None, True], "a": ("b", (False,)), None: {}, (1, 2): 0},
    {"best": math.inf, "worst": -math.inf},
    collections.Counter({30: 1, 80: 2}),
    collections.OrderedDict(b=1, a=2),
    {"kind": "tensor", "of": {}},
    [],
]


@pytest.mark.parametrize("state", STATES, ids=range(len(STATES)))
def test_a_state_goes_through_json_as_it_is(state: Any) -> None:
    text = json.dumps(to_json(state), allow_nan=False)
    found = from_json(json.loads(text))
    assert found == state
    assert type(found) is type(state)


TENSORS = [
    *(torch.randn(3, 2).to(dtype) for dtype in (torch.float16, torch.bfloat16, torch.float64)),
    torch.randn(2, 3, dtype=torch.complex64),
    torch.arange(6).reshape(2, 3).t(),
    torch.tensor(7),
    torch.empty(0, 4),
    torch.tensor([True, False]),
    torch.nn.Parameter(torch.randn(2)),
]


@pytest.mark.parametrize("tensor", TENSORS, ids=range(len(TENSORS)))
def test_a_tensor_keeps_its_bits(tensor: torch.Tensor) -> None:
    found = from_json(json.loads(json.dumps(to_json(tensor))))
    assert (found.dtype, found.shape) == (tensor.dtype, tensor.shape)
    assert torch.equal(found, tensor)


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("value", [print, {1}, Text("a"), 1j, b"", [object()]], ids=repr)
def test_what_has_no_plain_form_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="no plain form for"):
        to_json(value)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"kind": "object", "of": []},
        {"kind": "dict", "of": 3},
        {"kind": "dict", "of": [[1]]},
        {"kind": "dict", "of": [[{"kind": "dict", "of": []}, 1]]},
        {"kind": "tensor", "of": {"dtype": "load", "shape": [1], "bytes": ""}},
        {"kind": "tensor", "of": {"dtype": "float32", "shape": [3], "bytes": "AAAA"}},
        {"kind": "tensor", "of": {"dtype": "float32", "shape": [1], "bytes": "?"}},
        {"kind": "float", "of": "x"},
    ],
    ids=str,
)
def test_what_is_no_state_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="no plain state: "):
        from_json(value)
