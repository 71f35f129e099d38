"""One worker of a test, as a process of its own; prints a JSON object as its last word.

usage: workers.py SCENARIO RANK WORKERS STORE TRANSPORT [ADDRESS]

STORE is its port on loopback or its file; ADDRESS is where streams are listened for. Over a
transport "relayed" the store says under another name where the others are; so over "relayed tls".
"""

import contextlib
import itertools
import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import conftest  # noqa: F401  the package's place, before the package
import torch
from torch.distributed import FileStore, PrefixStore, Store, TCPStore

from gossamer import _core
from gossamer.workers import gloo_edges

LOOPBACK = "127.0.0.1"
PATIENCE_S = 60.0
SILENCE_S = 5.0
Tag = _core.Tag


class Worker:
    def __init__(
        self, rank: int, workers: int, store: Store, transport: str, address: str = LOOPBACK
    ) -> None:
        self.rank, self.workers, self.store, self.address = rank, workers, store, address
        self.peers = [peer for peer in range(workers) if peer != rank]
        self.transport = self.c10d() if transport == "c10d" else self.net(transport)

    def c10d(self) -> _core.Transport:
        edges = PrefixStore("edges", self.store)
        groups = gloo_edges.connect(self.rank, self.peers, edges, address=LOOPBACK)
        return _core.c10d_transport(self.rank, self.workers, groups)

    def net(self, kind: str) -> _core.Transport:
        share_memory = kind == "net"

        def share(mine: str) -> list[str]:
            told = "relay" if kind.startswith("relayed") else "address"
            self.store.set(f"address/{self.rank}", mine)
            places = [f"{told}/{rank}" for rank in range(self.workers)]
            places[self.rank] = f"address/{self.rank}"
            return [self.store.get(place).decode() for place in places]

        return _core.net_transport(
            self.rank,
            self.workers,
            token="secret",
            share=share,
            address="" if share_memory else self.address,
            share_memory=share_memory,
            tls=kind.endswith("tls"),
            longest_silence_s=SILENCE_S,
        )

    def say(self, word: str) -> None:
        self.store.set(f"{word}/{self.rank}", "")

    def hear(self, word: str, rank: int | str) -> None:
        self.store.wait([f"{word}/{rank}"], timedelta(seconds=PATIENCE_S))

    def payload(self, sender: int, receiver: int, step: int, size: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed((step * 64 + sender) * 64 + receiver)
        return torch.randint(0, 256, (size,), dtype=torch.uint8, generator=generator)

    def exchange(self, peer: int, step: int, size: int, *, late: bool = False) -> bool:
        """Both ways at once; whether the right bytes came."""
        me, transport = self.rank, self.transport
        outgoing = self.payload(me, peer, step, size)
        landing = torch.zeros(size, dtype=torch.uint8)
        sent = transport.send(peer, outgoing, Tag(step), timeout_s=PATIENCE_S)
        if late:
            time.sleep(0.02)
        received = transport.receive(peer, landing, Tag(step), timeout_s=PATIENCE_S)
        transport.wait(received)
        transport.wait(sent)
        return torch.equal(landing, self.payload(peer, me, step, size))

    def failure(self, request: int) -> dict[str, object]:
        """How a request fails; empty when it does not."""
        try:
            self.transport.wait(request)
        except _core.TransportError as error:
            names = "rank peer operation elapsed_s reason".split()
            return {name: getattr(error, name) for name in names}
        return {}


def exchange(me: Worker) -> object:
    """Early receives, late receives, all peers, many sizes."""
    early = {
        peer: torch.zeros(70_000, dtype=torch.uint8) for peer in me.peers
    }  # long before they are sent
    requests = {
        peer: me.transport.receive(peer, early[peer], Tag(-1), timeout_s=PATIENCE_S)
        for peer in me.peers
    }
    right = []
    for step, size in enumerate((0, 1, 1000, 262_088, 262_089, 5_000_000)):
        for peer in sorted(me.peers, key=lambda other: sorted((me.rank, other))):
            right.append(me.exchange(peer, step, size, late=me.rank > peer))
    for peer in me.peers:
        payload = me.payload(me.rank, peer, -1 % 64, 70_000)
        me.transport.wait(me.transport.send(peer, payload, Tag(-1), timeout_s=PATIENCE_S))
    for peer, request in requests.items():
        me.transport.wait(request)
        right.append(torch.equal(early[peer], me.payload(peer, me.rank, -1 % 64, 70_000)))
    me.transport.stop()
    return {"right": right, "listens": listening_addresses()}


def listening_addresses() -> list[str]:
    """Of this process, in the kernel's hexadecimal."""
    sockets = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            sockets.add(target[8:-1])
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                found.append(fields[1].split(":")[0])
    return found


def forget_unsent_bytes_at_the_end() -> None:
    """What the network has not taken from this process dies with it."""
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(link.name))) as copy:
            copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def begin_large_transfers(me: Worker, peer: int, step: int) -> list[int]:
    """Both ways at once."""
    outgoing = torch.zeros(16 << 20, dtype=torch.uint8)
    landing = torch.zeros(16 << 20, dtype=torch.uint8)
    return [
        me.transport.receive(peer, landing, Tag(step), timeout_s=PATIENCE_S),
        me.transport.send(peer, outgoing, Tag(step), timeout_s=PATIENCE_S),
    ]


