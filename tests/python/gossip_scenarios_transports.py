"""What the workers of the Gossip tests do: the same training over each transport."""

from typing import Any

from gossip_scenarios_basic import gossiping, numbers
from gossip_support import batch, loss_of, mlp
from torch.optim import SGD, AdamW, RMSprop

RUNS = {
    "cwa": (AdamW, {"topology": "ring"}),
    "atc": (SGD, {"topology": "complete", "pattern": "atc"}),
    "allreduce": (AdamW, {"pattern": "allreduce"}),
    "hierarchical": (AdamW, {}),
    "own step": (RMSprop, {"topology": "one_peer_exponential"}),
}


def transports(rank: int, size: int) -> Any:
    """By run and transport: the parameters at the end, the bytes per edge, and the average's."""
    found: dict[str, Any] = {}
    for run, (kind, options) in RUNS.items():
        for transport in ("net", "c10d"):
            model = mlp(hidden=3000)  # more than travels in a single message
            optimizer = kind(model.parameters(), lr=0.01)
            options = {**options, "transport": transport, "bucket_bytes": 1 << 16}
            with gossiping(model, optimizer, **options) as gossip:
                for step in range(6):
                    optimizer.zero_grad()
                    loss_of(model, batch(step, rank)).backward()
                    optimizer.step()
                stats = gossip.stats()
                with gossip.averaged():
                    mean = numbers(model)[::97]
                found[f"{run} {transport}"] = {
                    "x": numbers(model)[::7],
                    "mean": mean,
                    "stats": stats,
                }
    return found


SCENARIOS = {"transports": transports}
