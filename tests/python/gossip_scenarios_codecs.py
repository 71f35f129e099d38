"""What the workers of the Gossip tests do: coded payloads, and neighbours that are late."""

from typing import Any

from gossip_scenarios_basic import gossiping, numbers
from gossip_support import batch, loss_of, mlp
from torch.optim import SGD, RMSprop

CODECS = ("fp32", "bf16", "int8")
RUNS: dict[str, dict[str, Any]] = {
    "ring": {"topology": "ring"},
    "hierarchical": {},
    "atc": {"topology": "complete", "pattern": "atc"},
    "allreduce": {"pattern": "allreduce"},
}


def codecs(rank: int, size: int) -> Any:
    """By run and codec: the parameters at the end and the bytes per edge."""
    found: dict[str, Any] = {}
    for run, options in RUNS.items():
        for codec in CODECS:
            model = mlp(hidden=3000)
            optimizer = SGD(model.parameters(), lr=0.01)
            with gossiping(model, optimizer, codec=codec, **options) as gossip:
                before: dict[int, dict[str, int]] = {}
                for step in range(44):
                    if step == 4:  # the first values, which are not coded, have come
                        before = gossip.stats()["edges"]
                    optimizer.zero_grad()
                    loss_of(model, batch(step, rank)).backward()
                    optimizer.step()
                edges = {
                    peer: {
                        way: count - before.get(peer, {}).get(way, 0) for way, count in e.items()
                    }
                    for peer, e in gossip.stats()["edges"].items()
                }
                found[f"{run} {codec}"] = {"x": numbers(model)[::7], "edges": edges}
    return found


def late(rank: int, size: int) -> Any:
    """Rank 0 takes many more steps than the others; then all average."""
    found: dict[str, Any] = {}
    for name, make in {"fused": SGD, "own step": RMSprop}.items():
        model = mlp()
        optimizer = make(model.parameters(), lr=0.01)
        with gossiping(model, optimizer, topology="ring", late="skip", staleness=2) as gossip:
            for step in range(40 if rank == 0 else 5):
                optimizer.zero_grad()
                loss_of(model, batch(step, rank)).backward()
                optimizer.step()
            with gossip.averaged():
                mean = numbers(model)
            stats = gossip.stats()
            found[name] = {"mean": mean, "steps": stats["steps"], "skipped": stats["skipped"]}
    return found


SCENARIOS = {"codecs": codecs, "late": late}
