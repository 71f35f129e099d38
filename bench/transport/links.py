"""The links between two processes that run.py compares contenders over."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

SPACES = ("gslink0", "gslink1")
DEVICES = ("gslinkv0", "gslinkv1")
ADDRESSES = ("10.213.0.1", "10.213.0.2")
RATE = "1gbit"


@dataclass(frozen=True)
class Link:
    """Where the two processes run: what starts them there, and what they are reached by."""

    name: str
    addresses: tuple[str, str] = ("127.0.0.1", "127.0.0.1")
    devices: tuple[str, str] = ("lo", "lo")
    starts: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    shares_memory: bool = False
    times: float = 1.0  # how often a payload goes, relative to the usual


def tool(name: str) -> str:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or name


def run(line: str, check: bool = True) -> None:
    words = line.split()
    subprocess.run([tool(words[0]), *words[1:]], check=check, stderr=subprocess.DEVNULL)


def remove_spaces() -> None:
    for space in SPACES:
        run(f"ip netns del {space}", check=False)


@contextlib.contextmanager
def spaces(rate: str = "") -> Iterator[Link]:
    """Two network namespaces with a link of this rate, or as fast as it gets, between them."""
    remove_spaces()
    try:
        for space in SPACES:
            run(f"ip netns add {space}")
        first, second = zip(DEVICES, SPACES, strict=True)
        run(f"ip link add {first[0]} netns {first[1]} type veth peer {second[0]} netns {second[1]}")
        for space, device, address in zip(SPACES, DEVICES, ADDRESSES, strict=True):
            run(f"ip -n {space} addr add {address}/30 dev {device}")
            for each in ("lo", device):
                run(f"ip -n {space} link set {each} up")
            if rate:
                shape = f"root tbf rate {rate} burst 256kb latency 50ms"
                run(f"tc -n {space} qdisc add dev {device} {shape}")
        starts = tuple((tool("ip"), "netns", "exec", space) for space in SPACES)
        yield Link(
            name=f"link of {rate.replace('gbit', ' Gbit/s')}" if rate else "link, unshaped",
            addresses=ADDRESSES,
            devices=DEVICES,
            starts=(starts[0], starts[1]),
            times=0.1 if rate else 1.0,
        )
    finally:
        remove_spaces()


@contextlib.contextmanager
def inside() -> Iterator[Link]:
    yield Link(name="inside a host", shares_memory=True)


@contextlib.contextmanager
def loopback() -> Iterator[Link]:
    yield Link(name="loopback TCP")


LINKS = {"host": inside, "loopback": loopback, "shaped": lambda: spaces(RATE), "unshaped": spaces}
