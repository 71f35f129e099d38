"""The kernels through their C interface (kernels_c.cpp), on torch tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch

f64, size_t, pointer = ctypes.c_double, ctypes.c_size_t, ctypes.c_void_p
MIX = (f64, pointer, f64)
# Result and arguments of each function that takes anything but tensors.
SIGNATURES = {
    "gk_isa": (ctypes.c_char_p, ()),
    "gk_step": (pointer, (ctypes.c_char_p,)),
    "gk_free": (None, (pointer,)),
    "gk_set": (ctypes.c_bool, (pointer, ctypes.c_char_p, f64)),
    "gk_mix_sgd": (None, (size_t, pointer, pointer, *MIX, f64, f64)),
    "gk_mix_momentum": (None, (size_t, *[pointer] * 3, *MIX, pointer)),
    "gk_mix_adam": (None, (size_t, *[pointer] * 4, *MIX, pointer)),
    "gk_mix_accum_adam": (None, (size_t, *[pointer] * 5, *MIX, pointer)),
    "gk_triad": (None, (size_t, *[pointer] * 3)),
    "gk_triad_streaming": (None, (size_t, *[pointer] * 3)),
    "gk_copy": (None, (size_t, *[pointer] * 2)),
}


class Step:
    """What a kernel is told of a step, by the names of the kernel's struct. What is not set has the
    kernel's default."""

    def __init__(self, library: ctypes.CDLL, kind: str, **fields: float):
        self._c, self.kind = library, kind
        self.handle = library.gk_step(kind.encode())
        if not self.handle:
            raise ValueError(f"[native] gk_step in kernels_c.cpp makes no step, got {kind!r}")
        self.set(**fields)

    def set(self, **fields: float) -> None:
        for name, value in fields.items():
            if not self._c.gk_set(self.handle, name.encode(), float(value)):
                raise ValueError(
                    f"[native] the tables in kernels_c.cpp have no such field of {self.kind}, "
                    f"got {name!r}; add it there"
                )

    def __del__(self) -> None:
        self._c.gk_free(self.handle)


class Kernels:
    """One method per function of the library; tensors are contiguous float32 on the CPU."""

    def __init__(self, path: Path):
        self._c = ctypes.CDLL(str(path))
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(self._c, name)
            function.restype, function.argtypes = result, arguments

    def isa(self) -> str:
        return self._c.gk_isa().decode()

    def step(self, kind: str, **fields: float) -> Step:
        return Step(self._c, kind, **fields)

    def sgd(self, x, g, lr, weight_decay=0.0, **mix):
        self._c.gk_mix_sgd(x.numel(), *_places(x, g), *_mix(**mix), lr, weight_decay)

    def momentum(self, x, g, buf, step: Step, **mix):
        self._c.gk_mix_momentum(x.numel(), *_places(x, g, buf), *_mix(**mix), step.handle)

    def adam(self, x, g, m, v, step: Step, **mix):
        self._c.gk_mix_adam(x.numel(), *_places(x, g, m, v), *_mix(**mix), step.handle)

    def accum_adam(self, x, g, m, v, b, step: Step, **mix):
        self._c.gk_mix_accum_adam(x.numel(), *_places(x, g, m, v, b), *_mix(**mix), step.handle)

    def triad(self, a, b, c, streaming=False):
        function = self._c.gk_triad_streaming if streaming else self._c.gk_triad
        function(a.numel(), *_places(a, b, c))

    def copy(self, a, b):
        self._c.gk_copy(a.numel(), *_places(a, b))


def _places(*tensors: torch.Tensor) -> list[int]:
    return [tensor.data_ptr() for tensor in tensors]


def _mix(self_weight: float = 1.0, source: torch.Tensor | None = None, weight: float = 0.0):
    return self_weight, None if source is None else source.data_ptr(), weight
