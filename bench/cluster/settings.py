"""What the comparison runs: hosts, links, compute, and who takes part."""

from dataclasses import dataclass

EVERYBODY = (
    "alone",
    "ddp",
    "ddp bf16",
    "ddp powersgd",
    "decent-dp ring",
    "decent-dp aer",
    "decent-dp complete",
    "gossamer aer",
    "gossamer aer bf16",
    "gossamer aer int8",
    "gossamer aer c10d",
    "gossamer ring",
    "gossamer one-peer-ring",
    "gossamer one-peer-exp",
    "gossamer complete",
    "gossamer allreduce",
)
# Of the experiments: both ends of what links as slow as that leave.
GAMMA_2 = (
    "ddp",
    "ddp bf16",
    "gossamer aer",
    "gossamer ring",
    "gossamer one-peer-ring",
    "gossamer complete",
    "gossamer one-peer-exp",
    "gossamer gradients",
    "gossamer gradients 2",
    "gossamer gradients complete",
    "gossamer gradients ring",
    "gossamer gradients ring average 4",
    "gossamer allreduce int8",
)
# Methods by the words of the command line, and how far the mean over the workers may be from plain
# SGD's: an outer momentum adds to it, and weights of directed graphs are not doubly stochastic.
PATTERNS = {
    "atc@aer": 1e-5,
    "exact_diffusion@ring:lazy": 1e-5,
    "extra@ring": 1e-5,
    "gradient_tracking@aer": 1e-5,
    "gradient_tracking_atc@ring": 1e-5,
    "dsgd_ac@aer": 1e-5,
    "push_sum@random_directed": float("inf"),
    "slowmo@complete:local=2:average=4:outer_every=4": float("inf"),
    "noloco@aer:outer_every=4": float("inf"),
    "gradient_gossip@aer:int8:rounds=2": 1e-3,
    "aer:local=2": 1e-5,
}
SHARDED = (
    "hsdp",
    "gossamer hsdp allreduce",
    "gossamer hsdp allreduce int8",
    "gossamer hsdp gradients int8",
    "gossamer hsdp ring int8",
)
AER = ("ddp", "decent-dp aer", "gossamer aer", "gossamer one-peer-ring")


@dataclass(frozen=True)
class Setting:
    """A cluster and what its workers do. `hosts` and `rate` are words of tools/cluster.py; `rate`
    may be one per host. `factors`: how much longer each rank computes; empty: none does."""

    name: str
    hosts: str
    rate: str
    contenders: tuple[str, ...]
    compute_s: float = 1.2
    jitter: float = 0.0
    factors: tuple[float, ...] = ()
    payload_bytes: int = 8_000_000
    warm: int = 4
    steps: int = 8


# How a run begins: all steps but the first count, one by one.
BEGINNINGS = tuple(
    Setting(
        f"begin {hosts} {rate}",
        hosts,
        f"{rate}Mbit/s",
        ("gossamer one-peer-ring",),
        compute_s=1.0,
        payload_bytes=6_000_000,
        warm=1,
        steps=11,
    )
    for hosts in ("4x2", "5x1", "3x3")
    for rate in (30, 35, 50, 60, 80)
)
SETTINGS = (
    *BEGINNINGS,
    Setting("slow", "4x2", "20Mbit/s", EVERYBODY),
    Setting("fast", "4x2", "80Mbit/s", EVERYBODY),
    # An all-reduce of shards between hosts takes twice the compute.
    Setting("hsdp", "2x2", "27.9Mbit/s", SHARDED),
    Setting("hsdp 4", "4x2", "41.8Mbit/s", SHARDED),
    Setting("hsdp slow", "4x2", "20Mbit/s", SHARDED),
    Setting("hsdp fast", "4x2", "80Mbit/s", SHARDED),
    Setting("hsdp 2 slow", "2x2", "20Mbit/s", SHARDED),
    Setting("hsdp 2 fast", "2x2", "80Mbit/s", SHARDED),
    # A ring all-reduce over all workers takes twice the compute.
    Setting("gamma2", "4x2", "48.8Mbit/s", GAMMA_2),
    Setting("gamma2 16", "4x4", "52.3Mbit/s", GAMMA_2),
    Setting("patterns", "4x2", "48.8Mbit/s", tuple(PATTERNS), steps=16),
    Setting("patterns fast", "4x2", "97.6Mbit/s", tuple(PATTERNS), steps=16),
    Setting(
        "jitter",
        "4x2",
        "80Mbit/s",
        ("alone", *AER, "gossamer aer bf16", "gossamer aer backward"),
        jitter=0.3,
        steps=24,
    ),
    Setting("straggler", "4x2", "80Mbit/s", AER, factors=(1, 1, 1, 1.5, 1, 1, 1, 1)),
    Setting(
        "late",
        "8x1",
        "80Mbit/s",
        ("ddp", "gossamer one-peer-ring", "gossamer one-peer skip", "gossamer ring skip"),
        factors=(1, 1, 1, 3, 1, 1, 1, 1),
    ),
    Setting("unequal", "4x2", "20Mbit/s,20Mbit/s,20Mbit/s,10Mbit/s", AER),
    Setting(
        "quarter",
        "4x2",
        "20Mbit/s,20Mbit/s,20Mbit/s,5Mbit/s",
        ("ddp", "gossamer aer", "gossamer fitted"),
    ),
    Setting("four", "4x4", "20Mbit/s", AER),
    Setting("three", "3x3", "20Mbit/s", AER),
    Setting("five", "5x1", "20Mbit/s", AER),
    Setting("uneven", "1,2,4", "20Mbit/s", AER),
    Setting(
        "tiny",
        "2x1",
        "200Mbit/s",
        ("ddp", "gossamer aer"),
        compute_s=0.02,
        payload_bytes=200_000,
        warm=3,
        steps=5,
    ),
)
