"""Four workers train in half precision and in float32: how far apart they end, and their loss.

usage: python tests/python/half_precision.py [--short | --curves]

With --curves it prints a figure as JSON, which `gossamer charts - --svg FILE` draws. It has a third
curve, of bfloat16 parameters without masters. The package has no such mode, so this is its former
rule with four models in one process: torch's own step, then the mix, rounded to the nearest.

GOSSAMER_PYTHON_PATH names another build of the package, to compare with.
"""

import argparse
import copy
import json
from collections.abc import Sequence
from typing import Any

import gossip_ranks
import torch
from gossip_scenarios_half import MAKE, gradients_of, held_back, held_loss, learner, teacher
from torch import nn

WORKERS = [1, 1, 1, 1]
STEPS, EVERY = 2000, 25
Points = list[dict[str, float]]


@torch.no_grad()
def look(models: Sequence[nn.Module], held: tuple[torch.Tensor, torch.Tensor]) -> dict[str, float]:
    """As ``Gossip.disagreement`` and ``averaged`` see it."""
    rows = [torch.cat([p.flatten() for p in m.parameters()]).double() for m in models]
    mean = torch.stack(rows).mean(0)
    apart = torch.stack([(row - mean).square().sum() for row in rows]).mean().sqrt()
    middle = copy.deepcopy(models[0]).float()
    nn.utils.vector_to_parameters(mean.float(), middle.parameters())
    return {"loss": held_loss(middle, held), "apart": float(apart / mean.norm())}


def corrections(sent: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """(W x - x) on a ring, where a worker takes a third of itself and of each neighbour."""
    size = len(sent)
    return [(sent[i - 1] + sent[i] + sent[(i + 1) % size]) / 3 - sent[i] for i in range(size)]


def without_masters(dtype: torch.dtype) -> Points:
    """x ← x + d + (W s - s): s was sent, in float32; the sum is rounded to the dtype."""
    models = [learner(dtype) for _ in WORKERS]
    optimizers = [MAKE["adamw"](model) for model in models]
    parameters = list(zip(*(model.parameters() for model in models), strict=True))
    sent = [[p.detach().float().clone() for p in same] for same in parameters]
    of, held, points = teacher(), held_back(), []
    for step in range(STEPS):
        for rank, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            gradients_of(model, of, step, rank)
            optimizer.step()
        for k, same in enumerate(parameters):
            mixed = [
                p.detach().float() + c for p, c in zip(same, corrections(sent[k]), strict=True)
            ]
            for p, values in zip(same, mixed, strict=True):
                p.data.copy_(values)
            sent[k] = mixed
        if (step + 1) % EVERY == 0:
            points.append({"step": step + 1, **look(models, held)})
    return points


def check(package: Points, formula: Points) -> None:
    """The formula in float32 must be where the package is."""
    for ours, other in zip(package, formula, strict=True):
        for name, value in other.items():
            assert abs(ours[name] - value) <= 0.01 * value, (name, ours, other)


def figure(found: dict[str, Any]) -> dict[str, Any]:
    """For `gossamer charts`."""
    check(found["adamw float32"]["points"], without_masters(torch.float32))
    curves = {
        "float32": found["adamw float32"]["points"],
        "bfloat16 with masters": found["adamw bfloat16"]["points"],
        "bfloat16 without masters": without_masters(torch.bfloat16),
    }

    def chart(title: str, key: str, y: str) -> dict[str, Any]:
        series = [
            {
                "name": name,
                "x": [point["step"] for point in points],
                "y": [point[key] for point in points],
                "dashed": name.endswith("with masters"),  # it lies over float32's
            }
            for name, points in curves.items()
        ]
        return {"title": title, "x": "step", "y": y, "log_y": key == "apart", "series": series}

    charts = [
        chart("How far are the workers apart?", "apart", "disagreement"),
        chart("What has their mean learned?", "loss", "loss of the mean"),
    ]
    return {"figure": "half_precision", "title": "Half precision", "charts": charts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="as in the tests")
    parser.add_argument("--curves", action="store_true", help="print a figure as JSON")
    options = parser.parse_args()
    scenario = "half_training" if options.short else "half_training_long"
    scenario = "half_curves" if options.curves else scenario
    ranks = gossip_ranks.run([scenario], WORKERS, timeout_s=1200)
    results = gossip_ranks.results(ranks, scenario)[0]
    if options.curves:
        print(json.dumps(figure(results)))
        return
    for name, found in results.items():
        how = "fused" if found["is_fused"] else "own step"
        print(f"{name:20} {how:9} apart {found['apart']:.3e}  loss {found['loss']:.5f}")


if __name__ == "__main__":
    main()
