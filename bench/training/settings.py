"""What is trained: hosts, links, model, batches, and who takes part."""

from dataclasses import dataclass

MAIN = (
    "ddp",
    "decent-dp ring",
    "decent-dp aer",
    "decent-dp complete",
    "gossamer aer",
    "gossamer aer bf16",
    "gossamer aer int8",
    "gossamer one-peer-ring",
)
LATE = (
    "gossamer one-peer-ring",
    "gossamer one-peer skip",
    "gossamer ring",
    "gossamer ring skip",
)
QUARTER = ("gossamer aer", "gossamer fitted")


@dataclass(frozen=True)
class Setting:
    """A run. `gamma`: the time that the links need for the bytes of a ring all-reduce, over
    `compute_s`. `longest`: up to how many times `steps` those go on who have not reached DDP's loss
    by then. `every`: steps between validations. `links`: of each host, times the rate that gives
    `gamma`; empty: all 1. `factors`: how much longer each rank computes; empty: none does."""

    name: str
    hosts: str
    contenders: tuple[str, ...]
    gamma: float = 2.0
    compute_s: float = 0.35
    links: tuple[float, ...] = ()
    factors: tuple[float, ...] = ()
    steps: int = 400
    longest: float = 1.3
    every: int = 20
    warm_up: int = 40
    batch: int = 24
    length: int = 64
    width: int = 64
    layers: int = 4
    heads: int = 4
    validated: int = 1_000_000  # bytes of the text that is held back, at most


SETTINGS = (
    Setting("main", "4x2", MAIN),
    Setting(
        "late",
        "8x1",
        LATE,
        gamma=0.5,
        steps=300,
        factors=(1, 1, 1, 3, 1, 1, 1, 1),
        longest=1.0,
    ),
    Setting("quarter", "4x2", QUARTER, links=(1, 1, 1, 0.25), longest=1.0),
)
