#!/usr/bin/env python3
"""An emulated cluster on one machine: hosts are network namespaces on a bridge, links are shaped.

    tools/cluster.py up demo --hosts 4x2 --rate 20Mbit/s
    tools/cluster.py run demo -- .venv/bin/python train.py
    tools/cluster.py down demo

Needs Linux, iproute2 and root. `run` starts one process per worker with the variables of torchrun.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

PREFIX = "gossamer-"
STATE = Path("/run/gossamer-cluster")
LONGEST_NAME = 12
MOST_HOSTS = 250  # addresses of a network
LINK = "eth0"  # what a host calls its end
KILL_AFTER_S = 10.0
# What a shaped link may send at once, and what may wait for it.
BURST_S = 0.002
LEAST_BURST_BYTES = 8192
QUEUE = "50ms"
# The same on every machine, whatever its own default is: every kernel has it and lets a namespace
# choose it. On short links Linux' usual default, cubic, does as this one does.
CONGESTION_CONTROL = "reno"
LEAST_RATE = 1e3
SCALES = {"K": 1e3, "M": 1e6, "G": 1e9}
RATE = re.compile(r"(\d+(?:\.\d+)?)([KMG])bit/s")


class ClusterError(Exception):
    """What is wrong, in a sentence for the user."""


@dataclass(frozen=True)
class Cluster:
    """Hosts with their numbers of workers, and the rate of each one's link in bits per second;
    0: not shaped."""

    name: str
    workers: tuple[int, ...]
    rates: tuple[float, ...]

    @property
    def size(self) -> int:
        return sum(self.workers)

    def host(self, number: int) -> str:
        return f"{PREFIX}{self.name}-{number}"

    @property
    def hub(self) -> str:
        return f"{PREFIX}{self.name}-hub"

    def address(self, number: int) -> str:
        return f"10.77.0.{number + 1}"


def parse_hosts(text: str) -> tuple[int, ...]:
    """`4x2` is four hosts of two workers, `1,2,4` three hosts of different sizes."""
    try:
        if "x" in text:
            hosts, workers = map(int, text.split("x"))
            counts = (workers,) * hosts
        else:
            counts = tuple(map(int, text.split(",")))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1 or len(counts) > MOST_HOSTS:
        raise ClusterError(
            f"hosts must be HOSTSxWORKERS or a list like 1,2,4, {MOST_HOSTS} at most, got '{text}'"
        )
    return counts


def parse_rates(text: str, hosts: int) -> tuple[float, ...]:
    """One rate for all hosts or one each, in bits per second; `none` leaves a link alone."""
    rates = []
    for word in text.split(","):
        match = RATE.fullmatch(word)
        rate = float(match[1]) * SCALES[match[2]] if match else 0.0
        if word != "none" and rate < LEAST_RATE:
            raise ClusterError(f"a rate must be like 20Mbit/s or none, got '{word}'")
        rates.append(rate)
    if len(rates) == 1:
        rates *= hosts
    if len(rates) != hosts:
        raise ClusterError(f"{len(rates)} rates for {hosts} hosts; give one, or one for each")
    return tuple(rates)


def missing_rights() -> str:
    """Why this machine cannot have a cluster; empty if it can."""
    if not shutil.which("ip", path=_path()) or not shutil.which("tc", path=_path()):
        return "ip and tc are not installed; install iproute2"
    if os.geteuid() != 0:
        return "network namespaces need root; run as root, or in a container with CAP_SYS_ADMIN"
    probe = PREFIX + f"probe-{os.getpid()}"
    made = _try("ip", "netns", "add", probe)
    if made:
        return f"this machine does not let us make network namespaces ({made})"
    _try("ip", "netns", "delete", probe)
    return ""


def up(cluster: Cluster) -> None:
    """Makes hosts and links. Raises ClusterError, leaving nothing behind."""
    if not re.fullmatch(rf"[a-z0-9]{{1,{LONGEST_NAME}}}", cluster.name):
        raise ClusterError(
            f"a name has up to {LONGEST_NAME} small letters and digits, got '{cluster.name}'"
        )
    if reason := missing_rights():
        raise ClusterError(reason)
    if cluster.hub in _namespaces():
        raise ClusterError(f"'{cluster.name}' is up; take it down first, or choose another name")
    try:
        _make_namespace(cluster.hub)
        _ip(cluster.hub, "link", "add", "bridge", "type", "bridge")
        _ip(cluster.hub, "link", "set", "bridge", "up")
        for number in range(len(cluster.workers)):
            _connect(cluster, number)
        STATE.mkdir(exist_ok=True)
        (STATE / f"{cluster.name}.json").write_text(json.dumps(asdict(cluster)))
    except BaseException:
        down(cluster.name)
        raise


def load(name: str) -> Cluster:
    try:
        found = json.loads((STATE / f"{name}.json").read_text())
    except OSError:
        there = sorted(path.stem for path in STATE.glob("*.json"))
        raise ClusterError(
            f"no cluster '{name}' is up; up are: {', '.join(there) or 'none'}"
        ) from None
    return Cluster(found["name"], tuple(found["workers"]), tuple(found["rates"]))


def down(name: str) -> None:
    """Removes a cluster's namespaces, and with them its links. Processes in them go on without."""
    for namespace in _namespaces():
        if re.fullmatch(rf"{PREFIX}{re.escape(name)}-(hub|\d+)", namespace):
            _try("ip", "netns", "delete", namespace)
    (STATE / f"{name}.json").unlink(missing_ok=True)


