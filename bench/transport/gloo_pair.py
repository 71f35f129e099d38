"""One end of a pair over torch's Gloo, isend and irecv; obeys as pair.h says.

gloo_pair.py <rank> <folder>; GLOO_SOCKET_IFNAME says over which interface.
"""

import resource
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

MOST_BYTES = 64 << 20


def pattern(rank: int) -> torch.Tensor:
    places = torch.arange(MOST_BYTES, dtype=torch.int64)
    return ((places * 2654435761 + rank) >> 9).to(torch.uint8)


class Link:
    def __init__(self, rank: int, folder: str) -> None:
        self.rank = rank
        store = dist.FileStore(f"{folder}/store", 2)
        limit = timedelta(seconds=60)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=limit)
        self.outgoing = pattern(rank)
        self.expected = pattern(1 - rank)
        self.landing = torch.zeros_like(self.outgoing)

    def transfer(self, size: int, sends: bool = True, receives: bool = True) -> None:
        peer = 1 - self.rank
        received = dist.irecv(self.landing[:size], peer) if receives else None
        sent = dist.isend(self.outgoing[:size], peer) if sends else None
        for work in (received, sent):
            if work is not None:
                work.wait()

    def once(self, way: str, size: int) -> None:
        if way != "forward":
            self.transfer(size)
            return
        is_source = self.rank == 0
        self.transfer(size, is_source, not is_source)
        self.transfer(8, not is_source, is_source)


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    torch.set_num_threads(1)
    rank = int(sys.argv[1])
    link = Link(rank, sys.argv[2])
    print("Gloo of torch", torch.__version__, flush=True)
    for line in sys.stdin:
        way, size, times = line.split()[0], *map(int, line.split()[1:])
        link.transfer(8)
        start, cpu_start = time.perf_counter(), cpu_s()
        for _ in range(times):
            link.once(way, size)
        print(time.perf_counter() - start, cpu_s() - cpu_start, flush=True)
        if way == "check" and not torch.equal(link.landing[:size], link.expected[:size]):
            sys.exit("the bytes are wrong")


if __name__ == "__main__":
    main()
