"""Where a process group listens: Gloo on the address that the others reach, the store of rank 0 on
that of MASTER_ADDR."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

import torch.distributed as dist

from gossamer import _core
from gossamer.workers import machine
from gossamer.workers.start_watch import Start

_WAITING = 2048  # connections that the system keeps for the store


def gloo_address() -> str:
    """What Gloo listens on here: loopback where the job has this host alone, else what the other
    workers reach."""
    local, size = os.environ.get("LOCAL_WORLD_SIZE"), os.environ.get("WORLD_SIZE")
    if not os.environ.get("GLOO_SOCKET_IFNAME") and local is not None and local == size:
        return "127.0.0.1"
    return machine.address_for_peers()


@contextlib.contextmanager
def bound_store(start: Start | None) -> Iterator[None]:
    """Where rank 0 of this start has the store in its process: meanwhile one that listens on
    MASTER_ADDR alone, which torch then takes, as it shares one server per port. Without an address
    of this machine, or one that the others reach, torch's listens on all."""
    listener = None
    is_host = os.environ.get("TORCHELASTIC_USE_AGENT_STORE", "False") != "True"
    if start is not None and start.rank == 0 and is_host:
        listener = _listener(start)
    if start is None or listener is None:
        yield
        return
    server = dist.TCPStore(
        *start.store,
        is_master=True,
        wait_for_workers=False,
        multi_tenant=True,
        master_listen_fd=listener.detach(),
    )
    yield
    del server  # the process group has it now


def _listener(start: Start) -> socket.socket | None:
    is_alone = os.environ.get("LOCAL_WORLD_SIZE") == str(start.size)
    try:
        answers = socket.getaddrinfo(*start.store, type=socket.SOCK_STREAM)
    except OSError:
        return None
    places = {(family, place) for family, _, _, _, place in answers}
    family, place = next(iter(places))
    if len(places) > 1 or (_core.is_loopback(str(place[0])) and not is_alone):
        return None  # a name that means something else on other hosts
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(_WAITING)
    except OSError:  # torch says what is wrong, or listens on all
        listener.close()
        return None
    return listener


def of_those_that_begin(start: Start | None) -> dict[str, Any]:
    """What ``init_process_group`` is told where others join later: torch's own store would wait
    for them."""
    if start is None or start.begins == start.size:
        return {}
    store = dist.TCPStore(
        *start.store, is_master=start.rank == 0, wait_for_workers=False, multi_tenant=True
    )
    return {"store": store, "rank": start.rank, "world_size": start.size}
