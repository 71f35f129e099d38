"""Who is compared on the emulated cluster: a model, a step, and what must hold afterwards."""

import torch
from methods import Entry, Job, alone, ddp, decent_dp, gossamer, named
from settings import PATTERNS
from sharded import gossamer_hsdp, hsdp
from sleeping_model import SleepingModel

LR = 1e-2


def sleeping_job(model: SleepingModel) -> Job:
    """SGD on gradients that the model knows without computing."""
    x = torch.zeros(1, requires_grad=True)
    return Job(
        model,
        lambda wrapped: wrapped(x).sum(),
        lambda tensors: torch.optim.SGD(tensors, lr=LR),
        layers=tuple(model.layers),
    )


AER = "alternating_exponential_ring"


def gradients(rounds: int, topology: str = AER, average_every: int = 0) -> Entry:
    """Parameters and gradients, both coded."""
    return gossamer(
        topology,
        rounds=rounds,
        average_every=average_every,
        pattern="gradient_gossip",
        update="backward",
        codec="int8",
        bytes_per_element=2 * 260 / 256,
        mean_error=1e-3,
        recursion_error=None,
    )


CONTENDERS: dict[str, Entry] = {
    "alone": Entry(alone),
    "ddp": ddp(),
    "ddp 1 MB": ddp(bucket_mb=1),
    "ddp bf16": ddp("bf16"),
    "ddp powersgd": ddp("powersgd"),
    "decent-dp ring": decent_dp("ring"),
    "decent-dp aer": decent_dp("alternating-exp-ring"),
    "decent-dp aer 1 MB": decent_dp("alternating-exp-ring", bucket_mb=1),
    "decent-dp complete": decent_dp("complete"),
    "gossamer aer": gossamer(AER),
    "gossamer aer bf16": gossamer(
        AER, codec="bf16", bytes_per_element=2, mean_error=1e-4, recursion_error=2e-2
    ),
    "gossamer aer int8": gossamer(
        AER, codec="int8", bytes_per_element=260 / 256, mean_error=1e-4, recursion_error=2e-2
    ),
    "gossamer aer backward": gossamer(AER, update="backward"),
    "gossamer fitted": gossamer("fitted", link_rates=(4, 4, 4, 1)),
    "gossamer aer 4 MB": gossamer(AER, bucket_bytes=4 << 20),
    "gossamer aer c10d": gossamer(AER, transport="c10d"),
    "gossamer ring": gossamer("ring"),
    "gossamer one-peer-ring": gossamer("one_peer_ring"),
    "gossamer one-peer-exp": gossamer("one_peer_exponential"),
    "gossamer complete": gossamer("complete"),
    "gossamer ring skip": gossamer("ring", late="skip", mean_error=float("inf")),
    "gossamer one-peer skip": gossamer("one_peer_ring", late="skip", mean_error=float("inf")),
    "gossamer gradients": gradients(rounds=4),  # on four hosts these average over all
    "gossamer gradients 2": gradients(rounds=2),
    "gossamer gradients complete": gradients(1, "complete"),
    "gossamer gradients ring": gradients(1, "ring"),
    "gossamer gradients ring average 4": gradients(1, "ring", average_every=4),
    "gossamer allreduce": gossamer("complete", pattern="allreduce"),
    "gossamer allreduce int8": gossamer(
        "complete",
        pattern="allreduce",
        codec="int8",
        bytes_per_element=260 / 256,
        mean_error=1e-3,
    ),
    "hsdp": hsdp(),
    "gossamer hsdp allreduce": gossamer_hsdp("complete", pattern="allreduce", mean_error=1e-5),
    "gossamer hsdp allreduce int8": gossamer_hsdp(
        "complete", pattern="allreduce", codec="int8", mean_error=1e-3
    ),
    "gossamer hsdp gradients int8": gossamer_hsdp(
        "ring", pattern="gradient_gossip", codec="int8", mean_error=1e-3
    ),
    "gossamer hsdp ring int8": gossamer_hsdp("ring", codec="int8", mean_error=1e-3),
    **{words: named(words, error) for words, error in PATTERNS.items()},
}