@contextlib.contextmanager
def running(cluster: Cluster) -> Iterator[Cluster]:
    up(cluster)
    try:
        yield cluster
    finally:
        down(cluster.name)


def set_link(cluster: Cluster, number: int, *, is_up: bool) -> None:
    """Plugs a host's link in or out: unplugged, everything sent is lost and nobody is told."""
    _ip(cluster.hub, "link", "set", f"to{number}", "up" if is_up else "down")


def bytes_sent(cluster: Cluster) -> list[int]:
    """What each host has put on its link so far, headers included, by host."""
    found = []
    for number in range(len(cluster.workers)):
        text = _run("ip", "-n", cluster.host(number), "-j", "-s", "link", "show", LINK)
        found.append(int(json.loads(text)[0]["stats64"]["tx"]["bytes"]))
    return found


def environment(cluster: Cluster, rank: int, port: int) -> dict[str, str]:
    """torchrun's variables for one worker."""
    host, first = 0, 0
    while rank >= first + cluster.workers[host]:
        first += cluster.workers[host]
        host += 1
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(cluster.size),
        "LOCAL_RANK": str(rank - first),
        "LOCAL_WORLD_SIZE": str(cluster.workers[host]),
        "GROUP_RANK": str(host),
        "MASTER_ADDR": cluster.address(0),
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": LINK,
    }


