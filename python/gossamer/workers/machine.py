"""What this machine and this process have: interfaces, sockets, cores, memory. Linux only."""

from __future__ import annotations

import array
import contextlib
import fcntl
import ipaddress
import os
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SIOCGIFCONF = 0x8912
_SIOCGIFFLAGS = 0x8913
_IFREQ_BYTES = 40  # of struct ifreq where pointers have 64 bits
_MOST_ADDRESSES = 1024
_IFF_UP, _IFF_LOOPBACK = 0x1, 0x8
_LISTENING = "0A"
# What Docker, Podman, libvirt and Kubernetes call the interfaces that lead to no other machine.
_BRIDGES = ("docker", "br-", "podman", "virbr", "veth", "cni")


@dataclass(frozen=True)
class Interface:
    """A network interface of this process's network namespace."""

    name: str
    addresses: tuple[str, ...]
    is_up: bool
    is_loopback: bool

    @property
    def leads_nowhere(self) -> bool:
        """Whether other machines most likely cannot be reached through it."""
        return self.is_loopback or self.name.startswith(_BRIDGES)


@dataclass(frozen=True)
class GlooChoice:
    """The address that Gloo listens on and the interface that has it; empty where there is none."""

    interface: str
    address: str
    why: str


@dataclass(frozen=True)
class Listener:
    """A TCP socket that waits for connections."""

    address: str
    port: int

    @property
    def is_everywhere(self) -> bool:
        """Whether it listens on every interface."""
        return ipaddress.ip_address(self.address).is_unspecified

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"


def _ipv4_addresses(probe: socket.socket) -> list[tuple[str, str]]:
    """(interface, address)."""
    buffer = array.array("B", bytes(_IFREQ_BYTES * _MOST_ADDRESSES))
    place, length = buffer.buffer_info()
    answer = fcntl.ioctl(probe.fileno(), _SIOCGIFCONF, struct.pack("iP", length, place))
    used = struct.unpack("iP", answer)[0]
    rows = [buffer[at : at + _IFREQ_BYTES].tobytes() for at in range(0, used, _IFREQ_BYTES)]
    return [(row[:16].rstrip(b"\0").decode(), socket.inet_ntoa(row[20:24])) for row in rows]


def _ipv6_addresses() -> list[tuple[str, str]]:
    """(interface, address)."""
    table = Path("/proc/self/net/if_inet6")
    rows = [line.split() for line in table.read_text().splitlines()] if table.exists() else []
    return [(row[5], str(ipaddress.IPv6Address(bytes.fromhex(row[0])))) for row in rows]


def interfaces() -> list[Interface]:
    """All of this network namespace, in the kernel's order."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        addresses = _ipv4_addresses(probe) + _ipv6_addresses()
        for _, name in socket.if_nameindex():
            request = struct.pack("16sH22x", name.encode(), 0)
            answer = fcntl.ioctl(probe.fileno(), _SIOCGIFFLAGS, request)
            flags = struct.unpack("16sH22x", answer)[1]
            # An address may belong to a label of the interface, as in eth0:1.
            own = tuple(address for owner, address in addresses if owner.split(":")[0] == name)
            found.append(Interface(name, own, bool(flags & _IFF_UP), bool(flags & _IFF_LOOPBACK)))
    return found


def host_name() -> str:
    """As it may be told to others: always text."""
    return socket.gethostname().encode(errors="replace").decode()


def _can_bind(family: int, address: tuple[Any, ...]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(address)
    except OSError:
        return False
    return True


def _usable_address(host: str) -> str:
    """The first address of the name that is this machine's; empty where there is none."""
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return ""
    usable = (str(place[0]) for family, _, _, _, place in answers if _can_bind(family, place))
    return next(usable, "")


def gloo_choice(found: list[Interface]) -> GlooChoice:
    """What torch makes Gloo listen on: GLOO_SOCKET_IFNAME, the host's name, else loopback."""
    wish = os.environ.get("GLOO_SOCKET_IFNAME", "")
    if wish:
        name = wish.split(",")[0]
        named = [interface for interface in found if interface.name == name]
        address = next((a for interface in named for a in interface.addresses), "")
        return GlooChoice(name, address, f"GLOO_SOCKET_IFNAME is {wish}")
    host = socket.gethostname()
    # All of 127.0.0.0/8 is the loopback interface's, which lists one address of it.
    inner = next((interface for interface in found if interface.is_loopback), None)
    address = _usable_address(host)
    if address:
        owner = next((each for each in found if address in each.addresses), inner)
        return GlooChoice(owner.name if owner else "", address, f"{host} resolves to it")
    address = next(iter(inner.addresses if inner else ()), "")
    return GlooChoice(
        inner.name if inner else "", address, f"{host} resolves to no address of this host"
    )


def address_for_peers() -> str:
    """The address of this host that other workers reach: of the interface that Gloo is told to
    take, else of the one that leads to the launcher's store, else what Gloo takes."""
    store = os.environ.get("MASTER_ADDR", "")
    if store and not os.environ.get("GLOO_SOCKET_IFNAME"):
        with contextlib.suppress(OSError):
            family, kind, _, _, place = socket.getaddrinfo(store, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind) as probe:
                probe.connect(place)  # sends nothing
                return str(probe.getsockname()[0])
    return gloo_choice(interfaces()).address


def _address(hexadecimal: str) -> str:
    """An address as /proc/net/tcp writes it: words of four bytes in the machine's order."""
    raw = bytes.fromhex(hexadecimal)
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    return str(ipaddress.ip_address(raw))


def _listeners() -> list[tuple[Listener, str]]:
    """All of this network namespace, with their inodes."""
    found = []
    for table in (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6")):
        lines = table.read_text().splitlines()[1:] if table.exists() else []
        for fields in map(str.split, lines):
            if fields[3] == _LISTENING:
                address, port = fields[1].split(":")
                found.append((Listener(_address(address), int(port, 16)), fields[9]))
    return found


def _own_sockets() -> set[str]:
    """The inodes of this process's sockets."""
    inodes = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except OSError:  # closed meanwhile
            continue
        if target.startswith("socket:["):
            inodes.add(target[len("socket:[") : -1])
    return inodes


def own_listeners() -> list[Listener]:
    """What this process listens on."""
    own = _own_sockets()
    return [listener for listener, inode in _listeners() if inode in own]


def listeners_on(port: int) -> list[Listener]:
    """What any process of this network namespace listens on with this port."""
    return [listener for listener, _ in _listeners() if listener.port == port]


def cores() -> float:
    """That this process may use: allowed ones, or what a container's quota leaves of them."""
    allowed = float(len(os.sched_getaffinity(0)))
    quota = Path("/sys/fs/cgroup/cpu.max")
    if quota.exists():
        limit, period = quota.read_text().split()
        if limit != "max":
            return min(allowed, int(limit) / int(period))
    return allowed


def shared_memory() -> tuple[int, int]:
    """(bytes, free bytes) of /dev/shm; zeros where it is missing."""
    if not Path("/dev/shm").is_dir():
        return 0, 0
    size = os.statvfs("/dev/shm")
    return size.f_frsize * size.f_blocks, size.f_frsize * size.f_bavail


def age_s() -> float:
    """Seconds since this process was started."""
    start_ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    return max(uptime_s - start_ticks / os.sysconf("SC_CLK_TCK"), 0.0)
