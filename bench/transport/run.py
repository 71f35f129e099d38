"""Gossamer's net beside Gloo and UCX over one link: figures are defined in bench/METRICS.md.

Both processes of every contender stay alive, and contenders take turns in each round. A contender
that is not there is named and left out.
"""

import argparse
import contextlib
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from links import LINKS, Link

FOLDER = Path(__file__).resolve().parent
MEGA = 1 << 20
SIZES = {"8 B": 8, "1 MB": MEGA, "4 MB": 4 * MEGA, "16 MB": 16 * MEGA}
BYTES_A_TURN = 64 * MEGA
MOST_TIMES = 200
LIMIT_S = 120.0  # of one turn


@dataclass(frozen=True)
class Amount:
    """How much is measured."""

    sizes: dict[str, int]
    rounds: int
    most_times: int  # of a payload, in one turn


OWN = "net"  # so begin the names of Gossamer's
QUICK = Amount({"8 B": 8, "1 MB": MEGA}, 1, 4)
QUICK_WITH_GLOO = "loopback"


@dataclass
class Contender:
    name: str
    program: list[str]  # rank and folder follow
    then: list[list[str]] = field(default_factory=lambda: [[], []])
    environment: list[dict[str, str]] = field(default_factory=lambda: [{}, {}])


def contenders(
    link: Link, build: Path, ucx_folders: list[str], beside: Path | None
) -> list[Contender]:
    net = str(build / "bin" / "net_pair")
    modes = {"net": "streams", "net, authenticated": "authenticated", "net, TLS": "tls"}
    if link.shares_memory:
        modes = {"net, in place": "in_place", "net, landed": "landed", "net, staged": "staged"}
    made = [
        Contender(name, [net], [[mode, address] for address in link.addresses])
        for name, mode in modes.items()
    ]
    if beside:
        other = str(beside / "bin" / "net_pair")
        made += [
            Contender(f"{name}, beside", [other], [[mode, address] for address in link.addresses])
            for name, mode in modes.items()
            if mode != "authenticated"
        ]
    devices = [{"GLOO_SOCKET_IFNAME": device} for device in link.devices]
    made.append(
        Contender("Gloo", [sys.executable, str(FOLDER / "gloo_pair.py")], environment=devices)
    )
    for folder in ["", *ucx_folders]:
        made.append(ucx(link, str(build / "bin" / "ucx_pair"), folder))
    return made


def ucx(link: Link, program: str, folder: str) -> Contender:
    environments = []
    for device in link.devices:
        environment = {"LD_LIBRARY_PATH": folder} if folder else {}
        if not link.shares_memory:
            environment |= {"UCX_TLS": "tcp", "UCX_NET_DEVICES": device}
            if folder:  # the newer one, as it is fastest
                environment |= {"UCX_TCP_TX_SEG_SIZE": "256k", "UCX_TCP_RX_SEG_SIZE": "256k"}
        environments.append(environment)
    return Contender("UCX", [program], environment=environments)


def own_cores(rank: int) -> set[int]:
    """One half of the cores: the two processes never share one, as workers do not."""
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    return set(cores[:half] if rank == 0 else cores[half:]) or set(cores)


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None  # all of them are pipes
    return stream


class Pair:
    """The two processes of one contender."""

    def __init__(self, contender: Contender, link: Link, folder: Path) -> None:
        if not Path(contender.program[0]).is_file():
            raise FileNotFoundError(
                f"{contender.program[0]}: no such file; it is built where UCX is"
            )
        self.processes = []
        for rank in range(2):
            words = [*link.starts[rank], *contender.program, str(rank), str(folder)]
            cores = own_cores(rank)
            self.processes.append(
                subprocess.Popen(
                    [*words, *contender.then[rank]],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=os.environ | contender.environment[rank],
                    preexec_fn=functools.partial(os.sched_setaffinity, 0, cores),
                )
            )
        self.name = contender.name
        said = self.answers()
        if said[0].startswith("UCX"):
            self.name = said[0]

    def answers(self) -> list[str]:
        watchdog = threading.Timer(LIMIT_S, self.kill)
        watchdog.start()
        lines = [pipe(process.stdout).readline().strip() for process in self.processes]
        watchdog.cancel()
        if not all(lines):
            self.kill()
            raise RuntimeError(f"the processes of {self.name} ended, or took too long")
        return lines

    def order(self, way: str, size: int, times: int) -> tuple[float, float]:
        """The seconds of all the times, and the CPU seconds of both processes."""
        for process in self.processes:
            pipe(process.stdin).write(f"{way} {size} {times}\n")
            pipe(process.stdin).flush()
        said = [[float(word) for word in line.split()] for line in self.answers()]
        return max(seconds for seconds, _ in said), sum(cpu for _, cpu in said)

    def kill(self) -> None:
        for process in self.processes:
            process.kill()

    def end(self) -> None:
        for process in self.processes:
            pipe(process.stdin).close()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()


