"""The C++ side of gossamer. __torch_version__ is the torch whose headers it was compiled with."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

class TransportError(RuntimeError):
    """A peer or a link did not do its part.

    ``rank`` is this worker's, ``peer`` that of the other one: where a deadline has passed, of the
    one that was not heard meanwhile, for which perhaps all wait. ``reason`` says more.

    Example::

        try:
            optimizer.step()
        except gossamer.TransportError as error:
            print(error.rank, error.peer, error.reason)
    """

    rank: int
    peer: int
    operation: str
    elapsed_s: float
    reason: str

class IoError(OSError):
    """A file, a folder or a device did not do its part.

    Example::

        try:
            gossip.load("nowhere")
        except gossamer.IoError as error:
            print(error)
    """

class Tag:
    """Matches a send to its receive; never used twice for one pair of workers."""

    def __init__(self, step: int = 0, stream: int = 0, slot: int = 0) -> None: ...
    @property
    def step(self) -> int: ...
    @property
    def stream(self) -> int: ...
    @property
    def slot(self) -> int: ...

class Transport:
    """One worker's end. Requests are numbers; each must be waited for or released.

    ValueError for a peer without an edge, a request that does not exist, and after ``stop``.
    """

    @property
    def job(self) -> str:
        """A word for the job that all its workers know; no secret."""

    def send(self, peer: int, tensor: torch.Tensor, tag: Tag, *, timeout_s: float) -> int:
        """Starts sending a contiguous CPU tensor, which must not change until the request ended."""

    def receive(self, peer: int, tensor: torch.Tensor, tag: Tag, *, timeout_s: float) -> int:
        """Starts receiving exactly the tensor's bytes into a contiguous CPU tensor."""

    def done(self, request: int) -> bool:
        """True when the request is done, False while it is pending; raises what failed it."""

    def wait(self, request: int) -> None:
        """Blocks until the request has ended and releases it; raises what failed it."""

    def release(self, request: int) -> None:
        """Forgets a request, cancelling it if it is pending."""

    def progress(self, timeout_s: float) -> None:
        """Blocks until something happened to a request."""

    def close(self, peer: int) -> None:
        """Fails all requests with the peer, now and later, on both sides."""

    def stop(self) -> None:
        """Ends the transport: says good-bye to the peers and closes the groups."""

    def begin_roll_call(
        self,
        peers: Sequence[int],
        *,
        compares_steps: bool,
        report: Callable[[list[int], str], None],
        patience_s: float = 10.0,
    ) -> None:
        """From now on its workers tell each other what they have come to; ``report(ranks, where)``
        is told once per call whom this one has been waiting for, after ``patience_s``."""

    def describe(self) -> dict[str, Any]:
        """Name, rank, workers, and payload bytes by peer: ``edges`` has for each its peer, sent and
        received."""

class Arrival:
    """How a worker comes back to those that are there; all raise TransportError where nobody is."""

    def __init__(
        self, transport: Transport, preferred: Sequence[int], timeout_s: float
    ) -> None: ...
    def take_state(self) -> bytes:
        """What the first of ``preferred`` has given."""

def c10d_transport(
    rank: int, workers: int, groups: dict[int, Any], *, linger_s: float = 1.0
) -> Transport:
    """A transport over {peer: Gloo process group of torch}; it takes the groups over.

    ``linger_s``: how long its end waits for peers to take what was sent. ValueError for ranks out
    of range, groups that do not have the two ends, and backends other than Gloo.
    """

def net_transport(
    rank: int,
    workers: int,
    *,
    token: str,
    share: Callable[[str], list[str]],
    address: str = "",
    share_memory: bool = True,
    tls: bool = False,
    generation: int = 0,
    longest_silence_s: float = 30.0,
    least_heard: int | None = None,
) -> Transport:
    """A transport over shared memory inside a host and TCP between hosts.

    ``token``: a secret that all workers of the job know. ``share(mine)`` gives everybody's words by
    rank in exchange for this worker's; it is called once. ``address``: of an interface of this
    host, in numbers, where workers connect that cannot share memory with this one; empty: nowhere.
    Not ``share_memory``: TCP inside a host as well. ``tls``: what goes over TCP is encrypted and
    authenticated by TLS 1.3 with a key from the token. ``generation``: how often a worker of this
    rank has been there before; one that comes back takes its former self's place with all others. A
    peer of which nothing has been heard for ``longest_silence_s`` costs the requests with it;
    with ``least_heard`` not while this worker hears fewer than so many, or with 0 fewer than it
    misses. ValueError for ranks out of range, workers that cannot reach each other, and
    those of which only some have ``tls``; IoError where the system gives no sockets or no memory.
    """

