"""What is predicted and measured: clusters, workloads and methods."""

from dataclasses import dataclass, replace

FRAMES = 1514 / 1448  # bytes on an Ethernet link per byte of payload
BUCKETS = 8


@dataclass(frozen=True)
class Scene:
    """A cluster and what its workers do. `gamma`: the time that the links need for the bytes of a
    ring all-reduce between hosts, over `compute_s`; with unequal links, of those with factor 1.
    `jitter`: deviation of the compute time over its mean. `rates` and `speeds`: factors by host;
    empty: all 1. `inside`: the time that all parameters take from one worker of a host to another,
    over `compute_s`; 0: none."""

    hosts: tuple[int, ...]  # workers of each
    gamma: float
    jitter: float = 0.0
    latency_s: float = 200e-6
    rates: tuple[float, ...] = ()
    speeds: tuple[float, ...] = ()
    compute_s: float = 0.05
    parameters: int = 100_000
    inside: float = 0.0

    @property
    def name(self) -> str:
        if len(set(self.hosts)) == 1:
            text = f"{len(self.hosts)}x{self.hosts[0]}"
        else:
            text = "+".join(str(workers) for workers in self.hosts)
        text += f", gamma {self.gamma:g}"
        if self.jitter:
            text += f", jitter {self.jitter:g}"
        if self.latency_s >= 1e-3:
            text += f", {1e3 * self.latency_s:g} ms"
        if self.inside:
            text += f", inside {self.inside:g}"
        if self.rates:
            text += f", a link x {min(self.rates):g}"
        if self.speeds:
            text += f", a host x {min(self.speeds):g}"
        return text

    @property
    def rate_bits_per_s(self) -> float:
        """What makes `gamma` true."""
        hosts = len(self.hosts)
        ring_bytes = 2 * (hosts - 1) / hosts * 4 * self.parameters * FRAMES
        return 8 * ring_bytes / (self.gamma * self.compute_s)


def cluster_toml(scene: Scene) -> str:
    ones = (1.0,) * len(scene.hosts)
    inside = ""
    if scene.inside:
        rate = 4 * scene.parameters / (scene.inside * scene.compute_s)
        inside = f'inside_rate = "{rate:.0f}B/s"\n'
    return "".join(
        f'[[hosts]]\nworkers = {workers}\nlink_rate = "{factor * scene.rate_bits_per_s:.0f}bit/s"\n'
        f'link_latency = "{1e6 * scene.latency_s:.0f}us"\nspeed = {speed}\n{inside}'
        for workers, factor, speed in zip(
            scene.hosts, scene.rates or ones, scene.speeds or ones, strict=True
        )
    )


def workload_toml(scene: Scene, steps_ratio: float = 0) -> str:
    text = f"parameters = {scene.parameters}\nbuckets = {BUCKETS}\n"
    text += f'compute = "{1e6 * scene.compute_s:.0f}us"\n'
    if scene.jitter:
        text += f'deviation = "{1e6 * scene.jitter * scene.compute_s:.0f}us"\n'
    if steps_ratio:
        text += f"[target]\nsteps_ratio = {steps_ratio}\n"
    return text


FLAT = (1,) * 8
PAIRS = (2,) * 4
QUADS = (4,) * 2
MIXED = (1, 2, 4)
FIVE = (1,) * 5
THREES = (3,) * 3
QUARTER = (1.0, 1.0, 1.0, 0.25)
HALF = (1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0)

