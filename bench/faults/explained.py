"""Is it so what the workers say of a fault: whom it befell, in which step, and by what cause?"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Diary = Sequence[Mapping[str, Any]]

SAID = re.compile(r"goes on without rank (\d+), lost in step (\d+): (.*)")
A_RANK = re.compile(r"\b(rank|worker) \d+")
FROM_OTHERS = "the others go on without it"  # of one that is no neighbour
CAUSES = {"kill": "has ended", "freeze": "has been silent", "unplug": "has been silent"}
SILENT_S = 6.0  # after which it counts as lost, and somewhat more
ROUNDS = 4  # steps within which every worker exchanges once with each of its neighbours


@dataclass
class Explained:
    """`due`: losses that somebody had to speak of; `right`: of them, those whose first sentence had
    the worker, the step and the cause."""

    due: int = 0
    right: int = 0
    wrong: list[str] = field(default_factory=list)


def steps_until(diary: Diary, moment: float) -> int:
    """How many the worker had done then."""
    return max(
        (line["step"] for line in diary if "step" in line and line["at"] <= moment), default=0
    )


def is_due(diaries: Sequence[Diary], since: float) -> bool:
    """Whether one of them has done so many steps since then that it must have noticed."""
    return any(
        sum("step" in line and line["at"] > since for line in diary) >= ROUNDS for diary in diaries
    )


def of_those_that_go_on(
    fault: str,
    lost: Sequence[str],
    texts: Mapping[str, str],
    diaries: Mapping[str, Diary],
    struck: float,
    *,
    waits: bool,
) -> Explained:
    """`texts`: what each worker that goes on has said, by name; `diaries`: of all.

    Whoever exchanges with a lost worker notices it in the next steps. Who does not wait for late
    neighbours, or is no neighbour, may be many steps ahead by then. So the first sentence counts.
    """
    found = Explained()
    silence = 0.0 if fault == "kill" else SILENT_S
    if not is_due([diaries[name] for name in texts], struck + silence):
        return found
    done = max(steps_until(diaries[name], struck) for name in lost) if lost else 0
    said = [
        (int(step), rank, why)
        for text in texts.values()
        for rank, step, why in SAID.findall(text)
        if rank in lost and why != FROM_OTHERS
    ]
    first = min(said, default=(10**9, "", ""))[0]
    is_soon = first <= done + ROUNDS or not (waits or fault == "kill")
    for name in lost:
        found.due += 1
        own = [(step, why) for step, rank, why in said if rank == name]
        own_done = steps_until(diaries[name], struck)
        is_so = all(own_done <= step and CAUSES[fault] in why for step, why in own)
        if own and is_so and is_soon:
            found.right += 1
        else:
            found.wrong.append(f"{fault} of rank {name} after step {own_done}: {own}")
    return found


def of_those_that_end(
    fault: str, struck_by: Sequence[str], diaries: Mapping[str, Diary]
) -> Explained:
    """Whether the error of each worker that ends names one that it could not hear any more.
    `struck_by`: whom the fault befell; of an unplugging all of that host, which in turn hear nobody
    else."""
    found = Explained()
    for name, diary in diaries.items():
        end = next((line for line in diary if "end" in line), {})
        if not isinstance(end.get("peer"), int) or (fault != "unplug" and name in struck_by):
            continue
        found.due += 1
        if (str(end["peer"]) in struck_by) != (name in struck_by):
            found.right += 1
        else:
            found.wrong.append(f"{fault} of {struck_by}: {name} names rank {end['peer']}")
    return found


def names_a_rank(end: Mapping[str, Any]) -> bool:
    """Inside of a backward, torch makes RuntimeErrors of ours, with the same words."""
    return isinstance(end.get("peer"), int) or bool(A_RANK.search(end.get("message", "")))
