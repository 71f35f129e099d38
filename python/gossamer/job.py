"""The process group of a job whose workers may come back."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from gossamer.workers import lasting_group, members, start_places, start_watch
from gossamer.workers.starting import init_process_group


def init(**arguments: Any) -> tuple[int, int]:
    """Rank and number of workers, after ``torch.distributed.init_process_group``.

    Its group is one of Gloo's. Once there is a Gossip of all ranks with ``lost="go_on"``,
    collective calls of ``torch.distributed`` go by its connections, among those that are left: for
    each rank that is lost the next lower one that is left stands in. A worker that has come back
    (see ``gossamer launch``) takes part in them from then on; before that they raise RuntimeError.
    They are for numbers, texts and predictions: every rank hears what all say.

    Gloo listens on the address that leads to MASTER_ADDR, or as GLOO_SOCKET_IFNAME says; in a job
    of one host on loopback. After 10 s a line on stderr says which rank has not come. Where another
    rank fails in the start, or the launcher's store has gone, this process ends with exit code 1.

    ``arguments`` are those of ``init_process_group``. With a ``backend`` of your own it is torch's,
    and its calls fail once a worker is lost; a worker that comes back has none of it. Raises
    ValueError where no launcher has set its variables, DistNetworkError for a port in use.

    Example::

        rank, workers = gossamer.init()
        gossip = gossamer.Gossip(model, optimizer, lost="go_on")
        for step in range(gossip.steps_done, total):
            ...
    """
    lasting_group.register()
    if not members.is_coming_back():
        start = start_watch.start_of(arguments, start_places.gloo_address())
        with start_watch.watched(start), start_places.bound_store(start):
            own = {"backend": lasting_group.NAME, **start_places.of_those_that_begin(start)}
            init_process_group("[init] ", **{**own, **arguments})
        return dist.get_rank(), dist.get_world_size()
    rank, size = members.seat()
    dist.init_process_group(lasting_group.NAME, rank=rank, world_size=size, store=dist.HashStore())
    return rank, size