GROUPS: tuple[tuple[Scene, tuple[str, ...]], ...] = (
    (Scene(FLAT, 0.1), ("allreduce", "ring")),
    (Scene(FLAT, 0.5), ("aer", "one_peer_exponential", "allreduce:bf16")),
    (Scene(FLAT, 2), ("allreduce", "aer", "aer:backward", "one_peer_ring", "ring")),
    (Scene(FLAT, 2, jitter=0.3), ("aer", "one_peer_ring", "one_peer_exponential", "ring")),
    (Scene(PAIRS, 2), ("allreduce", "aer", "complete", "aer:bf16", "ring", "ring:local=4")),
    (Scene(PAIRS, 1, jitter=0.3), ("allreduce", "aer", "aer:backward", "one_peer_ring")),
    (Scene(PAIRS, 1, jitter=0.1, latency_s=5e-3), ("allreduce", "aer", "one_peer_exponential")),
    (Scene(PAIRS, 1, rates=QUARTER), ("aer", "fitted", "one_peer_ring")),
    (Scene(QUADS, 3), ("aer", "aer:int8", "one_peer_ring")),
    (Scene(MIXED, 1, jitter=0.1), ("allreduce", "aer", "one_peer_ring")),
    (Scene(FIVE, 2, jitter=0.1), ("aer", "one_peer_ring", "ring")),
    (Scene(THREES, 5), ("allreduce:int8", "aer", "complete")),
    (Scene(FLAT, 0.5, speeds=HALF), ("one_peer_ring", "one_peer_ring:skip", "ring:skip")),
)

# Patterns that send other payloads, or at other times.
PATTERNS: tuple[tuple[Scene, tuple[str, ...]], ...] = (
    (
        Scene(FLAT, 0.5),
        (
            "atc@ring",
            "exact_diffusion@ring:lazy",
            "dmsgd@ring",
            "qg_dmsgd@aer",
            "push_sum@random_directed",
            "extra@ring",
            "gradient_tracking@ring",
            "cwa_moments@aer",
            "dsgd_ac@aer",
        ),
    ),
    (
        Scene(PAIRS, 1),
        (
            "atc@aer",
            "atc@aer:backward",
            "gradient_tracking@aer",
            "gradient_tracking_atc@aer",
            "cwa_moments@aer:int8",
            "slowmo@complete:local=2:average=4:outer_every=4",
            "noloco@aer:outer_every=4",
            "gradient_gossip@aer:int8",
            "gradient_gossip@aer:rounds=2",
            "aer:stagger=no",
        ),
    ),
    (
        Scene(FIVE, 2, jitter=0.1),
        (
            "atc@one_peer_ring",
            "dmsgd@ring:backward",
            "extra@ring:lazy",
            "gradient_tracking@one_peer_ring",
            "gradient_gossip@ring",
            "ring:rounds=2",
        ),
    ),
)

# Hosts of 4 to 8 workers with links of their own; the first is 65 M parameters on 25 Gbit/s and
# 10 GB/s inside, 70 ms of compute, in small. Computing is slept for 200 ms: 32 workers on two cores
# need some 8 ms per step to be woken, whatever they send.
_INSIDE = tuple(
    replace(scene, compute_s=0.2)
    for scene in (
        Scene((8,) * 4, 1.86, inside=0.37),
        Scene((8,) * 4, 1.86, inside=1.2),
        Scene((8,) * 4, 0.46, inside=0.37),
        Scene((8,) * 2, 1, inside=0.1),
        Scene((4,) * 4, 2, inside=0.37),
        Scene((4,) * 4, 0.5, inside=1),
        Scene((4,) * 2, 3, inside=0.5),
        Scene((6,) * 3, 1, jitter=0.1, inside=0.3),
    )
)
INSIDE: tuple[tuple[Scene, tuple[str, ...]], ...] = tuple(
    (scene, ("allreduce", "allreduce:int8", "aer", "complete:int8")) for scene in _INSIDE
)

STEPS_RATIO = 1.2  # as the training on the emulated cluster has it, docs/results.md

_SIDES = tuple(Scene(hosts, 1) for hosts in (FLAT, PAIRS, QUADS, MIXED, FIVE, THREES))
SIDES: tuple[Scene, ...] = (
    *(replace(scene, gamma=gamma) for scene in _SIDES for gamma in (0.25, 1.0)),
    *(replace(scene, gamma=gamma) for scene in _SIDES for gamma in (5.0, 10.0)),
    Scene(PAIRS, 0.5, jitter=0.1),
    Scene(FLAT, 0.5, latency_s=2e-3),
    Scene(FIVE, 6, jitter=0.1),
    Scene(FLAT, 3, latency_s=5e-3),
)
