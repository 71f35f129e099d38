"""What workers notice of somebody on the way between them who changes what they say.

A relay stands before worker 0's port: it passes everything on, and changes each payload of
worker 0. See the table in SECURITY.md.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

import pytest
from test_processes import LOOPBACK, Team

Change = Callable[[bytes, bytearray], bytes]
LEAST_BYTES = 1000
# The generator of CRC-32C, in the order in which bits are sent: added to a payload anywhere, it
# leaves the checksum as it was.
GENERATOR = (1 | 0x82F63B78 << 1).to_bytes(5, "little")


def crc32c(data: bytes | bytearray) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Frames(NamedTuple):
    """What a relay must know of the frames that it passes on."""

    head: int  # bytes before what follows
    follows: Callable[[bytes], int]
    is_payload: Callable[[bytes], bool]


# gossamer/transport/net/frame.h, with two codes after the header; and records of TLS.
DATA = 14
PLAIN = Frames(
    96,
    lambda head: struct.unpack_from("<I", head, 60)[0],
    lambda head: struct.unpack_from("<I", head, 4)[0] == DATA,
)
TLS = Frames(
    5, lambda head: struct.unpack_from(">H", head, 3)[0], lambda head: head[0] == 23
)  # application data


def flip(head: bytes, body: bytearray) -> bytes:
    body[500] ^= 1
    return head


def flip_and_mend_the_head(head: bytes, body: bytearray) -> bytes:
    """The checksum of the changed payload stands where the right one stood."""
    flip(head, body)
    return head[:64] + struct.pack("<I", crc32c(body)) + head[68:]


def flip_and_mend_the_payload(head: bytes, body: bytearray) -> bytes:
    """Four bytes more are changed, so that the checksum is right again."""
    for at, bits in enumerate(GENERATOR):
        body[500 + at] ^= bits
    return head


class Relay:
    """Before a worker's port, until both ends have closed."""

    def __init__(self, port: int, frames: Frames, change: Change) -> None:
        self.worker, self.frames, self.change = port, frames, change
        self.changed = 0
        self.door = socket.create_server((LOOPBACK, 0))
        self.port = self.door.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        with contextlib.suppress(OSError):  # the door is closed
            while True:
                caller, _ = self.door.accept()
                called = socket.create_connection((LOOPBACK, self.worker))
                ways = ((called, caller, self.change), (caller, called, None))
                for way in ways:
                    threading.Thread(target=self.pass_on, args=way, daemon=True).start()

    def pass_on(self, source: socket.socket, to: socket.socket, change: Change | None) -> None:
        with contextlib.suppress(OSError), source.makefile("rb") as stream:
            for head, body in self.read(stream):
                if change and self.frames.is_payload(head) and len(body) >= LEAST_BYTES:
                    head = change(head, body)
                    self.changed += 1
                to.sendall(head + body)
        with contextlib.suppress(OSError):
            to.shutdown(socket.SHUT_WR)

    def read(self, stream: BinaryIO) -> Iterator[tuple[bytes, bytearray]]:
        while len(head := stream.read(self.frames.head)) == self.frames.head:
            yield head, bytearray(stream.read(self.frames.follows(head)))


def play(frames: Frames, change: Change) -> tuple[int, dict, dict]:
    """How many payloads were changed, and what workers 0 and 1 noticed."""
    kind = "relayed tls" if frames is TLS else "relayed"
    team = Team("changed_on_the_way", 2, kind)
    try:
        team.hear("address", [0, 1])
        cards = [team.store.get(f"address/{rank}").decode().split(" ") for rank in range(2)]
        relay = Relay(int(cards[0][4]), frames, change)
        team.store.set("relay/1", " ".join(cards[1]))
        cards[0][4] = str(relay.port)
        team.store.set("relay/0", " ".join(cards[0]))
        results = [team.result(rank) for rank in range(2)]
        relay.door.close()
        return relay.changed, results[0], results[1]
    finally:
        team.end()


def assert_refused(played: tuple[int, dict, dict]) -> None:
    changed, sender, receiver = played
    assert changed == 1
    came, left = receiver["received"], sender["sent"]
    assert (came["rank"], came["peer"]) == (1, 0)
    assert "what came from the peer was changed on the way" in came["reason"]
    assert came["elapsed_s"] < 20, "at once, not at the deadline"
    if left:  # what has left entirely counts as sent
        assert (left["rank"], left["peer"]) == (0, 1)
        assert "what was sent to the peer was changed on the way" in left["reason"]


@pytest.mark.parametrize(
    ("frames", "change", "secret"),
    [
        (PLAIN, flip, ""),
        (PLAIN, flip_and_mend_the_head, ""),
        (PLAIN, flip, "of the job"),
        (PLAIN, flip_and_mend_the_payload, "of the job"),
        (TLS, flip, ""),
    ],
)
def test_a_changed_payload_is_refused(
    frames: Frames, change: Change, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if secret:
        monkeypatch.setenv("GOSSAMER_SECRET", (secret + " ") * 8)
    assert_refused(play(frames, change))


def test_only_what_keeps_the_checksum_passes_where_there_is_no_secret() -> None:
    changed, sender, receiver = play(PLAIN, flip_and_mend_the_payload)
    assert changed == 1
    assert not sender["sent"]
    assert not receiver["received"]
    assert receiver["wrong"] == len(GENERATOR)


def test_the_generator_leaves_checksums_as_they_are() -> None:
    payload = bytearray(range(256)) * 4
    before = crc32c(payload)
    flip_and_mend_the_payload(b"", payload)
    assert crc32c(payload) == before
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720's check value
