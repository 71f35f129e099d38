"""Gossamer: decentralized training for PyTorch, without a global all-reduce.

One new line after the optimizer of a script for DistributedDataParallel, in place of the wrapper::

    gossip = gossamer.Gossip(model, optimizer, topology="alternating_exponential_ring")
"""

from gossamer import _load  # noqa: F401  first: says what is wrong where the rest would not load
from gossamer._built import VERSION
from gossamer._core import IoError, Method, Schedule, TransportError
from gossamer.core_functions import forecast, make_schedule, rank_methods, topology_names
from gossamer.ddp_metrics import DdpMetrics
from gossamer.gossip import Gossip
from gossamer.job import init
from gossamer.mixer import Mixer
from gossamer.optim import AccumAdam, AccumAdamW
from gossamer.own_schedules import schedule_from_matrices
from gossamer.probing import Probe, probe
from gossamer.shares.sampler import Shares
from gossamer.stopping import StopOnSignal
from gossamer.uneven_epochs import uneven
from gossamer.virtual_workers import VirtualWorkers

__version__ = VERSION

__all__ = [
    "AccumAdam",
    "AccumAdamW",
    "DdpMetrics",
    "Gossip",
    "IoError",
    "Method",
    "Mixer",
    "Probe",
    "Schedule",
    "Shares",
    "StopOnSignal",
    "TransportError",
    "VirtualWorkers",
    "__version__",
    "forecast",
    "init",
    "make_schedule",
    "probe",
    "rank_methods",
    "schedule_from_matrices",
    "topology_names",
    "uneven",
]
