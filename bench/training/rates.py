"""The rate of emulated links at which an all-reduce takes so many times as long as computing."""

import torch
from limits import CARRIED_BYTES, FRAME_BYTES
from settings import Setting
from tasks import make_model


def payload_bytes(setting: Setting) -> int:
    """Of all parameters of the model."""
    with torch.device("meta"):
        model = make_model(setting)
    return sum(4 * parameter.numel() for parameter in model.parameters())


def ring_bytes(payload: int, workers: int) -> float:
    """What a host sends, and receives, in a ring all-reduce over all workers, host by host, with
    the headers of full frames."""
    return 2 * (workers - 1) / workers * payload * FRAME_BYTES / CARRIED_BYTES


def rate_for(setting: Setting, workers: int) -> float:
    """Of every link, in bits per second."""
    return 8 * ring_bytes(payload_bytes(setting), workers) / (setting.gamma * setting.compute_s)