def transfer_until_it_fails(me: Worker, peer: int) -> list[dict[str, object]]:
    for step in itertools.count(1000):
        failures = [me.failure(request) for request in begin_large_transfers(me, peer, step)]
        me.say("busy")
        if any(failures):
            return failures
    raise AssertionError


def lost(me: Worker) -> object:
    """The last worker is stopped in the middle of transfers with everyone, then killed."""
    last = me.workers - 1
    assert all(me.exchange(peer, 0, 1000) for peer in me.peers)
    if me.rank == last:
        transfer_until_it_fails(me, 0)  # or until it is killed
        return None
    never_sent = me.transport.receive(last, torch.zeros(8), Tag(9), timeout_s=PATIENCE_S)
    with ThreadPoolExecutor(1) as pool:
        transfers = pool.submit(transfer_until_it_fails, me, last) if me.rank == 0 else None
        me.hear("busy", last)
        result = while_the_last_one_dies(me, last, never_sent)
        result["transfers"] = transfers.result() if transfers else []
    me.transport.stop()
    return result


def while_the_last_one_dies(me: Worker, last: int, never_sent: int) -> dict[str, object]:
    me.say("waiting")
    me.hear("stopped", last)
    others = [peer for peer in me.peers if peer != last]
    right = [me.exchange(peer, 1, 3_000_000) for peer in others]  # while it stands still
    me.say("went-on")
    waiting = me.failure(never_sent)
    later = me.failure(me.transport.receive(last, torch.zeros(8), Tag(3), timeout_s=30))
    right += [me.exchange(peer, 2, 3_000_000) for peer in others]
    return {"right": right, "waiting": waiting, "later": later}


def lost_inside_a_frame(me: Worker) -> object:
    """Worker 1 dies when worker 0, which stands still, has only part of a frame."""
    size = 250_000  # one frame, and more than the network takes unread
    if me.rank == 0:
        landing = torch.zeros(size, dtype=torch.uint8)
        request = me.transport.receive(1, landing, Tag(1), timeout_s=PATIENCE_S)
        assert me.exchange(1, 0, 1000)  # comes after the wish for the frame
        me.say("ready")
        me.hear("go-on", 0)
        return {"failure": me.failure(request)}
    assert me.exchange(0, 0, 1000)
    me.hear("stopped", 0)
    forget_unsent_bytes_at_the_end()
    me.transport.send(0, torch.zeros(size, dtype=torch.uint8), Tag(1), timeout_s=PATIENCE_S)
    time.sleep(0.5)  # until the network is full
    me.say("full")
    time.sleep(PATIENCE_S)  # until it is killed
    return None


def frozen(me: Worker) -> object:
    """The last worker stands still for a while: requests with it fail in time, then all goes on."""
    last = me.workers - 1
    right = [me.exchange(peer, 0, 1000) for peer in me.peers]
    me.say("ready")
    me.hear("stopped", last)
    failures = []
    if me.rank != last:
        size = 8 << 20
        requests = [
            me.transport.receive(last, torch.zeros(size), Tag(1), timeout_s=0.3),
            me.transport.send(last, torch.zeros(size), Tag(1), timeout_s=0.3),
        ]
        others = [peer for peer in me.peers if peer != last]
        right += [me.exchange(peer, 1, 1_000_000) for peer in others]
        failures = [me.failure(request) for request in requests]
        me.say("failed")
        me.hear("thawed", last)
    right += [me.exchange(peer, 2, 1_000_000) for peer in me.peers]
    me.transport.stop()
    return {"right": right, "failures": failures}


