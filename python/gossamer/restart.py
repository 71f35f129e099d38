"""Going on with other parameters or values than those that were sent last."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from gossamer import patterns, setup
from gossamer.checkpoints import Carried
from gossamer.roll_call import agree, within

if TYPE_CHECKING:
    from gossamer.gossip import Gossip


RESTART = "a start with other parameters or values"


def restart(gossip: Gossip, step: int | None = None, carried: Carried | None = None) -> None:
    """Goes on with other parameters, or with values that nobody was sent, as they are here.

    What travels is dropped, and what the pattern keeps starts at zero unless it is ``carried``:
    on all ranks alike, else corrections would not add up to zero any more. Only parameters that are
    new, or thawed, start with rank 0's values; what was frozen since takes the mean of all workers,
    so that it is equal everywhere from then on. Collective; asks nobody but the other workers.
    """
    gossip._loaded.is_set = True  # until this has been done: a failure is not the end of it
    before = {id(parameter): parameter for parameter in gossip._parameters}
    engine = gossip._engine
    steps_done = engine.steps_done if step is None else step
    if step is None:
        agree(gossip, RESTART)  # before anybody waits for what has to arrive yet
    with within(gossip, RESTART):
        engine.quiesce()
    agree(gossip, RESTART, partial(_about_now, gossip), compares_steps=False)
    engine.broadcast([p for p in gossip._parameters if id(p) not in before])
    engine.average([p for p in gossip._model.parameters() if _is_frozen_now(p, before)])
    engine.barrier()
    gossip._totals.keep(engine)
    losses = engine.agreed_losses if carried is None else carried.losses
    engine.close()
    setup.make_engine(gossip)
    gossip._engine.agreed_losses = losses
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


def _is_frozen_now(parameter: torch.Tensor, before: dict[int, torch.Tensor]) -> bool:
    return id(parameter) in before and not parameter.requires_grad


def _carry(gossip: Gossip, carried: Carried) -> None:
    """What it is carried by: the parameter's number in the optimizer."""
    vectors = setup.row_of(gossip).kept_state
    for i, number in enumerate(gossip._numbers):
        if number in carried.sent:
            gossip._engine.home(i).copy_(carried.sent[number])
        for name, k in vectors.items():
            if (name, number) in carried.state:
                gossip._engine.pattern_state(i, k).copy_(carried.state[name, number])