class FolderLock:
    """One job at a time in a folder, until this or its process ends."""

    def __init__(self, folder: str, who: str, job: str = "") -> None:
        """IoError, which says who has it, where another job uses the folder. ``job``: a word that
        processes of one job have in common, any of which takes the folder over."""

    def check(self) -> None:
        """IoError where another job has taken it over, on a file system without locks."""

def started_together() -> tuple[str, str] | None:
    """Which launcher has started this process as one of several, and the variables that say so;
    None where no variable does."""

def token_by_secret(nonce: str) -> str | None:
    """The job's token by GOSSAMER_SECRET_FILE or GOSSAMER_SECRET; None where neither is set."""

def random_digits() -> str:
    """A number that nobody can guess; 64 digits."""

def sealed(token: str, rank: int, words: str) -> str:
    """A rank's words for a store that is not trusted."""

def opened(token: str, rank: int, words: str) -> str:
    """What was sealed; ValueError for anything else."""

def seconds_awake() -> float:
    """A clock for deadlines, in seconds, without the time in which this process stood still."""

def is_loopback(address: str) -> bool:
    """Whether an address, in numbers, leads to no other machine."""

def machine_of_this_process() -> str:
    """The same for all processes of one machine in one network namespace, and for no others; empty
    where the system does not say."""

def find_hosts(
    places: Sequence[tuple[str, str, str, int, int]], who: str
) -> tuple[list[int], list[str], str]:
    """(workers per host, names of the hosts, warning) of places by rank.

    A place: machine_of_this_process(), the machine's name, the launcher's number of the host or
    nothing, its number of the worker on the host or -1, its number of the host's workers or 0. The
    warning, if any, says where the launcher's words are not true. ValueError, with ``who`` as its
    place, where a host's ranks do not follow each other.
    """

def reach_of_shared_memory() -> str:
    """The same for all processes that can share memory with each other; empty where none can."""

def first_difference(here: str, there: str) -> tuple[str, str]:
    """The first lines of two texts that differ; "nothing" where a text has ended."""

class Manifest:
    """What a checkpoint says of itself; see docs/checkpoint.md."""

    def __init__(
        self,
        *,
        step: int,
        created: str,
        optimizer: str,
        pattern: str,
        model: Sequence[str],
        groups: int,
        losses: Sequence[tuple[int, float]],
        files: Sequence[tuple[int, int]],
    ) -> None:
        """``files``: length and CRC-32 of each worker's file, in the order of the ranks."""

    @property
    def step(self) -> int: ...
    @property
    def workers(self) -> int: ...
    @property
    def optimizer(self) -> str: ...
    @property
    def pattern(self) -> str: ...
    @property
    def model(self) -> list[str]: ...
    @property
    def groups(self) -> int: ...
    @property
    def losses(self) -> list[tuple[int, float]]: ...
    @property
    def checksum(self) -> int: ...
    def require_same_model(self, optimizer: str, model: Sequence[str]) -> None:
        """ValueError with the first line that differs."""

def parameter_key(name: str) -> str:
    """The key of a parameter's values."""

def buffer_key(name: str) -> str:
    """The key of a buffer."""

def mixed_key(name: str) -> str:
    """The key of what travels of a parameter that is mixed in a wider dtype."""

def beside_key(name: str) -> str:
    """The key of a tensor that is mixed beside the parameters."""

def optimizer_key(name: str, vector: str = "") -> str:
    """The key of an optimizer's vector; without one, what all of the parameter begin with."""

def pattern_key(pattern: str, vector: str, name: str) -> str:
    """The key of a vector that a pattern keeps."""

def group_key(group: int) -> str:
    """What the keys of a group's settings begin with."""

def model_line(kind: str, name: str, shape: Sequence[int], dtype: str) -> str:
    """What a manifest says of a tensor of the model."""

def begin_checkpoint(folder: str, step: int, attempt: str) -> tuple[str, bool]:
    """The temporary folder, and whether this worker commits on its file system. IoError."""

