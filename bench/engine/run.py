"""A Gossamer step beside torch's fused AdamW; figures are defined in bench/METRICS.md."""

import argparse
import subprocess
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "bin" / "step_overhead"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few parameters and steps")
    parser.add_argument("--json", type=Path, help="write the rows here as well")
    arguments = parser.parse_args()
    command = [str(PROGRAM), *(["--quick"] if arguments.quick else [])]
    rows = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    if arguments.json:
        arguments.json.write_text(rows)


if __name__ == "__main__":
    main()
