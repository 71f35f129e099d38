"""Which run is whose: for objects that a user gives a Gossip to."""

from __future__ import annotations

from weakref import WeakKeyDictionary, ref

from gossamer.step.run import Run

_runs: WeakKeyDictionary[object, ref[Run]] = WeakKeyDictionary()  # a run leads to its Gossip


def remember(gossip: object, run: Run) -> None:
    """The run is this Gossip's, which keeps it, for other objects that a user gives it to."""
    _runs[gossip] = ref(run)


def run_of(gossip: object, who: str) -> Run:
    """Of a Gossip that was given to ``who``. Raises TypeError for another thing."""
    try:
        found = _runs.get(gossip)
    except TypeError:  # a thing without weak references, such as a number
        found = None
    run = None if found is None else found()
    if run is None:
        raise TypeError(
            f"[Gossip] {who} is for a gossamer.Gossip, got {type(gossip).__name__}; give it what "
            "gossamer.Gossip(model, optimizer) returned"
        )
    return run