def temporary_checkpoint(folder: str, step: int, attempt: str) -> str:
    """The temporary folder, as begin_checkpoint makes it."""

class MemoryFolder:
    """A folder in memory, which is gone with this. It removes those of processes that were killed
    while they had one. IoError."""

    def __init__(self, bytes: int = 0) -> None:
        """In GOSSAMER_STATE_FOLDER, else in /dev/shm or TMPDIR, the first that has room."""

    @property
    def path(self) -> str: ...

def write_worker_file(
    temporary: str,
    rank: int,
    tensors: Sequence[tuple[str, torch.Tensor]],
    metadata: Mapping[str, str],
) -> tuple[int, int]:
    """Length and CRC-32 of the file, which is on the disk then.

    IoError; ValueError for what the format cannot hold.
    """

def commit_checkpoint(temporary: str, folder: str, manifest: Manifest, here: Sequence[int]) -> str:
    """Gives the checkpoint its name; the files of the ranks ``here`` must be there. IoError."""

def abandon_checkpoint(temporary: str) -> None:
    """Removes what will not be committed."""

def prune_checkpoints(folder: str, keep: int) -> None:
    """Removes all but the newest. IoError for what stays, which the next call tries again."""

class TensorFile:
    """A file of the format safetensors, in memory."""

    def __init__(self, path: str) -> None:
        """IoError for what is no such file."""

    def keys(self) -> list[str]:
        """The names of the tensors."""

    @property
    def metadata(self) -> dict[str, str]: ...
    def tensor(self, key: str) -> torch.Tensor:
        """A tensor in the file's memory, which stays as long as it does. IoError without one."""

def checkpoints_in(folder: str) -> list[str]:
    """The checkpoints that have a manifest, the newest first."""

def read_checkpoint(checkpoint: str) -> Manifest:
    """IoError, which names the newest earlier checkpoint."""

def open_worker_file(checkpoint: str, manifest: Manifest, rank: int) -> TensorFile:
    """The file of a rank. IoError unless it is what was written."""

def leave_signals_to_parent(signals: Sequence[int]) -> None:
    """In a process that works for its parent: ends when the parent sends one of these, and ignores
    others' ones."""

class StopAgreement:
    """One step after which all workers stop; one per transport."""

    def __init__(self, transport: Transport, done: int = 0, goes_on: bool = False) -> None:
        """`done`: steps that this worker has done. `goes_on`: without those that are lost."""

    def look(self, told: int) -> None:
        """Hears and passes on: the signal that tells this worker to stop, or 0; from any thread."""

    def is_last(self, done: int, told: int) -> bool:
        """Whether all stop after the `done` steps that this worker has done; waits where that is
        not known yet. To be called between steps. Raises what became of a neighbour without which
        it will not be known."""

    @property
    def signal(self) -> int:
        """What this worker, or the one that passed the news on, was told; 0: nothing yet."""

class Schedule:
    """Which workers average with which, step by step.

    Example::

        schedule = gossamer.make_schedule("ring", [4])
        print(schedule.name, schedule.period, schedule.workers)
    """

    @property
    def name(self) -> str: ...
    @property
    def period(self) -> int:
        """Rounds until it repeats; 0: it does not."""

    @property
    def workers(self) -> int: ...
    @property
    def workers_per_host(self) -> list[int]: ...
    @property
    def loss_driven(self) -> bool:
        """Whether it follows the loss, which every step must say: ``gossip.observe(loss)``."""

    def on_hosts(self, workers_per_host: Sequence[int]) -> Schedule:
        """The same rounds for as many workers, who are elsewhere.

        Example::

            schedule = gossamer.make_schedule("ring", [4]).on_hosts([2, 2])
            assert schedule.workers_per_host == [2, 2]
        """

    def matrix(self, t: int) -> list[list[float]]:
        """W of round t: row i has the weights with which worker i takes what each worker sent.

        ValueError for a negative t.

        Example::

            w = gossamer.make_schedule("complete", [2]).matrix(0)
            assert w == [[0.5, 0.5], [0.5, 0.5]]
        """

    def elements_between_hosts(
        self, t: int, elements: int, *, finished_averages: bool = False
    ) -> list[tuple[int, int]]:
        """By host: what its workers send to other hosts, and receive from them, in round t.

        Counted in the plans for a payload of ``elements``, the same for every worker.
        ``finished_averages``: the plans by which gradients are averaged. ValueError for a negative
        t or number of elements.

        Example::

            ring = gossamer.make_schedule("ring", [1, 1, 1])
            assert ring.elements_between_hosts(0, 100) == [(200, 200)] * 3
        """

