"""What the workers of the Gossip tests do: means of tensors, and what each worker says."""

from collections.abc import Callable
from typing import Any

import torch
from gossip_scenarios_agree import open_until_all_are_done
from gossip_scenarios_ends import attempt_to
from gossip_support import mlp
from torch.optim import SGD

from gossamer import Gossip


def gathered(rank: int, size: int) -> Any:
    """What each says, and a value of one of them that cannot be said."""
    model = mlp()
    with open_until_all_are_done(model, SGD(model.parameters(), lr=0.1)) as gossip:
        value = {"rank": rank, "text": "é", "none": None, "numbers": [0.5, rank * 1e300]}
        found: dict[str, Any] = {"said": sorted(gossip.gather(value).items())}
        with gossip.averaged():
            found["inside"] = sorted(gossip.gather(rank).items())
        with gossip.uneven():
            found["in uneven"] = attempt_to(lambda: gossip.gather(None))
        return {**found, "refused": attempt_to(lambda: gossip.gather({1} if rank else 1))}


def means(rank: int, size: int) -> Any:
    """Means of tensors of many kinds, and what is refused."""
    model = mlp()
    with open_until_all_are_done(model, SGD(model.parameters(), lr=0.1)) as gossip:
        given = [
            torch.full((2, 3), float(rank)),
            torch.tensor(float(rank), dtype=torch.float64),
            torch.full((3,), float(rank), dtype=torch.bfloat16),
            torch.full((2,), complex(rank, 1 - rank)),
            torch.ones(4, 6).t() * rank,
            torch.zeros(0),
        ]
        found = gossip.mean(given)
        return {
            "means": [[str(t.dtype), list(t.shape), str(t.flatten()[:1].tolist())] for t in found],
            "kept": [t.flatten()[0].real.item() for t in given[:5]],
            "one": gossip.mean(torch.tensor(3.0 + rank)).item(),
            "inside": _inside(gossip, rank),
            "whole": attempt_to(lambda: gossip.mean([torch.ones(1), torch.arange(3)])),
            "whole on one": attempt_to(lambda: gossip.mean(torch.arange(3) * (0.5 if rank else 1))),
            "shapes": attempt_to(lambda: gossip.mean(torch.ones(2 + rank))),
        }


def _inside(gossip: Gossip, rank: int) -> float:
    with gossip.averaged():
        return float(gossip.mean(torch.tensor(5.0 + rank)))


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    f"agree_{function.__name__}": function for function in (means, gathered)
}
