"""Going on with other parameters or values than those that were sent last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer import setup
from gossamer.checkpoints import Sent
from gossamer.world import Seat, meet

if TYPE_CHECKING:
    from gossamer.gossip import Gossip


def restart(gossip: Gossip, step: int | None = None, sent: Sent = ()) -> None:
    """Goes on with other parameters, or with values that nobody was sent, as they are here.

    What travels is dropped. Only parameters that are new start with rank 0's values. Collective.
    """
    gossip._loaded.is_set = True  # until this has been done: a failure is not the end of it
    old = {id(parameter) for parameter in gossip._parameters}
    steps_done = gossip._engine.steps_done if step is None else step
    gossip._engine.quiesce()
    if gossip._state is not None:
        gossip._state.detach()
    problem: Exception | None = None
    try:
        gossip._read_optimizer()
    except Exception as error:
        problem = error
    seat = Seat(gossip._world.rank, gossip._world.size, gossip._world.group)
    meet(seat, setup.about(gossip), problem, gossip._settings.timeout_s)
    gossip._engine.broadcast([p for p in gossip._parameters if id(p) not in old])
    gossip._engine.barrier()
    gossip._totals.keep(gossip._engine)
    gossip._engine.close()
    setup.make_engine(gossip)
    for i, values in sent:
        gossip._engine.home(i).copy_(values)
    gossip._engine.start_at(steps_done)
    gossip._watch_backward()
    gossip._loaded.is_set = False