def make_schedule(
    topology: str,
    workers_per_host: Sequence[int],
    *,
    seed: int = 0,
    degree: int = 1,
    rounds_per_step: int = 1,
    local_steps: int = 1,
    global_average_every: int = 0,
    lazy: bool = False,
    link_rates: Sequence[float] = (),
    adaptive_average: int = 0,
) -> Schedule:
    """The schedule of a topology of the table, or of a file of matrices, NAME.json, with modifiers.

    ``lazy`` mixes with (I + W)/2; ``global_average_every`` 0 is never. ``adaptive_average`` is the
    first distance between global averages whose distance then follows the loss (AGA); every step
    must say it, see ``Gossip.observe``. ``link_rates``, for ``"fitted"``, are those of the hosts'
    links in any unit. ValueError for a name or a size that cannot be served, IoError for a file
    that cannot be read.

    Example::

        schedule = gossamer.make_schedule("ring", [4, 4], global_average_every=8)
        lazy = gossamer.make_schedule("ring", [2, 2], lazy=True)
    """

def modified_schedule(
    schedule: Schedule,
    *,
    rounds_per_step: int = 1,
    local_steps: int = 1,
    global_average_every: int = 0,
    lazy: bool = False,
    adaptive_average: int = 0,
) -> Schedule:
    """The schedule with modifiers."""

def schedule_from_matrices(
    matrices: Sequence[Sequence[Sequence[float]]], workers_per_host: Sequence[int]
) -> Schedule:
    """W of each round, in turn. ValueError for weights that do not sum to 1."""

def is_schedule_file(topology: str) -> bool:
    """Whether a topology of this name is read from a file."""

def name_in_file(path: str) -> str:
    """The name of a file's schedule, with a digest of its weights. Raises IoError or ValueError."""

def alone_schedule(workers_per_host: Sequence[int]) -> Schedule:
    """Nobody mixes with anybody."""

def topology_names() -> list[str]:
    """The names that ``make_schedule`` takes.

    Example::

        assert "ring" in gossamer.topology_names()
    """

class Method:
    """A way to train, by the name that all commands take.

    The name is PATTERN@TOPOLOGY, a topology alone (for cwa), allreduce or ddp. Settings that differ
    from the defaults follow after colons: "atc@ring:lazy:rounds=2", "aer:int8:local=4". ValueError
    for a name that is none.

    Example::

        method = gossamer.Method("aer:int8")
        print(method.pattern, method.topology, method.codec)
        gossip = gossamer.Gossip(model, optimizer, topology=method)
    """

    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def averages_gradients(self) -> bool:
        """Over everybody in every step: ddp and allreduce."""

    @property
    def pattern(self) -> str:
        """A row of the table of patterns; or ddp."""

    @property
    def pattern_options(self) -> dict[str, float]:
        """The pattern's numbers that are not at their defaults."""

    @property
    def topology(self) -> str:
        """Its full name."""

    @property
    def codec(self) -> str: ...
    @property
    def update(self) -> str: ...
    @property
    def late(self) -> str: ...
    @property
    def staleness(self) -> int:
        """Where it skips late neighbours."""

    @property
    def stagger(self) -> bool:
        """Whether bucket b follows the schedule at t + b."""

    def __eq__(self, arg0: Any) -> bool: ...
    def __hash__(self) -> int: ...
    def __repr__(self) -> str: ...
    def schedule(
        self, workers_per_host: Sequence[int], *, link_rates: Sequence[float] = [], seed: int = 0
    ) -> Schedule:
        """Who averages with whom on these hosts; the rates of the hosts' links, in any unit, are
        for fitted, the seed for random graphs. ValueError for hosts that cannot be served.

        Example::

            schedule = gossamer.Method("atc@ring:rounds=2").schedule([2, 2])
            assert schedule.workers == 4
        """

class Forecast:
    """What a method does on a cluster, by simulation."""

    @property
    def method(self) -> str: ...
    @property
    def step_s(self) -> float:
        """Mean over workers and steps."""

    @property
    def exposed_s(self) -> float:
        """The part of it in which workers wait for others."""

    @property
    def model_s(self) -> float:
        """``step_s`` by the recursion of the runtime model; NaN where it does not apply."""

    @property
    def link_busy(self) -> float:
        """Share of the time in which the busiest direction of a link is full."""

    @property
    def bytes_per_host(self) -> list[float]:
        """Sent to other hosts per step, without frames."""

