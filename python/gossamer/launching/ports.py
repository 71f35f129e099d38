"""Ports of this machine."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL_FIRST = 32768
_LEAST = 10000


def free_port() -> int:
    """One of loopback that nobody listens on now. It is outside of the range from which the system
    gives ports to whoever asks for any: rank 0 listens on it only after its imports, and on a busy
    machine that is a minute later."""
    first = int(_EPHEMERAL.read_text().split()[0]) if _EPHEMERAL.exists() else _USUAL_FIRST
    for _ in range(100):
        port = random.SystemRandom().randrange(_LEAST, first) if first > _LEAST else 0
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(listener.getsockname()[1])
    raise OSError(f"no free port of loopback from {_LEAST} to {first}")
