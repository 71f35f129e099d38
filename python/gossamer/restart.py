"""Going on with other parameters or values than those that were sent last."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gossamer import patterns, setup
from gossamer.checkpoints import Carried
from gossamer.roll_call import agree, within

if TYPE_CHECKING:
    from gossamer.gossip import Gossip


RESTART = "the start with other parameters or loaded values"


def restart(gossip: Gossip, step: int | None = None, carried: Carried | None = None) -> None:
    """Goes on with other parameters, or with values that nobody was sent, as they are here.

    What travels is dropped, and what the pattern keeps starts at zero unless it is ``carried``:
    on all ranks alike, else corrections would not add up to zero any more. Only parameters that are
    new start with rank 0's values. Collective.
    """
    gossip._loaded.is_set = True  # until this has been done: a failure is not the end of it
    old = {id(parameter) for parameter in gossip._parameters}
    steps_done = gossip._engine.steps_done if step is None else step
    with within(gossip, RESTART):
        gossip._engine.quiesce()
    if gossip._state is not None:
        gossip._state.detach()
    agree(gossip, RESTART, partial(_about_now, gossip), compares_steps=False if step else None)
    gossip._engine.broadcast([p for p in gossip._parameters if id(p) not in old])
    gossip._engine.barrier()
    gossip._totals.keep(gossip._engine)
    gossip._engine.close()
    setup.make_engine(gossip)
    gossip._engine.set_anchors()
    if carried is not None:
        _carry(gossip, carried)
    gossip._engine.start_at(steps_done)
    gossip._watch_backward()
    gossip._loaded.is_set = False
    if step is not None:
        gossip._metrics.restart(step)
    gossip._resume()


def _about_now(gossip: Gossip) -> list[str]:
    gossip._read_optimizer()
    patterns.check_optimizer(gossip._settings.pattern, gossip._rule, gossip._optimizer)
    return setup.about(gossip).splitlines()


def _carry(gossip: Gossip, carried: Carried) -> None:
    for i, values in carried.sent.items():
        gossip._engine.home(i).copy_(values)
    vectors = setup.row_of(gossip).kept_state
    for (name, i), values in carried.state.items():
        gossip._engine.pattern_state(i, vectors[name]).copy_(values)