class RankedMethod:
    """A method and its time to the same loss."""

    @property
    def method(self) -> str: ...
    @property
    def step_s(self) -> float:
        """Mean time of a step."""

    @property
    def exposed_s(self) -> float:
        """The part of it in which workers wait for others."""

    @property
    def steps_ratio(self) -> float:
        """Steps over those of all-reduce; an estimate unless the workload has a measured one."""

    @property
    def total_s(self) -> float:
        """To the loss that all-reduce has after its steps."""

class Ranking:
    """Methods by their time to the same loss."""

    @property
    def recommended(self) -> str: ...
    @property
    def methods(self) -> list[RankedMethod]:
        """The best first."""

    @property
    def reasons(self) -> list[str]:
        """Sentences: why the recommended one."""

    @property
    def doubts(self) -> list[str]:
        """Sentences: what the answer hangs on."""

    @property
    def workers_per_host(self) -> list[int]:
        """Of the cluster."""

    @property
    def link_rates(self) -> list[float]:
        """Of the cluster's hosts, in bytes per second; empty unless all are limited."""

def forecast(
    method: str, cluster: str, workload: str, *, steps: int = 100, seed: int = 1
) -> Forecast:
    """Simulates a method of ``gossamer simulate`` on a cluster.toml and a workload.toml.

    Raises ValueError for what the files or the method cannot mean, IoError for files that cannot
    be read.

    Example::

        found = gossamer.forecast("aer:bf16", "cluster.toml", "workload.toml")
        print(found.step_s)
    """

def rank_methods(cluster: str, workload: str) -> Ranking:
    """What ``gossamer plan`` says about a cluster.toml and a workload.toml.

    Example::

        ranking = gossamer.rank_methods("cluster.toml", "workload.toml")
        print(ranking.recommended, ranking.reasons)
    """

def theory_mixing(schedule: Schedule) -> tuple[int, float]:
    """(workers, effective rho). ValueError where W is not doubly stochastic."""

def theory_bound(
    *,
    lambda_: float,
    steps: float,
    parameters: float,
    step_size: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    gradient_bound: float,
    smoothness: float,
    excess_loss: float,
) -> dict[str, Any]:
    """The fields of ``gossamer.theory.Bound``."""

def theory_rates(
    *, workers: int, rho: float, steps: float, sigma: float, b: float, global_average_every: int
) -> list[dict[str, Any]]:
    """The fields of each ``gossamer.theory.Rate``."""

def theory_transient(
    *, workers: int, rho: float, global_average_every: int
) -> list[dict[str, Any]]:
    """The fields of each ``gossamer.theory.Transient``."""

def theory_topologies(workers_per_host: Sequence[int]) -> list[dict[str, Any]]:
    """The fields of each ``gossamer.theory.TopologyRow``."""

