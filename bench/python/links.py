"""One link, two processes of this host: Gossamer's transports beside raw Gloo.

Each payload is sent one way and answered by a word when it is there, contenders in turns; every
byte is checked once per size. Figures are in bench/METRICS.md.
"""

import argparse
import json
import os
import resource
import socket
import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BUILT = os.environ.get("GOSSAMER_PYTHON_PATH", str(FOLDER.parents[1] / "build" / "python"))
sys.path.insert(0, BUILT)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from gossamer import _core  # noqa: E402
from gossamer.workers import gloo_edges  # noqa: E402

LOOPBACK = "127.0.0.1"
SIZES = {"8 B": 8, "64 KB": 1 << 16, "1 MB": 1 << 20, "4 MB": 4 << 20, "16 MB": 16 << 20}
QUICK_SIZES = {"8 B": 8, "64 KB": 1 << 16}
Move = Callable[[torch.Tensor, int], None]
Link = tuple[Move, Move]


def over(transport: _core.Transport, peer: int) -> Link:
    def send(tensor: torch.Tensor, number: int) -> None:
        tag = _core.Tag(number)
        transport.wait(transport.send(peer, tensor, tag, timeout_s=60))

    def receive(tensor: torch.Tensor, number: int) -> None:
        tag = _core.Tag(number)
        transport.wait(transport.receive(peer, tensor, tag, timeout_s=60))

    return send, receive


def net(rank: int, store: dist.Store, *, share_memory: bool) -> Link:
    place = f"net/{share_memory}"

    def share(mine: str) -> list[str]:
        store.set(f"{place}/{rank}", mine)
        return [store.get(f"{place}/{peer}").decode() for peer in range(2)]

    transport = _core.net_transport(
        rank, 2, token="bench", share=share, address=LOOPBACK, share_memory=share_memory
    )
    return over(transport, 1 - rank)


def links(rank: int, store: dist.Store) -> dict[str, Link]:
    groups = gloo_edges.connect(rank, [1 - rank], store, address=LOOPBACK)
    peer = 1 - rank
    return {
        "net, shared memory": net(rank, store, share_memory=True),
        "net, TCP": net(rank, store, share_memory=False),
        "c10d": over(_core.c10d_transport(rank, 2, groups), peer),
        "raw Gloo": (
            lambda tensor, number: dist.send(tensor, peer, tag=number % 1000),
            lambda tensor, number: dist.recv(tensor, peer, tag=number % 1000) and None,
        ),
    }


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run(link: Link, rank: int, payload: torch.Tensor, first: int, times: int) -> list[float]:
    send, receive = link
    word = torch.zeros(1)
    seconds = []
    for number in range(first, first + 2 * times, 2):
        start = time.perf_counter()
        if rank == 0:
            send(payload, number)
            receive(word, number + 1)
        else:
            receive(payload, number)
            send(word, number + 1)
        seconds.append(time.perf_counter() - start)
    return seconds


def work(rank: int, port: int, rounds: int, sizes: dict[str, int]) -> list[dict]:
    torch.set_num_threads(1)
    limit = timedelta(seconds=60)
    store = dist.TCPStore(LOOPBACK, port, is_master=False, timeout=limit)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    made = links(rank, store)
    rows = []
    first = 0
    for label, size in sizes.items():
        sent = torch.arange(size, dtype=torch.int64).to(torch.uint8)
        payload = sent.clone() if rank == 0 else torch.zeros_like(sent)
        times = max(4, min(50, (64 << 20) // size))
        found: dict[str, list[float]] = {name: [] for name in made}
        cpu = dict.fromkeys(made, 0.0)
        for turn in range(rounds + 1):
            for name, link in made.items():
                dist.barrier()
                begin = cpu_s()
                seconds = run(link, rank, payload, first, times)
                first += 2 * times
                assert torch.equal(payload, sent), f"{name} delivered other bytes"
                if rank == 1:
                    payload.zero_()
                if turn > 0:  # the first one makes room
                    found[name].append(statistics.median(seconds))
                    cpu[name] += cpu_s() - begin
        for name in made:
            rows.append(
                {
                    "link": name,
                    "size": label,
                    "ms": 1e3 * statistics.median(found[name]),
                    "gb_per_s": size / statistics.median(found[name]) / 1e9,
                    "cpu_s_per_gb": cpu[name] / (times * rounds * size / 1e9),
                }
            )
    dist.barrier()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round of the smaller sizes")
    parser.add_argument("--json", type=Path, help="write the rows here as well")
    arguments = parser.parse_args()
    rounds = 1 if arguments.quick else arguments.rounds
    sizes = QUICK_SIZES if arguments.quick else SIZES
    listener = socket.create_server((LOOPBACK, 0))
    port = listener.getsockname()[1]
    child = os.fork()
    if child == 0:
        listener.close()
        rows = work(1, port, rounds, sizes)
        os._exit(0 if rows else 1)
    store = dist.TCPStore(
        LOOPBACK, port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach()
    )
    rows = work(0, port, rounds, sizes)
    os.waitpid(child, 0)
    for row in rows:
        line = f"{row['link']:20} {row['size']:>6} {row['ms']:9.3f} ms"
        if row["size"] != "8 B":
            line += f"  {row['gb_per_s']:7.3f} GB/s"
            line += f"  {row['cpu_s_per_gb']:6.2f} s of the sender's CPU per GB"
        print(line)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))
    del store
    sys.stdout.flush()
    os._exit(0)  # Gloo's threads may not end with the interpreter


if __name__ == "__main__":
    main()
