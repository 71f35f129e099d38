"""How long the links need for the bytes of a step, which no contender can undercut."""

from collections.abc import Sequence

from methods import Mixing

# A full Ethernet frame and what TCP, with timestamps, carries in it.
FRAME_BYTES = 1514
CARRIED_BYTES = 1448
ROUNDS_TRIED = 64  # of a schedule without a period
Bytes = tuple[float, float]


def link_s(by_host: Sequence[Bytes], rates: Sequence[float]) -> float:
    """Seconds that the slowest link needs for (sent, received) bytes, headers included; links
    without a rate, in bits per second, need none."""
    pairs = zip(by_host, rates, strict=True)
    return max(8 * max(each) / rate if rate else 0.0 for each, rate in pairs)


def planned_bytes(mixing: Mixing, workers: Sequence[int], payload_bytes: int) -> list[Bytes]:
    """By host, (sent, received) per step according to Gossamer's plans: the mean over a period,
    with the headers of full frames."""
    schedule = mixing.schedule(workers)
    rounds = schedule.period or ROUNDS_TRIED
    scale = mixing.bytes_per_element * FRAME_BYTES / CARRIED_BYTES / rounds
    sent, received = [0.0] * len(workers), [0.0] * len(workers)
    for t in range(rounds):
        elements = schedule.elements_between_hosts(
            t, payload_bytes // 4, finished_averages=mixing.averages_gradients
        )
        for host, (out, into) in enumerate(elements):
            sent[host] += out * scale
            received[host] += into * scale
    return list(zip(sent, received, strict=True))