@contextlib.contextmanager
def pairs(link: Link, made: list[Contender]) -> Iterator[list[Pair]]:
    found: list[Pair] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for number, contender in enumerate(made):
                place = Path(folder) / str(number)
                place.mkdir()
                try:
                    found.append(Pair(contender, link, place))
                except (OSError, RuntimeError) as error:
                    if contender.name.startswith(OWN):
                        raise
                    print(f"without {contender.name}: {error}", file=sys.stderr)
            yield found
        finally:
            for pair in found:
                pair.end()


def measure(link: Link, found: list[Pair], amount: Amount) -> list[dict]:
    rows = []
    for label, size in amount.sizes.items():
        times = min(amount.most_times, BYTES_A_TURN // size)
        times = max(2, round(times * link.times))
        for pair in found:
            pair.order("check", size, 1)
        for way in ("exchange", "forward"):
            seconds: dict[str, list[float]] = {pair.name: [] for pair in found}
            cpu: dict[str, list[float]] = {pair.name: [] for pair in found}
            for turn in range(amount.rounds + 1):
                for pair in found if turn % 2 else reversed(found):
                    passed, used = pair.order(way, size, times)
                    if turn > 0:  # the first one makes room
                        seconds[pair.name].append(passed / times)
                        cpu[pair.name].append(used / times)
            payloads = 2 if way == "exchange" else 1
            for pair in found:
                middle = statistics.median(seconds[pair.name])
                used = statistics.median(cpu[pair.name])
                rows.append(
                    {
                        "link": link.name,
                        "contender": pair.name,
                        "way": way,
                        "size": label,
                        "ms": 1e3 * middle,
                        "gb_per_s": size / middle / 1e9,
                        "best_gb_per_s": size / min(seconds[pair.name]) / 1e9,
                        "cpu_s_per_gb": used / (payloads * size / 1e9),
                    }
                )
    return rows


def show(rows: list[dict]) -> None:
    sizes = dict.fromkeys(row["size"] for row in rows)
    for way in ("exchange", "forward"):
        print(f"\n{rows[0]['link']}, {way}: GB/s each direction (CPU s per GB)")
        print(f"{'':16}" + "".join(f"{size:>18}" for size in sizes))
        for name in dict.fromkeys(row["contender"] for row in rows):
            line = f"{name:16}"
            for row in rows:
                if (row["contender"], row["way"]) != (name, way):
                    continue
                figure = f"{row['gb_per_s']:.2f} ({row['cpu_s_per_gb']:.2f})"
                if row["size"] == "8 B":
                    figure = f"{1e3 * row['ms']:.0f} us"
                line += f"{figure:>18}"
            print(line, flush=True)


def chosen(name: str, link: Link, arguments: argparse.Namespace) -> list[Contender]:
    made = contenders(link, arguments.build, arguments.ucx, arguments.beside)
    prefix = arguments.only or (OWN if arguments.quick and name != QUICK_WITH_GLOO else "")
    return [each for each in made if each.name.startswith(prefix)]


def full(arguments: argparse.Namespace) -> Amount:
    return Amount(SIZES, arguments.rounds, MOST_TIMES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("links", nargs="*", help=f"of {', '.join(LINKS)}; default all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--build", type=Path, default=FOLDER.parents[1] / "build")
    parser.add_argument("--beside", type=Path, help="another build, to compare with")
    parser.add_argument("--ucx", action="append", default=[], help="folder of another libucp.so.0")
    parser.add_argument("--only", help="contenders whose name begins so")
    parser.add_argument("--quick", action="store_true", help="few payloads, Gloo on one link only")
    parser.add_argument("--json", type=Path, help="write the rows here as well")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.links or LINKS:
        try:
            with (
                LINKS[name]() as link,
                pairs(link, chosen(name, link, arguments)) as found,
            ):
                measured = measure(link, found, QUICK if arguments.quick else full(arguments))
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            print(f"without {name}: {error}", file=sys.stderr)
            continue
        show(measured)
        rows += measured
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
