"""Process groups for the edges of a transport: Gloo, two workers each.

A group of its own for each edge keeps a dead or frozen peer from costing more than its own edge.
Gloo opens one listening socket for each group, on the one address it is bound to.
"""

import os
import time
from collections.abc import Iterable
from datetime import timedelta

from torch.distributed import PrefixStore, ProcessGroupGloo, Store

from gossamer._core import TransportError
from gossamer.workers.board import wait_s
from gossamer.workers.wording import first_line


def _device(address: str | None) -> object:
    if address is None:
        interface = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
        if interface:  # which torch reads for the groups that it makes itself only
            return ProcessGroupGloo.create_device(interface=interface)
        return ProcessGroupGloo.create_default_device()
    return ProcessGroupGloo.create_device(hostname=address)


def _connect(rank: int, peer: int, store: Store, address: str | None, wait_s: float) -> object:
    options = ProcessGroupGloo._Options()
    options._devices = [_device(address)]
    options._threads = 1  # for collectives, which nobody runs here
    options._timeout = timedelta(seconds=wait_s)
    low, high = sorted((rank, peer))
    end = 0 if rank == low else 1
    return ProcessGroupGloo(PrefixStore(f"{low}-{high}", store), end, 2, options)


def of_all(store: Store, rank: int, size: int, address: str, timeout: timedelta) -> object:
    """The group of a whole job, as torch makes it, but listening on this address. Where the user
    names interfaces, or there is no address, the choice is torch's."""
    if os.environ.get("GLOO_SOCKET_IFNAME") or not address:
        return ProcessGroupGloo(store, rank, size, timeout)
    options = ProcessGroupGloo._Options()
    options._devices = [_device(address)]
    options._threads = 2  # as torch's for one device
    options._timeout = timeout
    return ProcessGroupGloo(store, rank, size, options)


def _missing(rank: int, peer: int, elapsed_s: float, reason: str) -> TransportError:
    error = TransportError(
        f"[transport] worker {rank}: connect with worker {peer} failed after {elapsed_s:.3f} s: "
        f"{reason}"
    )
    error.rank, error.peer, error.operation = rank, peer, "connect"
    error.elapsed_s, error.reason = elapsed_s, reason
    return error


def connect(
    rank: int,
    peers: Iterable[int],
    store: Store,
    *,
    address: str | None = None,
    timeout_s: float = 60.0,
) -> dict[int, object]:
    """{peer: process group} for `gossamer._core.c10d_transport`; blocks until all are connected.

    Every worker calls it with its peers, and each peer must name this worker too. The store must
    not have been used for it before: wrap it in a PrefixStore. `address` is what Gloo listens on
    and what the peers connect to; by default torch's choice (GLOO_SOCKET_IFNAME, or the address of
    the host's name). Raises TransportError for a peer that does not come within the timeout.
    """
    groups = {}
    start = time.monotonic()
    # All workers make their edges in the same order, so that the lowest one that is still missing
    # has both its ends waiting for each other.
    for peer in sorted(set(peers), key=lambda other: sorted((rank, other))):
        left_s = wait_s(timeout_s - (time.monotonic() - start))
        try:
            groups[peer] = _connect(rank, peer, store, address, left_s)
        except RuntimeError as error:
            reason = first_line(error)
            raise _missing(rank, peer, time.monotonic() - start, reason) from error
    return groups
