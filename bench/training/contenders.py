"""Who trains: a way to train, an optimizer and its learning rate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from methods import Entry, alone, ddp, decent_dp, gossamer
from torch.optim import Optimizer

Make = Callable[[Sequence[torch.Tensor], float], Optimizer]


def adamw(parameters: Sequence[torch.Tensor], lr: float) -> Optimizer:
    return torch.optim.AdamW(parameters, lr=lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True)


def accum_adamw(parameters: Sequence[torch.Tensor], lr: float) -> Optimizer:
    """Momenta of four steps, with betas that forget as quickly as `adamw` does."""
    from gossamer import AccumAdamW

    return AccumAdamW(parameters, lr=lr, betas=(0.66, 0.92), weight_decay=0.01, accumulate=4)


# DDP's buckets by default are larger than this small model: nothing would be hidden.
BUCKET_MB = 0.125
# Each the best of 8e-3, 1.6e-2, 3.2e-2 and 6.4e-2, for DDP and for Gossamer's ring of groups.
ALL_REDUCE_LR = 3.2e-2
GOSSIP_LR = 3.2e-2


@dataclass(frozen=True)
class Contender:
    """A row of the table. `pair`: the contender that it should be as good as, if there is one."""

    entry: Entry
    lr: float = GOSSIP_LR
    optimizer: Make = adamw
    pair: str = ""


AER = "alternating_exponential_ring"
ONE_PEER = "one_peer_ring"

CONTENDERS: dict[str, Contender] = {
    "alone": Contender(Entry(alone), ALL_REDUCE_LR),
    "ddp": Contender(ddp(bucket_mb=BUCKET_MB), ALL_REDUCE_LR),
    "ddp 25 MB": Contender(ddp(), ALL_REDUCE_LR, pair="ddp"),
    "decent-dp ring": Contender(decent_dp("ring")),
    "decent-dp aer": Contender(decent_dp("alternating-exp-ring")),
    "decent-dp aer 128 KB": Contender(
        decent_dp("alternating-exp-ring", bucket_mb=BUCKET_MB), pair="decent-dp aer"
    ),
    "decent-dp complete": Contender(decent_dp("complete")),
    "gossamer aer": Contender(gossamer(AER)),
    "gossamer aer bf16": Contender(gossamer(AER, codec="bf16"), pair="gossamer aer"),
    "gossamer aer int8": Contender(gossamer(AER, codec="int8"), pair="gossamer aer"),
    "gossamer aer accum": Contender(gossamer(AER), optimizer=accum_adamw),
    "gossamer one-peer-ring": Contender(gossamer(ONE_PEER)),
    "gossamer one-peer-exp": Contender(gossamer("one_peer_exponential")),
    "gossamer ring": Contender(gossamer("ring")),
    "gossamer complete": Contender(gossamer("complete")),
    "gossamer fitted": Contender(gossamer("fitted", link_rates=(4, 4, 4, 1)), pair="gossamer aer"),
    "gossamer one-peer skip": Contender(
        gossamer(ONE_PEER, late="skip"), pair="gossamer one-peer-ring"
    ),
    "gossamer ring skip": Contender(gossamer("ring", late="skip"), pair="gossamer ring"),
    "gossamer allreduce": Contender(
        gossamer("complete", pattern="allreduce"), ALL_REDUCE_LR, pair="ddp"
    ),
    "gossamer allreduce int8": Contender(
        gossamer("complete", pattern="allreduce", codec="int8"), ALL_REDUCE_LR, pair="ddp"
    ),
}
