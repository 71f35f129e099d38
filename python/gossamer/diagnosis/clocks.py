"""Wall clocks of several hosts: how far each is ahead of rank 0's, and whether that matters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gossamer.diagnosis.links import Skew

MATTERS_S = 1e-3
"""What is less is shorter than what a timeline shows of a step."""

SAME = Skew(0.0, 0.0)


def against_rank_0(workers: int, skews: Iterable[tuple[int, int, Skew]]) -> list[Skew | None]:
    """Of each worker, by the links (low, high, how far high is ahead) that lead there with the
    least uncertainty; None where none does. Offsets and uncertainties of links add up."""
    edges = [(low, high, each.ahead_s, each.uncertain_s) for low, high, each in skews]
    both_ways = [*edges, *((high, low, -ahead_s, by_s) for low, high, ahead_s, by_s in edges)]
    found: list[Skew | None] = [SAME, *[None] * (workers - 1)]
    for _ in range(workers):
        for start, end, ahead_s, by_s in both_ways:
            before, now = found[start], found[end]
            if before is None:
                continue
            there = Skew(before.ahead_s + ahead_s, before.uncertain_s + by_s)
            if now is None or there.uncertain_s < now.uncertain_s:
                found[end] = there
    return found


def by_host(hosts: Sequence[str], clocks: Sequence[Skew | None]) -> dict[str, Skew | None]:
    """Of each host but rank 0's, by that of its workers whose clock is known best."""
    found: dict[str, Skew | None] = {}
    for host, clock in zip(hosts, clocks, strict=True):
        known = found.setdefault(host, clock)
        if clock is not None and (known is None or clock.uncertain_s < known.uncertain_s):
            found[host] = clock
    found.pop(hosts[0])
    return found


def words(clock: Skew | None, reference: str) -> str:
    """For people: "5.00 ms ahead of host a, give or take 0.03 ms"."""
    if clock is None:
        return "not measured"
    side = "ahead of" if clock.ahead_s >= 0 else "behind"
    far, by = _ms(abs(clock.ahead_s)), _ms(clock.uncertain_s)
    return f"{far} {side} host {reference}, give or take {by}"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms" if seconds < 1 else f"{seconds:.3f} s"


def warnings(hosts: Sequence[str], clocks: Sequence[Skew | None]) -> list[str]:
    """A word for each host whose clock certainly differs by more than a millisecond."""
    return [
        f"the clock of host {host} is {words(clock, hosts[0])}; training does not mind, but "
        "traces and reports of several hosts are shifted by it; let chrony or ntpd set the clocks"
        for host, clock in by_host(hosts, clocks).items()
        if clock is not None and abs(clock.ahead_s) - clock.uncertain_s > MATTERS_S
    ]
