"""From what the workers noted to the numbers of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

Note = dict[str, Any]
AFTER_S = 10.0  # so long after a fault its gap is looked for


@dataclass(frozen=True)
class Fault:
    at: float
    rank: int


@dataclass(frozen=True)
class Process:
    """One process of a rank, from its start to the last that it noted."""

    imported: float
    steps: list[tuple[float, int]]  # when, and how many the worker had done then


def processes_of(notes: Sequence[Note]) -> list[Process]:
    found: list[Process] = []
    for note in notes:
        if note.get("what") == "imported":
            found.append(Process(note["at"], []))
        elif found and "step" in note:
            found[-1].steps.append((note["at"], note["step"]))
    return found


def step_s(by_rank: Sequence[Sequence[Process]]) -> float:
    """Of an undisturbed step: the median of all intervals inside a process."""
    every = [
        after[0] - before[0]
        for processes in by_rank
        for process in processes
        for before, after in zip(process.steps, process.steps[1:], strict=False)
    ]
    return median(every)


def goodput_of(
    by_rank: Sequence[Sequence[Process]], begin: float, end: float, usual_s: float
) -> float:
    """Steps that count, of those that all workers could have done undisturbed. A step that a worker
    does again counts once."""
    done = 0
    for processes in by_rank:
        steps = {n for process in processes for at, n in process.steps if begin <= at < end}
        before = {n for process in processes for at, n in process.steps if at < begin}
        done += len(steps - before)
    return done * usual_s / ((end - begin) * len(by_rank))


def is_away(rank: int, moments: Sequence[float], faults: Sequence[Fault], at: float) -> bool:
    """Whether an earlier fault has befallen this worker, after which it has not stepped yet."""
    own = [fault.at for fault in faults if fault.rank == rank and fault.at <= at]
    return bool(own) and not any(own[-1] < moment <= at for moment in moments)


def gap_s(
    by_rank: Sequence[Sequence[Process]], faults: Sequence[Fault], fault: Fault, until: float
) -> float:
    """The longest time up to `until`, when the next fault may come, between two steps of a worker
    that no fault keeps away."""
    longest = 0.0
    for rank, processes in enumerate(by_rank):
        moments = sorted(at for process in processes for at, _ in process.steps)
        if is_away(rank, moments, faults, fault.at):
            continue
        before = [at for at in moments if at <= fault.at][-1:]
        after = [at for at in moments if fault.at < at]
        inside = [*before, *after]
        for first, second in zip(inside, [*inside[1:], until], strict=False):
            if first < until:
                longest = max(longest, min(second, until) - first)
    return longest


def recovery_s(processes: Sequence[Process], fault: Fault) -> tuple[float, float] | None:
    """Of the process that comes in place of the lost one: from the fault to its first step, and the
    part after its imports. None where none has come so far."""
    for process in processes:
        if process.steps and process.steps[0][0] > fault.at:
            first = process.steps[0][0]
            return first - fault.at, first - process.imported
    return None


def others_started_again(
    by_rank: Sequence[Sequence[Process]], faults: Sequence[Fault], begin: float, end: float
) -> int:
    """Processes that were there at `begin` or later and were followed by another one, though
    nothing had befallen them."""
    found = 0
    for rank, processes in enumerate(by_rank):
        followed = [p for p in processes[1:] if begin < p.imported < end]
        found += max(0, len(followed) - sum(fault.rank == rank for fault in faults))
    return found


def steps_lost(by_rank: Sequence[Sequence[Process]], faults: Sequence[Fault]) -> float:
    """For each fault and each worker that it does not befall: steps that are done again, and steps
    that a process leaves out."""
    again, left_out = 0, 0
    for processes in by_rank:
        numbers = [n for process in processes for _, n in process.steps]
        again += len(numbers) - len(set(numbers))
        for process in processes:
            own = [n for _, n in process.steps]
            left_out += own[-1] - own[0] + 1 - len(set(own)) if own else 0
    return (again + left_out) / max(1, len(faults) * (len(by_rank) - 1))


def summary(
    notes: Sequence[Sequence[Note]], faults: Sequence[Fault], begin: float, end: float
) -> dict[str, Any]:
    by_rank = [processes_of(each) for each in notes]
    usual_s = step_s(by_rank)
    gaps, recoveries = [], []
    for fault, following in zip(faults, [*faults[1:], None], strict=False):
        limit = min(end, fault.at + AFTER_S, following.at if following else end)
        gaps.append(gap_s(by_rank, faults, fault, limit))
        recoveries.append(recovery_s(by_rank[fault.rank], fault))
    came = [each for each in recoveries if each]
    last = [[at for process in each for at, _ in process.steps][-1:] for each in by_rank]
    return {
        "step_s": usual_s,
        "goodput": goodput_of(by_rank, begin, end, usual_s),
        "faults": len(faults),
        "median_gap_s": median(gaps) if gaps else None,
        "longest_gap_s": max(gaps, default=None),
        "median_recovery_s": median(each[0] for each in came) if came else None,
        "median_recovery_after_import_s": median(each[1] for each in came) if came else None,
        "came_back": len(came),
        "steps_lost": steps_lost(by_rank, faults),
        "others_started_again": others_started_again(by_rank, faults, begin, end),
        "step_at_the_end": sum(bool(at) and at[0] > end - 1 for at in last),
    }