def unplugged(me: Worker) -> object:
    """The last worker's host is off the network for a while, which is as if it stood still."""
    last = me.workers - 1
    right = [me.exchange(peer, 0, 1_000_000) for peer in me.peers]
    me.say("ready")
    me.hear("unplugged", last)
    lost = me.peers if me.rank == last else [last]
    requests = [
        post(peer, torch.zeros(1 << 20), Tag(1), timeout_s=1.0)
        for peer in lost
        for post in (me.transport.receive, me.transport.send)
    ]
    others = [peer for peer in me.peers if peer not in lost]
    right += [me.exchange(peer, 1, 1_000_000) for peer in others]
    failures = [me.failure(request) for request in requests]
    me.say("failed")
    me.hear("plugged", last)
    right += [me.exchange(peer, 2, 1_000_000) for peer in me.peers]
    me.transport.stop()
    return {"right": right, "failures": failures}


def silent(me: Worker) -> object:
    """Worker 1 stands still for longer than it may; worker 0 need not wait for its deadline."""
    assert me.exchange(1 - me.rank, 0, 1000)
    me.say("ready")
    me.hear("stopped", 1)
    if me.rank == 1:
        return None
    landing = torch.zeros(8)
    return {"failure": me.failure(me.transport.receive(1, landing, Tag(1), timeout_s=PATIENCE_S))}


def lost_with_a_child(me: Worker) -> object:
    """Worker 1 is killed while a child of it holds its sockets."""
    assert me.exchange(1 - me.rank, 0, 1000)
    if me.rank == 1:
        child = os.fork()
        if child == 0:
            time.sleep(PATIENCE_S)
            os._exit(0)
        me.store.set("child", str(child))
    me.say("ready")
    landing = torch.zeros(8)
    request = me.transport.receive(1 - me.rank, landing, Tag(1), timeout_s=PATIENCE_S)
    return {"failure": me.failure(request)}


def leave(me: Worker, go: Callable[[], None]) -> object:
    """Worker 0 leaves in its own way, with requests pending; the other waits for it."""
    assert me.exchange(1 - me.rank, 0, 1000)
    begin_large_transfers(me, 1 - me.rank, 1)
    if me.rank == 0:
        go()
        return None
    return {"failures": [me.failure(me.transport.receive(0, torch.zeros(1), Tag(9), timeout_s=30))]}


def leave_at_the_end(me: Worker) -> object:
    return leave(me, lambda: None)


def leave_while_a_thread_waits(me: Worker) -> object:
    def go() -> None:
        landing = torch.zeros(1)
        request = me.transport.receive(1, landing, Tag(77), timeout_s=PATIENCE_S)
        threading.Thread(target=me.failure, args=[request], daemon=True).start()

    return leave(me, go)


def leave_by_exit(me: Worker) -> object:
    return leave(me, lambda: sys.exit(0))


def leave_at_once(me: Worker) -> object:
    return leave(me, lambda: os._exit(0))


def interrupted(me: Worker) -> object:
    """Worker 0 waits for ever, and is interrupted."""
    assert me.exchange(1 - me.rank, 0, 1000)
    request = me.transport.receive(1 - me.rank, torch.zeros(1), Tag(9), timeout_s=PATIENCE_S)
    me.say("waiting")
    if me.rank == 0:
        try:
            me.transport.wait(request)
        except KeyboardInterrupt:
            return {"interrupted": True}
    return {"failures": [me.failure(request)]}


def changed_on_the_way(me: Worker) -> object:
    """Each worker's payload for the other: how it failed, or how many bytes are other ones."""
    peer, size = 1 - me.rank, 3000
    landing = torch.zeros(size, dtype=torch.uint8)
    mine = me.payload(me.rank, peer, 1, size)
    received = me.transport.receive(peer, landing, Tag(1), timeout_s=PATIENCE_S)
    sent = me.transport.send(peer, mine, Tag(1), timeout_s=PATIENCE_S)
    result = {"received": me.failure(received), "sent": me.failure(sent)}
    wrong = int((landing != me.payload(peer, me.rank, 1, size)).sum())
    me.say("through")
    me.hear("through", peer)  # a worker that leaves would end what is still under way
    me.transport.stop()
    return {**result, "wrong": wrong}


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        exchange,
        lost,
        lost_inside_a_frame,
        frozen,
        unplugged,
        silent,
        lost_with_a_child,
        leave_at_the_end,
        leave_by_exit,
        leave_at_once,
        leave_while_a_thread_waits,
        interrupted,
        changed_on_the_way,
    )
}


def store_at(place: str) -> Store:
    if not place.isdigit():
        return FileStore(place, -1)
    return TCPStore(LOOPBACK, int(place), is_master=False, timeout=timedelta(seconds=PATIENCE_S))


def main() -> None:
    scenario, rank, workers = sys.argv[1], *map(int, sys.argv[2:4])
    torch.set_num_threads(1)
    worker = Worker(rank, workers, store_at(sys.argv[4]), *sys.argv[5:])
    print(json.dumps(SCENARIOS[scenario](worker)), flush=True)


if __name__ == "__main__":
    main()
