"""What each worker says."""

from __future__ import annotations

import json
from typing import Any

from gossamer.session.team import UNEVEN, Team


def gather(team: Team, value: Any) -> dict[int, Any]:
    """See Gossip.gather."""
    if team.block == UNEVEN:
        team.refuse_inside("gather()")
    said, problem = None, None
    try:
        said = json.dumps(value)
    except (TypeError, ValueError) as error:
        problem = ValueError(
            f"[Gossip] rank {team.session.world.rank}: gather() is of what JSON can say, such as "
            f"numbers, texts and lists of them, got {type(value).__name__}: {error}"
        )
    cards = team.exchange("gather()", {"value": said}, problem)
    return team.by_rank([json.loads(card["value"]) for card in cards])
