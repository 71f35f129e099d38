"""What is trained: hosts, links, model, batches, and who takes part."""

from dataclasses import dataclass, field, replace

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
GPT = ("ddp", "gossamer allreduce int8", "gossamer aer int8")
QUARTER = ("gossamer aer", "gossamer fitted")


@dataclass(frozen=True)
class Setting:
    """A run. `gamma`: the time that the links need for the bytes of a ring all-reduce, over
    `compute_s`. `longest`: up to how many times `steps` those go on who have not reached DDP's loss
    by then. `every`: steps between validations. `links`: of each host, times the rate that gives
    `gamma`; empty: all 1. `factors`: how much longer each rank computes; empty: none does.
    `rates`: of contenders whose learning rate is another one here. `model`: or gpt, with the
    optimizers of examples/gpt."""

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
    model: str = "transformer"
    rates: dict[str, float] = field(default_factory=dict)


_GPT = Setting(
    "gpt",
    "4x1",
    GPT,
    gamma=1.0,
    compute_s=0.4,
    steps=150,
    every=10,
    warm_up=15,
    batch=8,
    validated=40_000,
    model="gpt",
    # The best of 3e-3, 6e-3, 1.2e-2 and 2.4e-2 for each of the three.
    rates=dict.fromkeys(GPT, 1.2e-2),
)
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
    _GPT,
    replace(_GPT, name="gpt_slow", gamma=3.0),
)
