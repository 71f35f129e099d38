"""Does an epoch have every sample once, where workers die and come back in it?

    python bench/churn/shares.py --deaths 10
    python bench/churn/shares.py --deaths 10 --life 15    # several in a round

Four workers go once through the samples of `gossamer.Shares`, in rounds of 40 steps. One after the
other is killed, the next one once the one before has been back for so many steps. Prints how often
samples were trained on, and fails where one is missing. Where a worker is killed in a round alone,
and all others have mixed in it from its beginning, it also fails where more came twice than two
batches for each death (and eight steps of all at the end, which are filled up).
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import contenders

PROGRAM = contenders.ROOT / "tests" / "python" / "sharing.py"
WORKERS, BATCH, EVERY = 4, 4, 40
UNTIL_EDGES = 34  # at most so many steps a worker that has come back does alone
ALONE_IN_A_ROUND = EVERY + UNTIL_EDGES + 4  # steps of a life
STEPS_OF_THE_END = 8
MOST_S = 900.0


def victims(deaths: int, seed: int) -> list[int]:
    """Nobody twice in a row."""
    dice = random.Random(seed)
    found: list[int] = []
    while len(found) < deaths:
        rank = dice.randrange(WORKERS)
        if found[-1:] != [rank]:
            found.append(rank)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deaths", type=int, default=10)
    parser.add_argument("--life", type=int, default=ALONE_IN_A_ROUND, help="steps between deaths")
    parser.add_argument("--samples", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gossamer-shares-"))
    die = ",".join(map(str, victims(given.deaths, given.seed)))
    launch = [sys.executable, "-m", "gossamer", "launch", "-n", str(WORKERS), "--spares", "1"]
    launch += ["--restarts", contenders.MANY, "--", sys.executable, str(PROGRAM)]
    done = subprocess.run(
        [*launch, str(folder), str(given.samples), str(BATCH)],
        env={
            **os.environ,
            **{"DIE": die, "LIFE": str(given.life), "EVERY": str(EVERY)},
            "PYTHONPATH": str(contenders.BUILT),
        },
        capture_output=True,
        text=True,
        timeout=MOST_S,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    lines = [
        json.loads(line)
        for path in folder.glob("trained-*.jsonl")
        for line in path.read_text().splitlines()
    ]
    counts = Counter(sample for line in lines if line.get("knows") for sample in line["samples"])
    deaths = done.stderr.count("ended by SIGKILL")
    missing = given.samples - len(counts)
    more = counts.total() - len(counts)
    most = 2 * BATCH * deaths + STEPS_OF_THE_END * WORKERS
    print(
        f"{given.samples} samples, {deaths} deaths, seed {given.seed}: {missing} missing, "
        f"{more} trained on once more, of {most} that may be"
    )
    too_many = more > most and given.life >= ALONE_IN_A_ROUND
    return 1 if missing or too_many or deaths < given.deaths else 0


if __name__ == "__main__":
    sys.exit(main())
