"""Memory in the steps, and what making a Gossip costs, beside DDP; see bench/METRICS.md."""

import argparse
import json
import statistics
from pathlib import Path

from launch import launch

ONE_LAYER = ", one layer thawed"
ALLREDUCE = {"pattern": "allreduce"}
RING = {"topology": "ring"}
# Who, with which optimizer, what Gossip is told, and whether each worker counts as a host.
CASES: dict[str, tuple[str, str, dict[str, str], bool]] = {
    "alone": ("alone", "AdamW", {}, False),
    "ddp": ("ddp", "AdamW", {}, False),
    "gossamer, one host": ("gossamer", "AdamW", {}, False),
    "allreduce, one host": ("gossamer", "AdamW", ALLREDUCE, False),
    "gossamer": ("gossamer", "AdamW", {}, True),
    "gossamer bf16": ("gossamer", "AdamW", {"codec": "bf16"}, True),
    "gossamer int8": ("gossamer", "AdamW", {"codec": "int8"}, True),
    "ring": ("gossamer", "AdamW", RING, True),
    "ring bf16": ("gossamer", "AdamW", {**RING, "codec": "bf16"}, True),
    "allreduce": ("gossamer", "AdamW", ALLREDUCE, True),
    "allreduce bf16": ("gossamer", "AdamW", {**ALLREDUCE, "codec": "bf16"}, True),
    "ddp RMSprop": ("ddp", "RMSprop", {}, False),
    "gossamer RMSprop, one host": ("gossamer", "RMSprop", {}, False),
    "gossamer RMSprop": ("gossamer", "RMSprop", {}, True),
    "ddp, one layer thawed": ("ddp", "AdamW", {}, False),
    "gossamer, one layer thawed": ("gossamer", "AdamW", {}, True),
    "gossamer, one host, one layer thawed": ("gossamer", "AdamW", {}, False),
}


def start(case: str, layers: int) -> dict[str, float]:
    who, optimizer, options, each_a_host = CASES[case]
    words = ["--who", who, "--optimizer", optimizer, "--layers", str(layers)]
    words += ["--options", json.dumps(options)]
    words += ["--each-a-host"] if each_a_host else []
    words += ["--trainable", "1"] if case.endswith(ONE_LAYER) else []
    return launch(case, "memory_worker.py", 2, words, timeout_s=600)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=25, help="of 4 million parameters each")
    parser.add_argument("--quick", action="store_true", help="one round, one layer, three cases")
    parser.add_argument("--json", type=Path, help="write the rows here as well")
    arguments = parser.parse_args()
    names = list(CASES)
    if arguments.quick:
        arguments.rounds, arguments.layers = 1, 1
        names = ["ddp", "gossamer, one host", "allreduce bf16"]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(arguments.rounds):
        for name in names:
            found[name].append(start(name, arguments.layers))
    rows = []
    for name in names:
        kind = next((kind for kind in (" RMSprop", ONE_LAYER) if kind in name), "")
        base = found["ddp" + kind]
        pairs = list(zip(found[name], base, strict=True))
        beyond = [a["bytes_per_parameter"] - b["bytes_per_parameter"] for a, b in pairs]
        making = [a["making_cpu_s"] / b["making_cpu_s"] for a, b in pairs]
        row = {
            "contender": name,
            "bytes_beyond_ddp": statistics.median(beyond),
            "making_s": statistics.median(a["making_s"] for a, _ in pairs),
            "making_cpu_of_ddp": statistics.median(making),
        }
        rows.append(row)
        print(
            f"{name:28} {row['bytes_beyond_ddp']:+5.1f} ({min(beyond):+.1f} to {max(beyond):+.1f}) "
            f"bytes per parameter beyond DDP; made in {row['making_s']:.2f} s, "
            f"{row['making_cpu_of_ddp']:.2f} ({min(making):.2f}-{max(making):.2f}) of DDP's CPU"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
