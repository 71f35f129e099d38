"""What Gossip costs a script of one process, beside torch's fused AdamW; see bench/METRICS.md."""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BUILT = os.environ.get("GOSSAMER_PYTHON_PATH", str(FOLDER.parents[1] / "build" / "python"))
sys.path.insert(0, BUILT)

import torch  # noqa: E402
from contenders import CONTENDERS, gossamer  # noqa: E402
from models import MODELS  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--json", type=Path, help="write the rows here as well")
    arguments = parser.parse_args()
    rounds = 2 if arguments.quick else arguments.rounds
    torch.set_num_threads(1)
    rows = []
    for kind, (_, make_batch) in MODELS.items():
        plain, gossip = (make(kind, "adamw") for make in (CONTENDERS["alone"], gossamer("ring")))
        ratios, milliseconds = [], []
        generator = torch.Generator().manual_seed(0)
        for number in range(rounds + 3):
            batch = make_batch(generator)
            times = {}
            order = [plain, gossip] if number % 2 else [gossip, plain]
            losses = {}
            for contender in order:
                begin = time.perf_counter()
                losses[id(contender)] = contender.step(batch)
                times[id(contender)] = time.perf_counter() - begin
            gap = abs(losses[id(plain)] - losses[id(gossip)])
            if number < 2:  # later, rounding grows in a deep net
                assert gap < 1e-3, f"{kind}: the losses differ by {gap}"
            if number >= 3:  # the first ones pay for allocations
                ratios.append(times[id(gossip)] / times[id(plain)])
                milliseconds.append(1e3 * times[id(plain)])
        quarters = statistics.quantiles(ratios, n=4)
        rows.append(
            {
                "model": kind,
                "plain_ms_per_step": statistics.median(milliseconds),
                "ratio": statistics.median(ratios),
                "ratio_quartiles": [quarters[0], quarters[2]],
            }
        )
        gossip.close()
        print(
            f"{kind:12} torch {rows[-1]['plain_ms_per_step']:.1f} ms  with Gossip "
            f"{rows[-1]['ratio']:.3f} ({quarters[0]:.3f}-{quarters[2]:.3f}) of it"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
