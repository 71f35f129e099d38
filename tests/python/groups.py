"""Process groups between workers that are threads of this process."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from torch.distributed import HashStore, PrefixStore, ProcessGroupGloo

from gossamer.workers import gloo_edges

LOOPBACK = "127.0.0.1"


def pairs(workers: int) -> list[dict[int, object]]:
    """One group for each pair."""
    store = HashStore()

    def connect(rank: int) -> dict[int, object]:
        peers = [peer for peer in range(workers) if peer != rank]
        return gloo_edges.connect(rank, peers, store, address=LOOPBACK)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(connect, range(workers)))


def shared(workers: int) -> list[dict[int, object]]:
    """One group for all."""
    store = HashStore()

    def connect(rank: int) -> dict[int, object]:
        options = ProcessGroupGloo._Options()
        options._devices = [ProcessGroupGloo.create_device(hostname=LOOPBACK)]
        options._threads = 1
        group = ProcessGroupGloo(PrefixStore("all", store), rank, workers, options)
        return {peer: group for peer in range(workers) if peer != rank}

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(connect, range(workers)))


KINDS = {"pairs": pairs, "shared": shared}


def make(kind: str, workers: int) -> list[dict[int, object]]:
    return KINDS[kind](workers)


def threads_of_this_process() -> int:
    return len(list(Path("/proc/self/task").iterdir()))