def theory_step_times(
    schedule: Schedule,
    *,
    gamma: float,
    omega: float,
    sigma: float,
    buckets: int,
    forward_share: float,
    steps: int,
    seed: int,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """(all-reduce, decentralized) in closed form, and the same by the recursion."""

def measure_device_link(device: str) -> tuple[float, float, float]:
    """How fast a device and pinned memory of the host reach each other.

    Returns bytes per second from the device, bytes per second to it, and seconds of the smallest
    copy, each the best of a few. ``device`` is a word of torch, such as ``"cuda:0"``. RuntimeError
    for what fails there.
    """

def probe(
    transport: Transport | None,
    workers_per_host: Sequence[int],
    time_steps: Callable[[Callable[[float], float]], list[tuple[float, float, float]]],
    time_allreduce: Callable[[int], float],
    *,
    buckets: Sequence[int],
    optimizer: str,
    seconds: float,
    timeout_s: float,
    device: Callable[[], tuple[float, float]],
) -> tuple[str, str]:
    """The texts of cluster.toml and workload.toml, from measurements. Collective.

    First the links are measured, in transfers of about a tenth of ``seconds``, at most 1 s. Then
    ``device`` gives bytes per second and latency, in seconds, of copies between the device of this
    worker and the host's memory: infinite and 0 where there is none. All workers call it at once.
    ``time_steps`` gives the seconds of forward, backward and update of some steps of this worker.
    It is given a function that returns the mean of a number over all workers, who wait for each
    other in it. Where there are several hosts, ``time_allreduce`` gives the seconds of PyTorch's
    all-reduce of so many fp32 elements, the same on all workers. TransportError for a worker that
    is lost.
    """

class Recorder:
    """What a worker did in its last ``steps`` steps."""

    def __init__(self, rank: int, steps: int) -> None: ...
    def resume(self) -> None:
        """What was done until now belongs to no step."""

    def write(self, folder: str, rank: int, workers_per_host: Sequence[int]) -> None:
        """Writes trace.rank<rank>.json.gz, whole or not at all; nothing before an engine that it
        was given to has started. Raises IoError."""

def remove_traces(folder: str) -> None:
    """Removes what traces a run has left in its folder."""

class Hyper:
    """One parameter group's settings for the coming step."""

    def __init__(self) -> None: ...
    lr: float
    weight_decay: float
    beta1: float
    beta2: float
    eps: float
    noise_share: float
    momentum: float
    dampening: float
    nesterov: bool
    accumulate: int
    consensus: float
    outer_every: int
    outer_momentum: float
    outer_lr: float
    grad_scale: float

class Pattern:
    """A row of the table of patterns."""

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def optimizers(self) -> list[str]:
        """Those that it goes with; empty: all."""

    @property
    def own_step(self) -> bool:
        """Whether it goes with optimizer "none" on parameters that something else has stepped."""

    @property
    def averages_first(self) -> bool:
        """Whether gradients can be averaged before such an optimizer steps."""

    @property
    def options(self) -> list[str]:
        """The attributes of Hyper that it reads beside the optimizer's."""

    @property
    def kept_state(self) -> dict[str, int]:
        """By name the state vectors that a step hands on to the next."""

    @property
    def mixes_momentum(self) -> bool: ...
    @property
    def above(self) -> float:
        """Where there is a condition on eigenvalues: all must be above this."""

    def unmet_condition(self, optimizer: str, schedule: Schedule, hyper: Hyper) -> str:
        """The first that is not met: optimizer, doubly_stochastic, static_symmetric, eigenvalues,
        outer_steps or global_averages; or none."""

def patterns() -> list[Pattern]:
    """The table."""

class LostPeer:
    """A worker that this one goes on without."""

    @property
    def rank(self) -> int: ...
    @property
    def why(self) -> str: ...

class PeerBack:
    """A worker that has come back."""

    @property
    def rank(self) -> int: ...
    @property
    def steps(self) -> int:
        """Its edges are on from the step after these."""

class StepReport:
    """What a step did on this worker."""

    @property
    def step(self) -> int: ...
    @property
    def grad_norm(self) -> float:
        """Of all gradients; 0 if not computed, as where they were checked on arrival."""

    @property
    def exposed_s(self) -> float:
        """Seconds spent waiting for other workers."""

    @property
    def skipped(self) -> int:
        """Neighbours' payloads, by bucket, that the step went on without."""

    @property
    def lost(self) -> list[LostPeer]:
        """Workers that were lost in it."""

    @property
    def back(self) -> list[PeerBack]:
        """Those that said in it when they come back."""

    @property
    def among(self) -> list[int]:
        """Ranks that rounds are among from now on, where they have been formed anew."""

    @property
    def hidden_s(self) -> float:
        """Seconds in which payloads were under way without being waited for."""

    @property
    def distance(self) -> float:
        """The norm of what mixing moved the parameters by."""

class EngineOptions:
    """How parameters are mixed and stepped."""

    def __init__(
        self,
        *,
        schedule: Schedule,
        pattern: str,
        optimizer: str,
        timeout_s: float,
        check_gradients: bool,
        check_payloads: bool,
        in_backward: bool = False,
        codec: str = "fp32",
        skips_late: bool = False,
        staleness: int = 1,
        stagger: bool = True,
        hyper: Hyper,
        goes_on: bool = False,
        min_workers: int = 0,
    ) -> None: ...

SUSPECTED_AFTER_S: float
LEAST_SUSPECTED_S: float
STEPS_UNTIL_EDGES: int

def check_hyper(hyper: Hyper) -> None:
    """ValueError for a value out of its range."""

def peers_of(options: EngineOptions, rank: int) -> list[int]:
    """The ranks that a worker exchanges anything with, ascending."""

def can_be_fused(tensor: torch.Tensor) -> bool:
    """Whether fused optimizers can step this tensor."""

def can_pin(device: torch.device) -> bool:
    """Whether a device can copy from and to memory that others read, without waiting."""

class Engine:
    """Mixes and steps tensors, given as (name, tensor, parameter group); transport None is a worker
    alone. ValueError after ``close``, TransportError where another worker is lost."""

    def __init__(
        self,
        transport: Transport | None,
        tensors: Sequence[tuple[str, torch.Tensor, int]],
        options: EngineOptions,
        *,
        bucket_bytes: int,
        recorder: Recorder | None = None,
        beside: Sequence[tuple[str, torch.Tensor, int]] = [],
    ) -> None: ...
    def start(self) -> None:
        """Checks that all ranks agree, gives everybody rank 0's values. Collective."""

    def start_at(self, step: int) -> None:
        """Checks that all ranks agree, goes on after ``step`` steps with own values. Collective."""

    def start_back(self, arrival: Arrival) -> None:
        """Of a worker that comes back: agrees with the others on the step to begin with."""

    @property
    def waiting_for_state(self) -> list[int]:
        """Ranks that come back and ask this one for ``give_state``."""

    def give_state(self, rank: int, state: bytes) -> None:
        """The state after the last step, which leaves beside the next ones."""

    def set_anchors(self) -> None:
        """Before start_at: what the pattern starts phases from is the parameters as they are."""

    @property
    def agreed_losses(self) -> list[tuple[int, float]]:
        """(step, loss) of what a schedule that follows the loss has been told so far; set it before
        ``start_at``."""

    @agreed_losses.setter
    def agreed_losses(self, arg1: Sequence[tuple[int, float]]) -> None: ...
    def step(self, groups: Sequence[Hyper], skip: bool = False, loss: float = 0.0) -> StepReport:
        """Steps every tensor that has a gradient, unless ``skip``, and mixes all; ``loss`` is for
        schedules that follow it."""

    @property
    def steps_done(self) -> int:
        """Steps since ``start``, or since step 0 before ``start_at``."""

    def quiesce(self) -> None:
        """Waits until everything under way has left and arrived."""

    def close(self, gives_for_s: float = 0) -> None:
        """Ends gossiping; everything else is refused from then on.

        ``gives_for_s``: once the others have what this worker sent in steps that are done, or
        after so many seconds.
        """

    def holds(self, groups: Sequence[Sequence[torch.Tensor]]) -> bool:
        """Whether these are its tensors, by group, as they were; frozen ones do not count."""

    def state(self, tensor: int, k: int) -> torch.Tensor:
        """State vector k of a tensor, which the engine uses."""

    def set_state(self, tensor: int, k: int, values: torch.Tensor) -> None:
        """Uses `values`, or a copy where its dtype or strides differ, as state vector k."""

    def reset_state(self, tensor: int) -> None:
        """Uses new state vectors, of zeros."""

    def pattern_state(self, tensor: int, k: int) -> torch.Tensor:
        """The pattern's state vector k of a tensor: a view, in the dtype in which it is mixed."""

    def home(self, tensor: int) -> torch.Tensor:
        """What of a tensor was mixed last and travels next: itself, or its wider copy."""

    def set_home(self, tensor: int, values: torch.Tensor) -> None:
        """Makes `values` the home of what it holds now."""

    def show_updates(self, tensor: int, number: torch.Tensor) -> None:
        """Counts the tensor's steps there from now on."""

    def copy_updates(self, into: torch.Tensor) -> None:
        """Writes how often each of the first tensors has been stepped, into a contiguous float32
        tensor of as many."""

    def set_updates(self, tensor: int, updates: int) -> None:
        """Says how often a tensor has been stepped."""

    def barrier(self) -> None:
        """Waits for all ranks."""

    def call(self, what: str, own: bytes) -> list[bytes]:
        """What all ranks say that have come to ``what``, once all have. Collective.

        ValueError where a peer waits in a step that this rank has not done, or the other way round.
        """

    def load_average(self) -> float:
        """Puts the mean over all ranks in place of the local values; returns the disagreement.

        Collective.
        """

    def restore_local(self) -> None:
        """Puts the local values back after ``load_average``."""

    def broadcast(self, tensors: Sequence[torch.Tensor]) -> None:
        """Gives everybody rank 0's values. Collective."""

    def average(self, tensors: Sequence[torch.Tensor]) -> None:
        """Means over all ranks, of floating-point and complex tensors only. Collective."""

    def edges(self) -> list[tuple[int, int, int]]:
        """(peer, bytes sent, bytes received) so far."""

    def average_gradients(
        self,
        tensors: Sequence[tuple[str, torch.Tensor]],
        bucket_bytes: int,
        codec: str = "fp32",
        at_end: bool = False,
        rounds: Schedule | None = None,
        stagger: bool = False,
        take: Callable[[], None] | None = None,
        give: Callable[[], None] | None = None,
        replica: Callable[[], list[torch.Tensor]] | None = None,
        took: Callable[[Sequence[torch.Tensor]], None] | None = None,
    ) -> None:
        """Averages the tensors' gradients in every backward pass from now on.

        They are averaged over all ranks, or with the weights of ``rounds``: those of the step that
        follows, with ``stagger`` a round later in each bucket.

        ``at_end``: they may change until the pass ends, as DistributedDataParallel changes them.

        Tensors may stand for others: ``take`` is called before their gradients are looked at,
        ``give`` when the means are in ``.grad``, and ``gradient_arrived`` says what arrives.

        Where others go on without a lost rank, ``replica`` gives all tensors that are equal on all
        ranks, and ``took`` is called with them once another rank's values have been written there.
        """

    def gradient_arrived(self, tensor: int) -> None:
        """The gradient of one of the averaged tensors has been written, in a backward pass."""

    def gradients_are_averaged(self) -> bool:
        """Whether no gradient is there that ``average_missed`` would average."""

    def averaged_gradients(self) -> list[torch.Tensor]:
        """The tensors whose gradients have been averaged, if all have been that are there."""

    def take_as_averaged(self, tensors: Sequence[torch.Tensor]) -> None:
        """The gradients of these have been, by an engine before this one."""

    def average_missed(self) -> None:
        """Averages gradients if some are there that no backward pass has averaged. Collective."""

    def pass_without_backward(self) -> None:
        """Takes part in a backward pass of the others with what stands in ``.grad``. Collective."""

    @property
    def gradient_passes(self) -> int:
        """How often gradients have been averaged so far."""

    @property
    def backward_exposed_s(self) -> float:
        """Seconds that backward passes have waited for other ranks so far."""

    @property
    def backward_hidden_s(self) -> float:
        """Seconds in which gradients were under way while backward passes went on."""

    def set_averaging(self, enabled: bool) -> None:
        """Whether backward passes average gradients, or step with them."""

    def watch_gradients(
        self, before_backward: Callable[[], list[Hyper] | None] | None = None
    ) -> None:
        """Checks gradients on arrival and, with ``in_backward``, steps with them.

        ``before_backward`` gives the groups to step with, or None to leave all to ``step``.
        """

    def doubtful_gradients(self) -> list[int]:
        """Which tensors' gradients are not all finite, or cannot be looked at here."""

    @property
    def early_buckets(self) -> int:
        """How many buckets the backward passes of the last step have stepped."""

class VirtualWorkers:
    """n workers of one process."""

    def __init__(
        self, schedule: Schedule, pattern: str, optimizer: str, dimension: int, hyper: Hyper
    ) -> None: ...
    def start(self, x: torch.Tensor) -> None:
        """Before the first step, from these parameters."""

    def step(
        self,
        x: torch.Tensor,
        g: torch.Tensor,
        hyper: Hyper,
        matrix: Sequence[Sequence[float]] | None,
    ) -> None:
        """Changes ``x`` by the gradients ``g``. A ``matrix`` stands for the schedule's W.

        ValueError for numbers and matrices that do not fit.
        """

    @property
    def steps_done(self) -> int: ...
    @property
    def wants_loss(self) -> bool:
        """Whether the step to come needs ``agree_on``."""

    def agree_on(self, loss: float) -> None:
        """The mean loss at the parameters of now, from which the rounds to come follow."""

    def mean(self, x: torch.Tensor) -> list[float]:
        """The mean of all workers that mixing keeps."""

def isa_name() -> str:
    """The instruction set of the kernels: ref, avx2 or avx512.

    ValueError where GOSSAMER_ISA names one that does not exist or that this machine lacks.
    """

__torch_version__: str
