"""The test device, "testdev": memory that the host cannot read, streams, events, pinned memory.

GOSSAMER_TESTS_DEVICE=cuda takes a real one in its place. Nobody decides when its copies land.
"""

import importlib
import os
import types
from typing import Any

import torch

NAME = os.environ.get("GOSSAMER_TESTS_DEVICE", "testdev")
IS_REAL = NAME != "testdev"
WHY_NOT = f"{NAME} counts nothing and has no seed"

_test_device: Any = None if IS_REAL else importlib.import_module("gossamer._test_device")


def install() -> None:
    """Makes ``torch.device("testdev")`` known; once per process."""
    if hasattr(torch, NAME):
        return
    torch.utils.rename_privateuse1_backend(NAME)
    module = types.ModuleType(NAME)
    vars(module).update(
        is_available=lambda: True,
        is_initialized=lambda: True,
        device_count=lambda: 1,
        current_device=lambda: 0,
        _is_in_bad_fork=lambda: False,
        manual_seed_all=lambda seed: None,
        get_amp_supported_dtype=lambda: [torch.float16, torch.bfloat16, torch.float32],
        Stream=lambda priority=0: torch.Stream(NAME, priority=priority),
        Event=lambda: torch.Event(NAME),
        current_stream=lambda: torch.accelerator.current_stream(0),
        stream=lambda stream: stream,
    )
    torch._register_device_module(NAME, module)
    _test_device.install()


def seed(number: int, most_looks: int = 3) -> None:
    """When late copies land, and how often an event is not over yet."""
    if IS_REAL:
        return
    _test_device.seed(number, most_looks)


def leave_out(waiter: int, recorded: int) -> None:
    """Until the next seed, ``waiter`` does not wait for what is under way in stream ``recorded``.
    Streams are numbered from 1 since the seed, 0 is the default one, -1 the host."""
    _test_device.leave_out(waiter, recorded)


def fail_after(calls: int) -> None:
    """Until the next seed, the call of the device after so many others fails, once."""
    _test_device.fail_after(calls)


def sizes() -> tuple[int, int]:
    """Bytes: of the device's memory that are in use, and of pinned memory ever asked for."""
    return _test_device.sizes()


def counts() -> dict[str, int]:
    """What was done since the last call."""
    return _test_device.counts()
