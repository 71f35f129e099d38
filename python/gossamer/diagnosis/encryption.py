"""Whether the connections of training can be encrypted here."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from gossamer import _core
from gossamer.diagnosis import links

ABOUT = {
    "TLS": "possible between hosts, with tls=True or --tls",
    "without TLS": "authenticated by the token, not encrypted",
    "torch and Gloo": "neither; use a private network or WireGuard",
}
"""Connections, and what protects them. True of every build: all are linked to OpenSSL. SECURITY.md
says what of a message is authenticated, and what each way costs."""


def try_here(timeout_s: float) -> None:
    """Sends a word over TLS between two workers in this process. Raises what keeps it from that:
    IoError, ValueError or TransportError."""
    token = _core.random_digits()
    words = ["", ""]
    both_are_there = threading.Barrier(2, timeout=timeout_s)

    def share(rank: int, mine: str) -> list[str]:
        words[rank] = mine
        both_are_there.wait()
        return list(words)

    def connect(rank: int) -> _core.Transport:
        try:
            return _core.net_transport(
                *(rank, 2),
                token=token,
                share=partial(share, rank),
                address="127.0.0.1",
                share_memory=False,
                tls=True,
            )
        except (_core.TransportError, _core.IoError, ValueError):
            both_are_there.abort()  # the other is let go, with another error
            raise

    with ThreadPoolExecutor(2) as pool:
        tries = [pool.submit(connect, rank) for rank in range(2)]
        errors = [error for error in (each.exception() for each in tries) if error is not None]
        errors.sort(key=lambda error: isinstance(error, threading.BrokenBarrierError))
        if errors:
            raise errors[0]
        transports = [each.result() for each in tries]
        try:
            ends = [links.End(transports[rank], 1 - rank, timeout_s) for rank in range(2)]
            serving = pool.submit(links.serve, ends[1])
            ends[0].say(links.END)
            serving.result()
        finally:
            list(pool.map(_core.Transport.stop, transports))