def start(
    cluster: Cluster,
    command: Sequence[str],
    *,
    port: int = 29400,
    extra: Mapping[str, str] | None = None,
    output: IO[str] | None = None,
) -> list[subprocess.Popen]:
    """One process per worker, by rank, each in its host and leading a process group of its own.
    They print to `output`, or where this process does."""
    processes: list[subprocess.Popen] = []
    try:
        for rank in range(cluster.size):
            variables = environment(cluster, rank, port)
            place = ["ip", "netns", "exec", cluster.host(int(variables["GROUP_RANK"]))]
            processes.append(
                subprocess.Popen(
                    [*place, *command],
                    env={**os.environ, "PATH": _path(), **(extra or {}), **variables},
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            )
    except BaseException:
        end(processes)
        raise
    return processes


def finish(processes: Sequence[subprocess.Popen], timeout_s: float | None = None) -> list[int]:
    """Waits for all. Once one has failed, or time is up, the others have ten seconds."""
    limit = None if timeout_s is None else time.monotonic() + timeout_s
    try:
        while any(process.poll() is None for process in processes):
            failed = any(process.poll() for process in processes)
            if failed or (limit is not None and time.monotonic() > limit):
                break
            time.sleep(0.05)
        patience = time.monotonic() + KILL_AFTER_S
        while any(p.poll() is None for p in processes) and time.monotonic() < patience:
            time.sleep(0.05)
    finally:
        end(processes)
    return [process.wait() for process in processes]


def end(processes: Sequence[subprocess.Popen]) -> None:
    """Kills those that still run, with what they have started."""
    for process in processes:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def worst(codes: Sequence[int]) -> int:
    """The largest exit code; a signal's number only where none left with a code of its own, for
    those that one failed are killed."""
    return max(codes) if max(codes) > 0 else max(map(abs, codes))


def exit_on_sigterm() -> None:
    """From now on SIGTERM leaves through all blocks, so that workers and namespaces go, too."""

    def leave(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)


def _connect(cluster: Cluster, number: int) -> None:
    host, port = cluster.host(number), f"to{number}"
    _make_namespace(host)
    made = ("type", "veth", "peer", "name", LINK, "netns", host)
    _ip(cluster.hub, "link", "add", port, *made)
    _ip(cluster.hub, "link", "set", port, "master", "bridge", "up")
    _ip(host, "address", "add", cluster.address(number) + "/24", "dev", LINK)
    _ip(host, "link", "set", LINK, "up")
    rate = cluster.rates[number]
    if rate == 0:
        return
    burst = max(LEAST_BURST_BYTES, int(rate / 8 * BURST_S))
    shape = ("root", "tbf", "rate", f"{int(rate)}bit", "burst", str(burst), "latency", QUEUE)
    _run("tc", "-n", host, "qdisc", "add", "dev", LINK, *shape)
    _run("tc", "-n", cluster.hub, "qdisc", "add", "dev", port, *shape)


def _make_namespace(name: str) -> None:
    _run("ip", "netns", "add", name)
    _ip(name, "link", "set", "lo", "up")
    choose = f"net.ipv4.tcp_congestion_control={CONGESTION_CONTROL}"
    _run("ip", "netns", "exec", name, "sysctl", "-q", "-w", choose)


def _namespaces() -> list[str]:
    return [line.split()[0] for line in _run("ip", "netns", "list").splitlines() if line]


def _ip(namespace: str, *words: str) -> None:
    _run("ip", "-n", namespace, *words)


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def _call(*command: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PATH": _path()}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=variables)


def _try(*command: str) -> str:
    """What the command complains about; empty if it succeeded."""
    done = _call(*command)
    if done.returncode == 0:
        return ""
    return done.stderr.strip() or f"exit status {done.returncode}"


def _run(*command: str) -> str:
    done = _call(*command)
    if done.returncode != 0:
        raise ClusterError(f"'{' '.join(command)}' failed: {done.stderr.strip()}")
    return done.stdout


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    making = actions.add_parser("up", help="make hosts and links")
    making.add_argument("name")
    making.add_argument("--hosts", default="4x2", help="HOSTSxWORKERS, or workers like 1,2,4")
    making.add_argument("--rate", default="none", help="20Mbit/s, or one per host, or none")
    removing = actions.add_parser("down", help="remove them")
    removing.add_argument("name")
    running_ = actions.add_parser("run", help="one process per worker; its status is the worst")
    running_.add_argument("name")
    running_.add_argument("--port", type=int, default=29400, help="of the launcher's store")
    running_.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def main() -> int:
    arguments = _parser().parse_args()
    exit_on_sigterm()
    try:
        if arguments.action == "up":
            workers = parse_hosts(arguments.hosts)
            rates = parse_rates(arguments.rate, len(workers))
            cluster = Cluster(arguments.name, workers, rates)
            up(cluster)
            print(f"{len(workers)} hosts, {cluster.size} workers; next: run {cluster.name} -- ...")
        elif arguments.action == "down":
            load(arguments.name)
            down(arguments.name)
        else:
            command = [word for word in arguments.command if word != "--"]
            if not command:
                raise ClusterError("run needs a command, after --")
            cluster = load(arguments.name)
            codes = finish(start(cluster, command, port=arguments.port))
            return worst(codes)
    except ClusterError as error:
        print(f"[cluster] {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
